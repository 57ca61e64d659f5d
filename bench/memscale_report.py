"""Report of bench/memscale.sh: memscale_report.py FOLDER prints Markdown of what strata-memscale has left there."""
import csv
import json
import os
import platform
import re
import statistics
import sys

from machine import processor

folder = sys.argv[1]


def lines(name):
    path = os.path.join(folder, name)
    return open(path).read().rstrip("\n").split("\n") if os.path.exists(path) else []


def memory():
    return int(open("/proc/meminfo").readline().split()[1]) / 1048576


def number(v, form="%.1f"):
    return "-" if v is None else form % v


def total(r):
    return r["mean"]["private"] + r["mean"]["page_tables"] + r["mean"]["device_share"]


def latency(r):
    t = r and r.get("latency_us")
    return "%.2f (%.2f to %.2f)" % (t["median"], t["q1"], t["q3"]) if t else "-"


class Jobs:
    """What strata-memscale has measured, by configuration, pattern and number of ranks."""

    def __init__(self, path):
        self.results = json.load(open(path))
        self.configs = list(dict.fromkeys(r["config"] for r in self.results))
        self.by = {}
        for r in self.results:
            self.by.setdefault((r["config"], r["pattern"]), {})[r["ranks"]] = r

    def libraries(self):
        return "; ".join(sorted({r["library"] for r in self.results}))

    def slope(self, config, of):
        """Bytes for one more connected peer, between the least and the largest job from 4 ranks on."""
        jobs = sorted((n, r) for n, r in self.by.get((config, "alltoall"), {}).items() if n >= 4)
        if len(jobs) < 2:
            return None
        (n0, a), (n1, b) = jobs[0], jobs[-1]
        return (of(b) - of(a)) / (n1 - n0)

    def print_peers(self):
        print("kB for one more connected peer, all connected with all; ours: what Strata's components report.\n")
        print("| configuration | ranks | private | with page tables and device | ours |\n|---|---|---|---|---|")
        for c in self.configs:
            jobs = self.by.get((c, "alltoall"), {})
            if len(jobs) < 2:
                continue
            ours = any(r["ours"] for r in jobs.values())
            print("| %s | %d to %d | %s | %s | %s |" % (
                c, min((n for n in jobs if n >= 4), default=min(jobs)), max(jobs),
                number(self.slope(c, lambda r: r["mean"]["private"] / 1e3)), number(self.slope(c, lambda r: total(r) / 1e3)),
                number(self.slope(c, lambda r: sum(r["ours"].values()) / 1e3)) if ours else "-"))

    def print_processes(self):
        print("Private MB (Figures 3 to 5), ms of the start, us of the first message to a neighbour; zero-byte latency of one\n"
              "pair in us, with one connected peer and with N - 1 (Figure 6), median and quartiles.\n")
        print("| configuration | N | hello | pairwise | alltoall | start | first | latency, 1 peer | N - 1 peers | x |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        ratios = []
        for c in self.configs:
            for n in sorted({n for p in ("hello", "pairwise", "alltoall") for n in self.by.get((c, p), {})}):
                h, p, a = (self.by.get((c, k), {}).get(n) for k in ("hello", "pairwise", "alltoall"))
                ratio = None
                if p and a and "latency_us" in p and "latency_us" in a:
                    ratio = a["latency_us"]["median"] / p["latency_us"]["median"]
                    ratios.append((c, ratio))
                print("| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s |" % (
                    c, n, *(number(r and r["mean"]["private"] / 1e6, "%.2f") for r in (h, p, a)),
                    number(h and h["mean"]["init_us"] / 1e3), number(p and p["mean"]["first_us"], "%.0f"), latency(p), latency(a),
                    number(ratio, "%.2f")))
        print()
        for c in self.configs:
            mine = [x for name, x in ratios if name == c]
            if mine:
                print("- %s: latency with N - 1 connected peers is %.2f of that with one (median over N; largest %.2f)"
                      % (c, statistics.median(mine), max(mine)))


FAILED = (r" with \d+ ranks(:| is refused)",  # a job
          r": (refused: \d+ ranks|strata-run ended with|rank 0 left no|the result is wrong)")  # a kernel of srq


def print_refused(log):
    refused = [line for line in lines(log) if re.search("|".join(FAILED), line)]
    if refused:
        print("\nNot measured:\n")
        for line in dict.fromkeys(refused):
            print("- " + line.replace("strata-memscale: ", ""))


here = Jobs(os.path.join(folder, "results.json"))
print("# Memory, start and latency as ranks grow\n")
print("%s, %d processors, %.0f GiB, Linux %s. Made by `bench/memscale.sh`, which ran:\n"
      % (processor(), os.cpu_count(), memory(), platform.release()))
for line in lines("commands") + lines("guest/commands"):
    print("    " + line)
print("\nLibraries: %s.\n" % here.libraries())
print("## A connected peer\n")
here.print_peers()
print("\n## A process\n")
here.print_processes()
print_refused("log")

if os.path.exists(os.path.join(folder, "guest/results.json")):
    guest = Jobs(os.path.join(folder, "guest/results.json"))
    print("\n## In the guest, on Soft-RoCE\n\nThe processor is emulated: its times are not those of a machine.\n")
    guest.print_peers()
    print()
    guest.print_processes()
    print_refused("guest/log")

print("\n## The model\n\n```")
text = lines("model.txt")
start = next((i for i, line in enumerate(text) if line.startswith("Model")), len(text))
print("\n".join(line for line in text[start:] if not line.endswith(".png")))
print("```\n\n## Shared receive queues\n\n```")
print("\n".join(lines("srq.txt")))
print("```")
cells = {}
for row in csv.DictReader(lines("srq.csv")):
    if row["table"] != "1" and row["right"] == "1":
        cell = tuple(row[name] for name in ("table", "kernel", "class", "ranks"))
        cells.setdefault(cell, {}).setdefault((row["config"], int(row["count"])), []).append(float(row["value"]))
for name in ("SRQ", "SRQ, flow control"):
    for small in (False, True):
        x = [statistics.median(v) / statistics.median(base)
             for cell in cells.values() for key, v in cell.items()
             for base in [next((b for k, b in cell.items() if k[0] == "no SRQ"), None)]
             if base and key[0] == name and (key[1] <= 16) == small]
        if x:
            print("\n%s, %s, over queues per peer: median of %d cells %.2f, largest %.2f."
                  % (name, "16 buffers" if small else "more than 16 buffers", len(x), statistics.median(x), max(x)))
