#!/usr/bin/env python3
"""strata-miba beside perftest, qperf and cmtime, in turns: medians of the same settings, and their ratio.

usage: miba_compare.py TOOL LIBRARY [--rounds N] [--device NAME] [--only NAME] [--exchange PROGRAM]

LIBRARY is libsofthca.so; "-" for a device of the kernel, such as rxe0 in the guest. The other program's server and client stay on
processors 0 and 1, as both sides of strata-miba do. Each row says whether it is met: on softhca within 3 % of the other program; on a
device of the kernel within that or within the other's own spread, the quartiles of its rounds. With --exchange, bench/exchange of the
build, a run is repeated if the time of a cache line's exchange between the two processors has changed meanwhile (gauge.py). Exit status 1
when a row is missed.
"""
import argparse
import functools
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

from gauge import Gauge

TARGET = 0.03
TIME_MS = 150  # for all samples of strata-miba
LATENCY, BANDWIDTH = "latency", "bandwidth"
# A connection by librdmacm, from its address to its end: the sum of our three figures, and cmtime's steps.
CONNECTION = "connection"
CM_STEPS = ("resolve addr", "resolve route", "create qp", "connect", "disconnect")
# What a latency of perftest does as strata-miba does: as many receives (-r), all samples printed in their order (-U), of which batches are
# as long as strata-miba's. Of a bandwidth: window and completions (-t, -Q).
SAME = {LATENCY: ["-U"], BANDWIDTH: ["-t", "64", "-Q", "1"]}
RECEIVES = ["-r", "64"]
# Differences that remain, printed with a row that is missed.
EVENTS = "perftest waits by events for its own sends, too"
MEANS = "the other's is a mean over all its messages, in which a turn of the scheduler shows"
PAIRS = "perftest has buffers of its own for each pair, and posts 16 messages to a pair before it goes to the next one"
LOOP = "qperf has one completion queue for both directions and polls for two completions; three digits"
STEPS = "cmtime has each step under way for all connections at once; strata-miba has one after the other, its server in the same process"
# perftest has a list of devices, and disables inline on others whatever -I says: its messages are copied, and so are ours then.
NO_INLINE = "Disabling it"
# Name, the other program with its arguments, its kind, our arguments, the variant and value of the row that is compared, the remark.
CASES = [
    ("send latency", ["ib_send_lat", "-s", "8", "-I", "0", *RECEIVES], LATENCY, ["latency", "--op", "send", "--values", "8"], None, ""),
    ("write latency", ["ib_write_lat", "-s", "8", "-I", "0"], LATENCY, ["latency", "--op", "write", "--values", "8"], None, ""),
    ("read latency", ["ib_read_lat", "-s", "8"], LATENCY, ["latency", "--op", "read", "--values", "8"], None, ""),
    ("atomic latency", ["ib_atomic_lat", "-A", "FETCH_AND_ADD"], LATENCY, ["atomics", "--op", "fetch_add"], ("", "1"), ""),
    ("inline send latency", ["ib_send_lat", "-s", "64", "-I", "64", *RECEIVES], LATENCY,
     ["inline", "--op", "send", "--values", "64"], ("inline", "64"), ""),
    ("inline write latency", ["ib_write_lat", "-s", "64", "-I", "64"], LATENCY,
     ["inline", "--op", "write", "--values", "64"], ("inline", "64"), ""),
    ("send latency by events", ["ib_send_lat", "-s", "8", "-e", "-I", "0", *RECEIVES], LATENCY,
     ["events", "--op", "send", "--size", "8"], ("latency", "1"), EVENTS),
    ("write bandwidth", ["ib_write_bw", "-s", "65536"], BANDWIDTH, ["bandwidth", "--op", "write", "--values", "64k"], None, MEANS),
    ("read bandwidth", ["ib_read_bw", "-s", "65536"], BANDWIDTH, ["bandwidth", "--op", "read", "--values", "64k"], None, MEANS),
    ("send bandwidth", ["ib_send_bw", "-s", "65536", "-r", "512"], BANDWIDTH,
     ["bandwidth", "--op", "send", "--values", "64k"], None, MEANS),
    ("write bandwidth, 4 pairs", ["ib_write_bw", "-s", "65536", "-q", "4"], BANDWIDTH,
     ["qps", "--op", "write", "--size", "65536"], ("bandwidth", "4"), PAIRS),
    ("send latency (qperf)", ["qperf", "-cp", "1", "rc_lat"], LATENCY, ["latency", "--op", "send", "--values", "1"], None, LOOP),
    ("write bandwidth (qperf)", ["qperf", "-cp", "1", "rc_rdma_write_bw"], BANDWIDTH,
     ["bandwidth", "--op", "write", "--values", "64k"], None, MEANS),
    ("connection (cmtime)", ["cmtime"], CONNECTION, ["cm"], ("", "16"), STEPS),
]


class Failed(Exception):
    """A program has given no figure: its command and what it printed. The other rows go on."""

    def __init__(self, command, text):
        super().__init__(f"{command}:\n{text.strip()[-2000:]}")


class Device:
    """What depends on the device: counts, samples, and arguments of the other programs."""

    def __init__(self, options):
        self.name, self.port = options.device, 18700 + os.getpid() % 1000
        self.environment = dict(os.environ)
        self.soft = options.library != "-"
        self.no_inline = False  # said by perftest
        if self.soft:
            # Batches shorter than a turn of the scheduler, so that the median leaves out those that lost the processor.
            self.environment["LD_PRELOAD"] = options.library
            samples, self.ours, self.gid, self.address = 301, [], [], "127.0.0.1"
            self.qperf = ["localhost"]
            self.messages, self.events, self.large, self.connections, self.seconds = "20000", "5000", "2000", "100", "1"
        else:
            samples, self.ours, self.gid, self.address = 31, ["--timeout", "60"], ["-x", "1"], "10.77.0.10"
            self.qperf = [self.address, "-cm", "1"]  # qperf sets no GID, which Ethernet needs; librdmacm does
            self.messages, self.events, self.large, self.connections, self.seconds = "1000", "500", "50", "20", "3"
        self.ours += ["--samples", str(samples), "--time", str(TIME_MS)]
        self.batch_us = 1e3 * TIME_MS / samples

    def count(self, command, kind):
        return self.events if "-e" in command else self.messages if kind == LATENCY else self.large


def listens(number):
    pattern = re.compile(r":%04X 0*:0000 0A" % number)
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path, encoding="ascii") as table:
            if pattern.search(table.read()):
                return True
    return False


def pair(device, server, client, number):
    """Output of the client. The server listens at this TCP port, 0: after half a second; it ends by itself, or is ended."""
    behind = subprocess.Popen(["taskset", "-c", "1", *server], env=device.environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        if number == 0:
            time.sleep(0.5 if device.soft else 4)
        for _ in range(6000 if number else 0):
            if listens(number):
                break
            time.sleep(0.01)
        done = subprocess.run(["taskset", "-c", "0", *client], env=device.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, timeout=120)
        return done.stdout.decode()
    finally:
        behind.terminate()
        behind.wait()


def other_cmtime(device):
    count = ["-c", device.connections]
    text = pair(device, ["cmtime", "-p", str(device.port), *count],
                ["cmtime", "-s", device.address, "-p", str(device.port), *count], 0)
    of = {step.strip(): float(columns.split()[-1]) for step, _, columns in (line.partition(":") for line in text.splitlines())
          if columns.strip()}
    if any(step not in of for step in CM_STEPS):
        raise Failed("cmtime", text)
    return 1e3 * sum(of[step] for step in CM_STEPS)


def other_qperf(device, command, kind):
    port, size = ["-lp", str(device.port)], ["-m", "1" if kind == LATENCY else "64K"]
    text = pair(device, ["qperf", *port],
                ["qperf", *port, "-t", device.seconds, "-u", "-i", device.name, *size, *device.qperf, *command[1:]], device.port)
    found = re.search(r"(?:latency|bw) *= *([0-9.,]+) *(ns|us|ms|KB/sec|MB/sec|GB/sec|bytes/sec)", text)
    if not found:
        raise Failed(" ".join(command), text)
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "KB/sec": 1e-3, "MB/sec": 1, "GB/sec": 1e3, "bytes/sec": 1e-6}
    return float(found.group(1).replace(",", "")) * scale[found.group(2)]


def as_batches(samples, batch_us):
    """strata-miba's figure is the median of the means of its batches; a median of single messages is some 5 % less."""
    length = max(1, round(batch_us / statistics.median(samples)))
    return statistics.median(statistics.mean(samples[i:i + length]) for i in range(0, max(1, len(samples) - length + 1), length))


def other(device, command, kind):
    """Nanoseconds, or MB/s of 10^6 bytes."""
    device.port += 1
    if command[0] == "cmtime":
        return other_cmtime(device)
    if command[0] == "qperf":
        return other_qperf(device, command, kind)
    command = [command[0], "-d", device.name, *device.gid, "-p", str(device.port), "-F", "-n", device.count(command, kind),
               *SAME[kind], *command[1:]]
    text = pair(device, command, [*command, "localhost"], device.port)
    device.no_inline |= NO_INLINE in text
    if kind == LATENCY:
        samples = [float(us) for us in re.findall(r"^[0-9]+, ([0-9.e+-]+)$", text, re.MULTILINE)]
        if samples:
            return 1e3 * as_batches(samples, device.batch_us)
    rows = [line.split() for line in text.splitlines() if re.match(r"^ *[0-9]+ +[0-9]+ ", line)]
    if not rows or kind == LATENCY:
        raise Failed(" ".join(command), text)
    return float(rows[-1][3]) * 1048576 / 1e6


def ours(device, tool, arguments, kind, wanted):
    command = [tool, "--csv", "--transport", "RC", "--device", device.name, *device.ours, *arguments]
    done = subprocess.run(command, env=device.environment, stdout=subprocess.PIPE, check=True, timeout=300)
    rows = [line.split(",") for line in done.stdout.decode().splitlines()[1:]]
    if kind == CONNECTION:
        return sum(float(row[8]) for row in rows if row[6] == wanted[1] and row[8])
    for row in rows:
        if row[8] and (wanted or (row[4], row[6])) == (row[4], row[6]):
            median = float(row[8])
            return median if row[7] == "MB/s" or kind == LATENCY else 65536 * 1e3 / median
    raise Failed(" ".join(command), f"no such figure\n{done.stdout.decode()}")


def verdict(device, ratio, inside):
    if abs(ratio - 1) <= TARGET:
        return "met"
    if inside:
        return "MISSED, within the other's own spread" if device.soft else "met, within the other's own spread"
    return "MISSED"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool")
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="soft0")
    parser.add_argument("--only")
    parser.add_argument("--exchange")
    options = parser.parse_args()
    device = Device(options)
    gauge = Gauge(options.exchange, [0, 1])
    missed, rows = [], 0
    print(f"load average {os.getloadavg()[0]:.1f}; {options.rounds} rounds; medians; target: " +
          (f"{TARGET:.0%}" if device.soft else f"{TARGET:.0%} or the other's own spread"))
    print(f"{'':26}{'strata-miba':>13}{'other':>13}{'ratio':>8}  {'quartiles of the other':24}verdict")
    for name, command, kind, arguments, wanted, remark in CASES:
        if options.only and options.only not in name:
            continue
        if not shutil.which(command[0]):
            print(f"{name:26}{command[0]} is not installed")
            continue
        mine, theirs = [], []
        # perftest takes one event and polls once: softhca's other way of arming makes it wait for events that do not come.
        device.environment["SOFTHCA_ARM"] = "new" if "-e" in command else "unpolled"
        rows += 1
        try:
            for _ in range(options.rounds):
                theirs.append(gauge.run(functools.partial(other, device, command, kind)))
                if wanted and wanted[0] == "inline" and device.no_inline:
                    wanted, name = ("copied", wanted[1]), name.replace("inline", "not inline")
                mine.append(gauge.run(functools.partial(ours, device, options.tool, arguments, kind, wanted)))
        except (Failed, subprocess.SubprocessError) as why:
            missed.append(name)
            print(f"{name:26}FAILED: {why}", flush=True)
            continue
        low, _, high = statistics.quantiles(theirs, n=4)
        a, b = statistics.median(mine), statistics.median(theirs)
        said = verdict(device, a / b, low <= a <= high)
        if said.startswith("MISSED"):
            missed.append(name)
            said += f" ({remark})" if remark else ""
        unit = "MB/s" if kind == BANDWIDTH else "ns"
        spread = f"{low:.0f} to {high:.0f}"
        print(f"{name:26}{a:8.0f} {unit:4}{b:8.0f} {unit:4}{a / b:8.3f}  {spread:24}{said}", flush=True)
    if device.no_inline:
        print("perftest does not know the device and disables inline: rows of -I compare messages that are copied")
    if str(gauge):
        print(gauge)
    print(f"RESULT: {rows - len(missed)} of {rows} rows met" + (f"; missed: {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
