#!/usr/bin/env python3
"""Cycles among the files of each component and framework: by #include of headers, and by symbols of object files.

usage: cycles.py SOURCE BUILD

A reader of a file that is in a cycle has to know all files of it. Prints a line for each folder; exit status 1 when
headers include each other in a cycle, or when a cycle by symbols is larger than LIMIT (or than what OVER says of the
folder, whose files are still to be parted).
"""
import os
import re
import subprocess
import sys

LIMIT = 6
OVER = {}


def largest_cycle(graph):
    """The largest strongly connected component of more than one node (Tarjan), sorted, or []."""
    index, low, stack, best = {}, {}, [], []

    def visit(v):
        nonlocal best
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in graph.get(v, ()):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            found = stack[at:]
            del stack[at:]
            if len(found) > 1 and len(found) > len(best):
                best = sorted(found)

    for v in graph:
        if v not in index:
            visit(v)
    return best


def sources(folder):
    """The .c and .h files of a component or framework, those of its subfolders too, but not its tests."""
    found = []
    for path, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if f != "tests"]
        found += [os.path.relpath(os.path.join(path, f), folder) for f in sorted(files) if f[-2:] in (".c", ".h")]
    return found


def includes(folder):
    """Which header of the folder includes which other one of it."""
    headers = {f for f in sources(folder) if f.endswith(".h")}
    graph = {}
    for f in headers:
        with open(os.path.join(folder, f), encoding="utf-8") as text:
            named = re.findall(r'^#include "([^"]+)"', text.read(), re.M)
        beside = {os.path.join(os.path.dirname(f), n) for n in named}
        graph[f] = {n for n in beside | set(named) if n in headers and n != f}
    return graph


def symbols(folder, files):
    """Which object file of the folder uses what another one of it defines. Objects are named LIBRARY-NAME.o."""
    defined, used = {}, {}
    for sub in sorted({os.path.dirname(f) for f in files}):
        where = os.path.join(folder, sub, ".libs")
        where = where if os.path.isdir(where) else os.path.join(folder, sub)
        if not os.path.isdir(where):
            continue
        objects = [os.path.join(where, f) for f in sorted(os.listdir(where)) if f.endswith(".o")]
        names = {o: os.path.join(sub, re.sub(r"^.*_la-", "", os.path.basename(o))[:-2]) for o in objects}
        objects = [o for o in objects if names[o] + ".c" in files]
        if not objects:
            continue
        out = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            file, symbol = line.split(":", 1)
            part = symbol.split()
            used.setdefault(names[file], set())
            if len(part) == 3 and part[1] in "TDBRVW":
                defined[part[2]] = names[file]
            elif len(part) == 2 and part[0] == "U":
                used[names[file]].add(part[1])
    return {f: {defined[s] for s in used[f] if s in defined and defined[s] != f} for f in used}


def folders(source):
    """Of frameworks and components: framework/X, components/X, components/{mpool,rcache}/X; and channel."""
    yield "channel"
    for top in ("framework", "components", "components/mpool", "components/rcache"):
        for name in sorted(os.listdir(os.path.join(source, top))):
            path = os.path.join(top, name)
            if path not in ("components/mpool", "components/rcache") and os.path.isdir(os.path.join(source, path)):
                yield path


def main(source, build):
    bad = seen = 0
    for name in folders(source):
        path = os.path.join(source, name)
        graph = symbols(os.path.join(build, name), set(sources(path)))
        if not graph:
            continue
        seen += 1
        by_include, by_symbol = largest_cycle(includes(path)), largest_cycle(graph)
        limit = OVER.get(name, LIMIT)
        print(f"{name}: {len(graph)} files, the largest cycle by symbols has {len(by_symbol)}")
        if by_include:
            print(f"FAILED: {name}: headers include each other: {' '.join(by_include)}")
        if len(by_symbol) > limit:
            print(f"FAILED: {name}: {len(by_symbol)} files use each other, {limit} may: {' '.join(by_symbol)}")
        bad += bool(by_include) or len(by_symbol) > limit
    if not seen:
        print(f"FAILED: no object files below {build}")
    return bool(bad or not seen)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
