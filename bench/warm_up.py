#!/usr/bin/env python3
"""How much longer the first 100 messages of a size take than later ones, right after two ranks have connected.

One job a size and round (warm_up.c); a row is the median of the rounds' own ratios. At most 1.3 is wanted. Exit status 0 when that
holds, 1 when not, 2 for wrong usage. Goes on where a run was ended (--state) while build and sizes are the same.
"""
import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys

from machine import processor

BOUND = 1.3
SIZES = "8,256,1024,4096,16384,65536,262144"


def options(words):
    parser = argparse.ArgumentParser(prog="warm-up", description=__doc__.splitlines()[0])
    parser.add_argument("--transports", default="sm,openib,tcp", help="with commas (%(default)s)")
    parser.add_argument("--sizes", default=SIZES, help="bytes, with commas (%(default)s)")
    parser.add_argument("--rounds", type=int, default=11, help="jobs of each size (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="three rounds of 1 KiB and 16 KiB")
    parser.add_argument("--state", metavar="FILE", help="figures so far (bench/warm-up.json of the build folder)")
    parser.add_argument("--again", action="store_true", help="do not go on from --state")
    parser.add_argument("--page", metavar="FILE", help="write the table there, not to standard output; relative to the source folder")
    parser.add_argument("--timeout", type=int, default=120, help="seconds after which a job is given up (%(default)s)")
    chosen = parser.parse_args(words)
    if chosen.rounds < 1:
        parser.error("--rounds: at least 1")
    if chosen.page:
        chosen.page = os.path.join(os.environ.get("STRATA_SOURCE", ""), chosen.page)
        if not os.access(os.path.dirname(chosen.page) or ".", os.W_OK):
            parser.error(f"--page: {chosen.page} cannot be written")
    if chosen.quick:
        chosen.rounds, chosen.sizes = 3, "1024,16384"
    return chosen


def run(build, transport, size, timeout):
    command = [os.path.join(build, "strata-run"), *(["--softhca"] if transport == "openib" else []), "-n", "2", "--mca", "btl",
               f"{transport},self", os.path.join(build, "bench/warm_up"), size]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False, text=True)
    except subprocess.TimeoutExpired:
        sys.exit(f"warm-up: not ended after {timeout} s: {' '.join(command)}")
    words = done.stdout.split()
    if done.returncode or len(words) != 3:
        sys.exit(f"warm-up: status {done.returncode}: {' '.join(command)}\n{done.stderr[-2000:]}")
    return [float(words[1]), float(words[2])]


def measure(build, chosen):
    """(transport, size) -> [[first, later], ...]"""
    path = chosen.state or os.path.join(build, "bench/warm-up.json")
    stamp = max(os.stat(os.path.join(build, name)).st_mtime for name in (".libs/libstrata.so", "bench/warm_up", "plugins"))
    kept = {}
    if not chosen.again and os.access(path, os.R_OK):
        with open(path, encoding="utf-8") as file:
            raw = json.load(file)
        kept = raw["rows"] if raw["stamp"] == stamp else {}
    for turn in range(chosen.rounds):
        for transport in chosen.transports.split(","):
            for size in chosen.sizes.split(","):
                row = kept.setdefault(f"{transport} {size}", [])
                if len(row) > turn:
                    continue
                print(f"warm-up: {transport}, {size} bytes, round {turn + 1}", file=sys.stderr)
                row.append(run(build, transport, size, chosen.timeout))
                with open(path + ".new", "w", encoding="utf-8") as file:
                    json.dump({"stamp": stamp, "rows": kept}, file)
                os.replace(path + ".new", path)
    return {tuple(key.split()): row[: chosen.rounds] for key, row in kept.items()}


def report(rows, chosen, words, out):
    """Prints the table; returns the exit status."""
    print("# Warm-up: the first 100 messages of a size\n", file=out)
    print(f"{processor()}, {len(os.sched_getaffinity(0))} processors, Linux {platform.release()}; {datetime.date.today().isoformat()}; "
          f"{chosen.rounds} rounds; `make bench-warm-up WARM_UP=\"{' '.join(words)}\"`. One way, us, medians.\n", file=out)
    print("| transport | bytes | first 100 | later | ratio | |\n|---|---|---|---|---|---|", file=out)
    missed = 0
    for transport in chosen.transports.split(","):
        for size in chosen.sizes.split(","):
            row = rows[transport, size]
            ratio = statistics.median(first / later for first, later in row)
            missed += ratio > BOUND
            print(f"| {transport} | {size} | {statistics.median(r[0] for r in row):.3f} | {statistics.median(r[1] for r in row):.3f} | "
                  f"{ratio:.2f} | {'missed' if ratio > BOUND else ''} |", file=out)
    print(f"\n{missed} rows above {BOUND} (none wanted).", file=out)
    return 1 if missed else 0


def main(words):
    chosen = options(words)
    build = os.environ.get("STRATA_BUILD", "")
    if not os.access(os.path.join(build, "bench/warm_up"), os.X_OK):
        sys.exit("warm-up: bench/warm_up is not below STRATA_BUILD; use `make bench-warm-up`")
    rows = measure(build, chosen)
    if chosen.page is None:
        return report(rows, chosen, words, sys.stdout)
    with open(chosen.page, "w", encoding="utf-8") as file:
        return report(rows, chosen, words, file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
