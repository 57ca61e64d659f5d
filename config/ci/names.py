#!/usr/bin/env python3
"""Names in components, frameworks and channels, their tests left out.

usage: names.py SOURCE

Exit status 1 when a static function has a name of one word, so that others may have the same, or when a transport names
a client of its messages: ST_AM_FREQUENT is all that it may know of the PML.
"""
import re
import sys

from repeats import files, read

ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)")
# What precedes the name has no parentheses but those of macros: ST_ATOMIC(uint32_t).
STATIC = re.compile(r"^[ ]*static\b(?:[^;={}()]|\b[A-Z_]+\([^()]*\))*?\b([a-z][A-Za-z0-9]*)\(", re.M)


def one_word(text):
    """Static functions without a prefix."""
    text = ATTRIBUTE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for m in STATIC.finditer(text):
        yield m.start(1), f"static {m[1]}() has no prefix of its file"


def clients_named(path, text):
    """Lines of a transport that name a client."""
    if re.search(r"(^|/)btl_[^/]*/", path):
        for m in re.finditer(r"\bST_AM_(PML|STREAM|COLL)\b", text):
            yield m.start(), f"a transport names a client, {m[0]}"


def main(source):
    bad = seen = 0
    for top in ("channel", "components", "framework", "docs/examples"):
        for path in files(source, (top,), (".c", ".h"), but="tests"):
            seen += 1
            text = read(source, path)
            statics = one_word(text) if top != "docs/examples" else []
            for at, what in [*statics, *clients_named(path, text)]:
                print(f"FAILED: {path}:{text.count(chr(10), 0, at) + 1}: {what}")
                bad += 1
    print(f"{seen} files whose names were checked")
    return bool(bad or not seen)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
