#!/bin/sh
# Doxygen's input filter: makes the plain comments of our headers documentation comments. A comment that starts a line
# documents what follows it; one that follows code documents that code; the first comment of a file documents the file.
# Dividers (/* ---- */) stay plain.
exec awk '
    /^\/\* ----/ { print; next }
    FNR == 1 && /^\/\*/ { sub(/^\/\*/, "/** @file\n *"); print; next }
    /^[ \t]*\/\*([^*]|$)/ { sub(/\/\*/, "/**"); print; next }
    /\/\* / && !/^[ \t]*\*/ && !/"[^"]*\/\*/ { sub(/\/\* /, "/**< "); print; next }
    { print }' "$1"
