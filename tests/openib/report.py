#!/usr/bin/env python3
"""Reads what a job said with --report-transports=json. `report.py FILE sum FIELD`: the sum over its modules; `report.py FILE
modules FIELD...`: a line for each device and port, with the sum of these over the ranks; `report.py FILE rank N FIELD`: the
sum over the modules of one rank; `report.py FILE connect`: how many
ends of connections were made, how long the ranks that asked for one waited in the mean, and at most."""
import collections
import json
import sys


def modules(path, rank=None):
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            of = json.loads(line) if line.startswith("{") else {}
            if rank is None or of.get("rank") == rank:
                yield from (t for t in of.get("transports", ()) if t["transport"] == "openib")


def main():
    path, what = sys.argv[1:3]
    if what == "sum":
        print(sum(m.get(sys.argv[3], 0) for m in modules(path)))
    elif what == "rank":
        print(sum(m.get(sys.argv[4], 0) for m in modules(path, int(sys.argv[3]))))
    elif what == "modules":
        of = collections.Counter()
        for m in modules(path):
            of[m["device"]] += sum(m.get(field, 0) for field in sys.argv[3:])
        for device, n in sorted(of.items()):
            print(device, n)
    else:
        every = list(modules(path))
        made, asked = (sum(m[field] for m in every) for field in ("connections", "asked"))
        took = sum(m["connect_us"] * m["asked"] for m in every) / max(asked, 1) / 1e3
        slowest = max((m["slowest_us"] for m in every), default=0) / 1e3
        print(f"{made} connections, {took:.1f} ms each, {slowest:.0f} ms the slowest")


main()
