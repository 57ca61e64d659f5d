#!/usr/bin/env python3
"""The proof of strata-miba: known costs of softhca are found in the right tests, and nowhere else.

usage: miba_proof.py TOOL LIBRARY [--tolerance FRACTION] [--rounds N] [--samples N] [--time MS] [--factor F]
                     [--only KEY]...

Each cost is set alone (SOFTHCA_COST). Runs with it and with twice of it take turns, so that what counting the cost takes is in both; the
difference of the figures' medians, each the least
of its rounds so far, has to be what was set within the tolerance: in the figures that the cost belongs to, and 0 in others.
Rounds are added until all figures of a cost agree, or there are no more. Exit status 1 when a cost was not found so.
"""
import argparse
import json
import os
import subprocess
import sys

READ = ["--op", "read", "--transport", "RC"]
WRITE = ["--op", "write", "--transport", "RC"]


def ns(text):
    """Nanoseconds of "50ns", "1.5us", "100ps"."""
    for unit, scale in (("ps", 1e-3), ("ns", 1), ("us", 1e3), ("ms", 1e6)):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * scale
    raise ValueError(text)


class Run:
    """One command line, and how often the cost is in each of its figures: (figure, variant, value) to a number."""

    # Batches are a fraction of a turn of the scheduler, so that most of them are left alone on a busy machine, and samples are many.
    def __init__(self, args, found, count=128, samples=301):
        self.args, self.found, self.count, self.samples = args, found, count, samples


class Local(Run):
    """Of calls that make objects: few, so that their memory is used again in each batch."""

    def __init__(self, args, found):
        super().__init__(args, found, 16, 1001)


LOAD = Run(["load", *WRITE, "--size", "8", "--window", "4"],
           {("load", "", 0): 0, ("load", "", 1): 1, ("load", "", 2): 2, ("load", "", 4): 4}, count=16, samples=1001)
# Cost, its value, and what it is in. A number of 0 says that the cost does not show there.
PROOFS = [
    ("reg", "3us", [Local(["registration", "--values", "4k,64k"],
                        {("register", "touched", 4096): 1, ("register", "touched", 65536): 1, ("deregister", "touched", 4096): 0})]),
    ("page", "40ns", [Local(["registration", "--values", "256k,1m"],
                          {("register", "touched", 1 << 18): 64, ("register", "touched", 1 << 20): 256,
                           ("deregister", "touched", 1 << 20): 0})]),
    ("dereg", "5us", [Local(["registration", "--values", "4k"],
                          {("deregister", "touched", 4096): 1, ("register", "touched", 4096): 0})]),
    ("qp", "500ns", [Local(["qp", "--values", "1,16"],
                         {("qp_create", "", 1): 1, ("qp_create", "", 16): 1, ("qp_destroy", "", 1): 0})]),
    ("qp_entry", "10ns", [Local(["qp", "--values", "16,64"],
                              {("qp_create", "", 16): 32, ("qp_create", "", 64): 128, ("qp_destroy", "", 64): 0})]),
    ("cq", "200ns", [Local(["cq", "--values", "1,16"],
                         {("cq_create", "plain", 1): 1, ("cq_create", "plain", 16): 1, ("cq_destroy", "plain", 1): 0})]),
    ("cq_entry", "3ns", [Local(["cq", "--values", "256,4096"],
                             {("cq_create", "plain", 256): 256, ("cq_create", "plain", 4096): 4096,
                              ("cq_destroy", "plain", 256): 0})]),
    ("modify", "150ns", [Local(["qp_connected", "--values", "16"],
                             {("qp_to_init", "", 16): 1, ("qp_to_rtr", "", 16): 1, ("qp_to_rts", "", 16): 1,
                              ("qp_create", "", 16): 0, ("qp_destroy", "", 16): 0})]),
    ("destroy", "400ns", [Local(["qp", "cq", "--values", "16"],
                              {("qp_destroy", "", 16): 1, ("cq_destroy", "plain", 16): 1, ("qp_create", "", 16): 0,
                               ("cq_create", "plain", 16): 0})]),
    ("post_send", "400ns", [Run(["post_send", "latency", *READ, "--values", "8"],
                                {("post_send", "", 8): 1, ("latency", "", 8): 1}),
                            Run(["post_recv"], {("post_recv", "", 1): 0})]),
    ("post_recv", "60ns", [Run(["post_recv"], {("post_recv", "", 1): 1, ("post_recv", "", 4): 1}),
                           Run(["post_send", *READ, "--values", "8"], {("post_send", "", 8): 0})]),
    ("poll", "60ns", [Run(["poll_empty", "poll_full"],
                          {("poll_empty", "", 1): 1, ("poll_empty", "", 16): 1, ("poll_full", "", 8): 1})]),
    ("segment", "150ns", [Run(["segments", *READ, "--size", "1024"],
                              {("segments", "latency", 1): 0, ("segments", "latency", 4): 3, ("segments", "latency", 16): 15,
                               ("segments", "bandwidth", 8): 7}),
                          Run(["max_sge", *READ, "--size", "8"], {("max_sge", "latency", 16): 0})]),
    ("max_sge", "100ns", [Run(["max_sge", *READ, "--size", "8"],
                              {("max_sge", "latency", 4): 4, ("max_sge", "latency", 16): 16, ("max_sge", "bandwidth", 8): 8})]),
    ("packet", "150ns", [Run(["mtu", *READ, "--size", "4096"],
                             {("mtu", "latency", 256): 16, ("mtu", "latency", 1024): 4, ("mtu", "latency", 4096): 1,
                              ("mtu", "bandwidth", 512): 8}),
                         Run(["post_recv"], {("post_recv", "", 1): 0})]),
    # Few buffers and a small cache of translations: the processor's own caches hold what the buffers take, also while other
    # jobs run. With thousands of buffers a longer message gives those jobs more time to evict them.
    ("cold", "600ns", [Run(["translation_1", "translation_2", *READ, "--size", "8", "--buffers", "128"],
                           {("translation_1", "latency", 10): 0, ("translation_1", "latency", 64): 1,
                            ("translation_1", "latency", 256): 1, ("translation_2", "latency", 100): 0,
                            ("translation_2", "latency", 50): 0.5, ("translation_2", "latency", 0): 1,
                            ("translation_2", "bandwidth", 0): 1})]),
    ("switch", "400ns", [Run(["qps", *READ, "--size", "8"],
                             {("qps", "latency", 1): 0, ("qps", "latency", 2): 1, ("qps", "latency", 16): 1,
                              ("qps", "bandwidth", 1): 0, ("qps", "bandwidth", 8): 1})]),
    ("event", "10us", [Run(["events", *READ, "--size", "8"], {("events", "latency", 0): 0, ("events", "latency", 1): 1},
                           count=16, samples=1001)]),
    ("byte", "150ps", [Run(["latency", *READ, "--values", "4096,65536"],
                           {("latency", "", 4096): 4096, ("latency", "", 65536): 65536}, count=32),
                       Run(["post_recv"], {("post_recv", "", 1): 0})]),
    # Figures are twice as large when both directions have one engine; those of one side alone are the same.
    ("engine", "1", [Run(["both_ways", *WRITE, "--values", "8", "--window", "4"], {("both_ways", "", 8): 1}, count=16, samples=1001),
                     Run(["bandwidth", *WRITE, "--values", "8"], {("bandwidth", "", 8): 0}),
                     Run(["latency", "qps", *READ, "--values", "8", "--size", "8"],
                         {("latency", "", 8): 0, ("qps", "latency", 4): 0, ("qps", "bandwidth", 4): 0}),
                     Run(["post_recv", "poll_empty"], {("post_recv", "", 1): 0, ("poll_empty", "", 1): 0})]),
    # A message waits for one of each loader.
    ("load", "1", [LOAD]),
]
# Wants a processor for each side and each loader.
LOAD_PROCESSORS = 6
# With --only none: a cost that no test pays for, to see that the proof fails.
NONE = ("none", "1us", [Run(["post_recv"], {("post_recv", "", 1): 1})])
# With --only slight: a cost of one unit that is said to be none, beside costs of four units and of thirty.
SLIGHT = ("slight", "100ns", [Run(["max_sge", *READ, "--size", "8"],
                                  {("max_sge", "latency", 1): 0, ("max_sge", "latency", 4): 4, ("max_sge", "latency", 30): 30})])
# With --only apart: loaders beside which each process has an engine of its own.
APART = ("apart", "1", [LOAD])
# The cost is an engine of all processes; each message has 20 us.
ENGINES = {"engine": "packet=20us,engine=1", "load": "packet=20us,engine=1", "apart": "packet=20us"}
CACHE = {"cold": "32"}


def measure(options, cost, cache, run):
    """Figures of one run in nanoseconds: those of bandwidth as the time of a message, or of one each way."""
    environment = dict(os.environ, LD_PRELOAD=options.library)
    for name, value in (("SOFTHCA_COST", cost), ("SOFTHCA_COST_CACHE", cache)):
        environment.pop(name, None)
        if value:
            environment[name] = value
    command = [options.tool, "--json", "--timeout", "60", "--samples", str(options.samples or run.samples), "--time", str(options.time), "--count",
               str(run.count), *run.args]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False, timeout=600)
    figures = {}
    for line in done.stdout.decode().splitlines():
        o = json.loads(line)
        key = (o.get("figure"), o.get("variant"), o.get("value"))
        if key in run.found and o["status"] in ("ok", "marked"):
            ways = 2 if o["test"] == "both_ways" else 1
            figures[key] = o["median"] if o["unit"] == "ns" else ways * o["value"] * 1e3 / o["median"]
    if done.returncode != 0 or len(figures) != len(run.found):
        sys.exit(f"miba_proof.py: {' '.join(command)}: status {done.returncode}, figures {sorted(figures)}")
    return figures


def prove(options, key, value, run):
    """Rounds until all figures agree. The lines to print, and whether they do."""
    each = 1.0 if key in ENGINES else ns(value) * options.factor
    if key not in ENGINES:
        value = f"{each:g}ns"
    pair = (f"{key}={value}", f"{key}={2 * each:g}ns")
    if key in ENGINES:
        pair = ("packet=20us", ENGINES[key])
    elif key == "none":
        pair = ("event=1us", "event=2us")
    elif key == "slight":
        pair = tuple(cost.replace(key, "max_sge") for cost in pair)
    least = ({}, {})
    for number in range(1, options.rounds + 1):
        for best, cost in zip(least, pair):
            for figure, t in measure(options, cost, CACHE.get(key), run).items():
                best[figure] = min(t, best.get(figure, t))
        lines, well = [], True
        for figure, times in run.found.items():
            # One engine: a message waits for as many others, which take as long.
            wanted = least[0][figure] * times if key in ENGINES else each * times
            found = least[1][figure] - least[0][figure]
            # Of what does not cost there the smallest effect of the cost that would show, or 3 % of the figure itself.
            room = options.tolerance * (wanted or min((n for n in run.found.values() if n), default=1) * each)
            room = max(room, 0.03 * least[0][figure] if wanted == 0 else 0, options.floor)
            good = abs(found - wanted) <= room
            well &= good
            name = " ".join(str(part) for part in figure if part != "")
            lines.append(f"{'ok' if good else 'WRONG':5} {key}={value:6} {name:32} base {least[0][figure]:11.1f} ns, "
                         f"set {wanted:9.1f}, found {found:9.1f}, round {number}")
        if well:
            break
    return lines, well


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool")
    parser.add_argument("library")
    parser.add_argument("--tolerance", type=float, default=0.05)
    parser.add_argument("--floor", type=float, default=5, help="nanoseconds that always count as noise")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--samples", type=int, help="default: 301, or 1001 of few operations")
    parser.add_argument("--time", type=int, default=300)
    parser.add_argument("--factor", type=float, default=1, help="of all costs but the engine")
    parser.add_argument("--only", action="append", metavar="KEY")
    options = parser.parse_args()
    wrong = []
    for key, value, runs in [*PROOFS, NONE, SLIGHT, APART]:
        if key not in (options.only or [p[0] for p in PROOFS]):
            continue
        if key == "load" and not options.only and (os.cpu_count() or 1) < LOAD_PROCESSORS:
            print(f"skipped: load: it wants {LOAD_PROCESSORS} processors")
            continue
        for run in runs:
            lines, well = prove(options, key, value, run)
            print("\n".join(lines), flush=True)
            if not well:
                wrong.append(key)
    print(f"RESULT: tolerance {options.tolerance:.0%}: " + (f"not found: {', '.join(wrong)}" if wrong else "all costs were found"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
