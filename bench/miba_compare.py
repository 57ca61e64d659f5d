#!/usr/bin/env python3
"""strata-miba beside perftest and qperf on softhca, in turns: medians of the same settings, and their ratio.

usage: miba_compare.py TOOL LIBRARY [--rounds N] [--device NAME] [--only NAME]

The other program's server and client stay on processors 0 and 1, as both sides of strata-miba do. Its own spread, the quartiles of its
rounds, is printed beside. Exit status 1 when a ratio is off by more than 3 % and by more than that spread.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

# Batches shorter than a turn of the scheduler, so that the median leaves out those that lost the processor.
QUICK = ["--samples", "301", "--time", "150"]
# Name, the other program, its arguments, a column from its end of its last line or an expression (qperf), and ours with its figure.
# Latencies of perftest are t_typical in us; bandwidths are MiB/s here (--report_gbits is not given), and means of all messages: of so few
# that they take a millisecond or two, less than a turn of the scheduler.
LATENCY, BANDWIDTH = "latency", "bandwidth"
# A connection by librdmacm, from its address to its end: the sum of our three figures, and cmtime's steps, of which it does each for all
# connections before the next one, and in which its server is another process.
CONNECTION = "connection"
CM_STEPS = ("resolve addr", "resolve route", "create qp", "connect", "disconnect")
CASES = [
    ("send latency", ["ib_send_lat", "-s", "8", "-n", "20000", "-I", "0"], LATENCY, ["latency", "--op", "send", "--values", "8"]),
    ("write latency", ["ib_write_lat", "-s", "8", "-n", "20000", "-I", "0"], LATENCY, ["latency", "--op", "write", "--values", "8"]),
    ("read latency", ["ib_read_lat", "-s", "8", "-n", "20000"], LATENCY, ["latency", "--op", "read", "--values", "8"]),
    ("atomic latency", ["ib_atomic_lat", "-A", "FETCH_AND_ADD", "-n", "20000"], LATENCY,
     ["atomics", "--op", "fetch_add", "--values", "1"]),
    ("inline send latency", ["ib_send_lat", "-s", "64", "-n", "20000", "-I", "64"], LATENCY,
     ["inline", "--op", "send", "--values", "64"]),
    ("send latency by events", ["ib_send_lat", "-s", "8", "-n", "5000", "-e", "-I", "0"], LATENCY, ["events", "--op", "send"]),
    ("write bandwidth", ["ib_write_bw", "-s", "65536", "-n", "400"], BANDWIDTH, ["bandwidth", "--op", "write", "--values", "64k"]),
    ("read bandwidth", ["ib_read_bw", "-s", "65536", "-n", "400"], BANDWIDTH, ["bandwidth", "--op", "read", "--values", "64k"]),
    ("write bandwidth, 4 pairs", ["ib_write_bw", "-s", "65536", "-n", "400", "-q", "4"], BANDWIDTH,
     ["qps", "--op", "write", "--size", "65536"]),
    ("send latency (qperf)", ["qperf", "-cp", "1", "rc_lat"], LATENCY, ["latency", "--op", "send", "--values", "1"]),
    ("connection (cmtime)", ["cmtime", "-c", "100"], CONNECTION, ["cm", "--values", "16"]),
    ("write bandwidth (qperf)", ["qperf", "-cp", "1", "rc_rdma_write_bw"], BANDWIDTH, ["bandwidth", "--op", "write", "--values", "64k"]),
]
port = 18700 + os.getpid() % 1000


def listens(number):
    pattern = re.compile(r":%04X 0*:0000 0A" % number)
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path, encoding="ascii") as table:
            if pattern.search(table.read()):
                return True
    return False


def pair(environment, server, client, number):
    """Output of the client. The server listens at this TCP port, 0: after half a second; it ends by itself, or is ended."""
    behind = subprocess.Popen(["taskset", "-c", "1", *server], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if number == 0:
            time.sleep(0.5)
        for _ in range(500 if number else 0):
            if listens(number):
                break
            time.sleep(0.01)
        done = subprocess.run(["taskset", "-c", "0", *client], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, timeout=60)
        return done.stdout.decode()
    finally:
        behind.terminate()
        behind.wait()


def other(environment, command, kind, device):
    """Nanoseconds, or MB/s of 10^6 bytes."""
    global port
    port += 1
    if command[0] == "cmtime":
        text = pair(environment, ["cmtime", "-p", str(port)], ["cmtime", "-s", "127.0.0.1", "-p", str(port), *command[1:]], 0)
        of = {step.strip(): float(columns.split()[-1]) for step, _, columns in (line.partition(":") for line in text.splitlines())
              if columns.strip()}
        if any(step not in of for step in CM_STEPS):
            sys.exit(f"miba_compare.py: cmtime:\n{text[-2000:]}")
        return 1e3 * sum(of[step] for step in CM_STEPS)
    if command[0] == "qperf":
        size = ["-m", "1" if kind == LATENCY else "64K"]
        text = pair(environment, ["qperf", "-lp", str(port)],
                    ["qperf", "-lp", str(port), "-t", "1", "-u", "-i", device, *size, "localhost", *command[1:]], port)
        found = re.search(r"(?:latency|bw) *= *([0-9.,]+) *(ns|us|MB/sec|GB/sec|bytes/sec)?", text)
        scale = {"ns": 1, "us": 1e3, "MB/sec": 1, "GB/sec": 1e3, "bytes/sec": 1e-6}
        return float(found.group(1).replace(",", "")) * scale[found.group(2)]
    command = [command[0], "-d", device, "-p", str(port), "-F", *command[1:]]
    text = pair(environment, command, [*command, "localhost"], port)
    rows = [line.split() for line in text.splitlines() if re.match(r"^ *[0-9]+ +[0-9]+ ", line)]
    if not rows:
        sys.exit(f"miba_compare.py: {' '.join(command)}:\n{text[-2000:]}")
    return float(rows[-1][4]) * 1e3 if kind == LATENCY else float(rows[-1][3]) * 1048576 / 1e6


def ours(environment, tool, arguments, kind):
    command = [tool, "--csv", "--transport", "RC", *QUICK, *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=120)
    rows = [line.split(",") for line in done.stdout.decode().splitlines()[1:]]
    # Of several variants and values the one that is compared: inline, events, four pairs.
    wanted = {"events": ("latency", "1"), "inline": ("inline", "64"), "qps": ("bandwidth", "4"), "atomics": ("", "1")}
    if kind == CONNECTION:
        return sum(float(row[8]) for row in rows if row[6] == "16" and row[10] != "failed")
    for row in rows:
        if wanted.get(row[0], (row[4], row[6])) == (row[4], row[6]):
            median = float(row[8])
            return median if row[7] == "MB/s" or kind == LATENCY else 65536 * 1e3 / median
    sys.exit(f"miba_compare.py: {' '.join(command)}: no such figure")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool")
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="soft0")
    parser.add_argument("--only")
    options = parser.parse_args()
    environment = dict(os.environ, LD_PRELOAD=options.library)
    off = []
    print(f"{'':28}{'strata-miba':>13}{'other':>13}{'ratio':>8}   quartiles of the other's rounds")
    for name, command, kind, arguments in CASES:
        if options.only and options.only not in name:
            continue
        if not shutil.which(command[0]):
            print(f"{name:28}{command[0]} is not installed")
            continue
        mine, theirs = [], []
        # perftest takes one event and polls once: softhca's other way of arming makes it wait for events that do not come.
        environment["SOFTHCA_ARM"] = "new" if "-e" in command else "unpolled"
        for _ in range(options.rounds):
            mine.append(ours(environment, options.tool, arguments, kind))
            theirs.append(other(environment, command, kind, options.device))
        low, _, high = statistics.quantiles(theirs, n=4)
        a, b = statistics.median(mine), statistics.median(theirs)
        good = abs(a / b - 1) <= 0.03 or low <= a <= high
        if not good:
            off.append(name)
        unit = "MB/s" if kind == BANDWIDTH else "ns"
        print(f"{name:28}{a:9.0f} {unit:4}{b:8.0f} {unit:4}{a / b:8.3f}   {low:.0f} to {high:.0f}{'' if good else '  OFF'}", flush=True)
    print("RESULT: " + (f"off: {', '.join(off)}" if off else "all within 3 % or the other's own spread"))
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
