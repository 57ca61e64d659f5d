#!/usr/bin/env python3
"""Code that components share without saying so, and headers that are too long.

usage: repeats.py SOURCE

Prints each run of RUN or more equal lines in two components, frameworks or channels, and each header of more than HEADER
lines, theirs, of include/strata/sdk and of tests; exit status 1 when there is one. Among equal lines, tests, comments,
blank lines, lone punctuation and #include do not count.
"""
import os
import re
import sys

RUN = 6
HEADER = 250


def folder_of(path):
    """components/X, framework/X, components/{mpool,rcache}/X or channel."""
    part = path.split(os.sep)
    return os.sep.join(part[: 3 if part[1] in ("mpool", "rcache") and part[0] == "components" else 2 if len(part) > 2 else 1])


SHARED = ("channel", "components", "framework")


def files(source, tops, suffixes, but=None):
    """The files below the folders `tops` of the source, without the folders called `but`."""
    for top in tops:
        for path, folders, names in os.walk(os.path.join(source, top)):
            folders[:] = sorted(f for f in folders if f != but)
            for name in sorted(names):
                if name[-2:] in suffixes:
                    yield os.path.relpath(os.path.join(path, name), source)


def read(source, path):
    with open(os.path.join(source, path), encoding="utf-8") as file:
        return file.read()


def long_headers(source):
    """Prints each header that is too long; how many there are, and of how many headers."""
    bad, seen = 0, 0
    for path in files(source, SHARED + ("include/strata/sdk", "tests"), (".h",)):
        seen += 1
        lines = read(source, path).count("\n")
        if lines > HEADER:
            print(f"FAILED: {path}: {lines} lines, a header may have {HEADER}")
            bad += 1
    return bad, seen


def code(text):
    """(line number, line without white space at its ends) of the lines that count."""
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", "", m[0]), text, flags=re.S)
    for number, line in enumerate(text.split("\n"), 1):
        line = " ".join(line.split())
        if re.search(r"\w", line) and not line.startswith("#include"):
            yield number, line


def main(source):
    seen, first = 0, {}
    bad, headers = long_headers(source)
    for path in files(source, SHARED, (".c", ".h"), but="tests"):
        seen += 1
        lines, end = list(code(read(source, path))), 0
        for i in range(len(lines) - RUN + 1):
            run = tuple(line for _, line in lines[i:i + RUN])
            other, at = first.setdefault(run, (path, lines[i][0]))
            if folder_of(other) != folder_of(path) and i >= end:
                print(f"FAILED: {path}:{lines[i][0]} has {RUN} lines of {other}:{at}: {run[0]}")
                bad, end = bad + 1, i + RUN
    print(f"{seen} files of components, frameworks and channels, {headers} headers")
    return bool(bad or not seen or not headers)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
