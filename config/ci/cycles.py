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
OVER = {"components/btl_openib": 19}


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


def includes(folder):
    """Which header of the folder includes which other one of it."""
    headers = {f for f in os.listdir(folder) if f.endswith(".h")}
    graph = {}
    for f in headers:
        with open(os.path.join(folder, f), encoding="utf-8") as text:
            named = re.findall(r'^#include "(?:.*/)?([^"/]+)"', text.read(), re.M)
        graph[f] = {n for n in named if n in headers and n != f}
    return graph


def symbols(folder):
    """Which object file of the folder uses what another one of it defines. Objects are named LIBRARY-NAME.o."""
    defined, used = {}, {}
    for where in (os.path.join(folder, ".libs"), folder):
        if not os.path.isdir(where) or used:
            continue
        objects = [os.path.join(where, f) for f in sorted(os.listdir(where)) if f.endswith(".o")]
        if not objects:
            continue
        out = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            file, symbol = line.split(":", 1)
            name = re.sub(r"^.*_la-", "", os.path.basename(file))[:-2]
            part = symbol.split()
            used.setdefault(name, set())
            if len(part) == 3 and part[1] in "TDBRVW":
                defined[part[2]] = name
            elif len(part) == 2 and part[0] == "U":
                used[name].add(part[1])
    return {f: {defined[s] for s in used[f] if s in defined and defined[s] != f} for f in used}


def main(source, build):
    bad = seen = 0
    for top in ("framework", "components"):
        for path, _, files in sorted(os.walk(os.path.join(source, top))):
            name = os.path.relpath(path, source)
            graph = symbols(os.path.join(build, name))
            if "/tests" in name or not any(f.endswith(".c") for f in files) or not graph:
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
