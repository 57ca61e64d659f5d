#!/usr/bin/env python3
"""Names in components and frameworks, their tests left out.

usage: names.py SOURCE

Exit status 1 when a transport names a client of its messages: ST_AM_FREQUENT is all that it may know of the PML.
"""
import os
import re
import sys


def files(source, top):
    for path, folders, names in os.walk(os.path.join(source, top)):
        folders[:] = sorted(f for f in folders if f != "tests")
        for name in sorted(names):
            if name[-2:] in (".c", ".h"):
                yield os.path.relpath(os.path.join(path, name), source)


def clients_named(path, text):
    """Lines of a transport that name a client."""
    if re.search(r"(^|/)btl_[^/]*/", path):
        for m in re.finditer(r"\bST_AM_(PML|STREAM|COLL)\b", text):
            yield m.start(), f"a transport names a client, {m[0]}"


def main(source):
    bad = seen = 0
    for top in ("components", "framework", "docs/examples"):
        for path in files(source, top):
            seen += 1
            with open(os.path.join(source, path), encoding="utf-8") as file:
                text = file.read()
            for at, what in clients_named(path, text):
                print(f"FAILED: {path}:{text.count(chr(10), 0, at) + 1}: {what}")
                bad += 1
    print(f"{seen} files whose names were checked")
    return bool(bad or not seen)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
