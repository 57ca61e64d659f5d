#!/usr/bin/env python3
"""strata-miba beside perftest, qperf and cmtime, in turns: medians of the same settings, and their ratio.

usage: miba_compare.py TOOL LIBRARY [--rounds N] [--device NAME] [--only NAME] [--exchange PROGRAM] [--control]

LIBRARY is libsofthca.so; "-" for a device of the kernel, such as rxe0 in the guest. The other program's server and client stay on
processors 0 and 1, as both sides of strata-miba do. Each row says whether it is met: on softhca within 3 % of the other program; on a
device of the kernel within that or within the other's own spread, the quartiles of its rounds. Each second round begins with the other
program. With --control it is compared with itself: such ratios are the noise of the machine. With --exchange, bench/exchange of the
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
# as long as strata-miba's. Of a bandwidth: window and completions (-t, -Q), the clock read at its begin and end only (-N).
SAME = {LATENCY: ["-U"], BANDWIDTH: ["-t", "64", "-Q", "1", "-N"]}
RECEIVES = ["-r", "64"]
# Reads and atomic operations under way at most (MOST_READS of strata-miba); without it perftest has as many as the device allows.
READS = ["-o", "16"]
# What a latency of strata-miba does as perftest does: a time stamp for each message, on both sides.
STAMPS = ["--stamps", "1"]
# With several pairs perftest has a window for each (64), and a buffer; its first round fills one window after the other, and completions
# that are polled in this order keep it.
PAIRS = ["--qps", "4", "--window", "256", "--buffers", "4", "--burst", "64"]
# qperf has one queue of completions for both directions of a latency, and this many messages in flight of a bandwidth.
ONE_QUEUE = ["--one-cq", "1"]
QPERF_WINDOW = ["--window", "1024"]
# Differences that remain, printed with a row that is missed.
LOOP = "qperf posts one receive; three digits"
STEPS = "cmtime has each step under way for all connections at once; strata-miba has one after the other, its server in the same process"
# perftest has a list of devices, and disables inline on others whatever -I says: its messages are copied, and so are ours then.
NO_INLINE = "Disabling it"
# Name, the other program with its arguments, its kind, our arguments, the variant and value of the row that is compared, the remark.
CASES = [
    ("send latency", ["ib_send_lat", "-s", "8", "-I", "0", *RECEIVES], LATENCY,
     ["latency", "--op", "send", "--values", "8", *STAMPS], None, ""),
    ("write latency", ["ib_write_lat", "-s", "8", "-I", "0"], LATENCY, ["latency", "--op", "write", "--values", "8", *STAMPS], None, ""),
    ("read latency", ["ib_read_lat", "-s", "8", *READS], LATENCY, ["latency", "--op", "read", "--values", "8", *STAMPS], None, ""),
    ("atomic latency", ["ib_atomic_lat", "-A", "FETCH_AND_ADD", *READS], LATENCY, ["atomics", "--op", "fetch_add", *STAMPS], ("", "1"), ""),
    ("inline send latency", ["ib_send_lat", "-s", "64", "-I", "64", *RECEIVES], LATENCY,
     ["inline", "--op", "send", "--values", "64", *STAMPS], ("inline", "64"), ""),
    ("inline write latency", ["ib_write_lat", "-s", "64", "-I", "64"], LATENCY,
     ["inline", "--op", "write", "--values", "64", *STAMPS], ("inline", "64"), ""),
    ("send latency by events", ["ib_send_lat", "-s", "8", "-e", "-I", "0", *RECEIVES], LATENCY,
     ["events", "--op", "send", "--size", "8", *STAMPS], ("latency", "2"), ""),
    ("write bandwidth", ["ib_write_bw", "-s", "65536"], BANDWIDTH, ["bandwidth", "--op", "write", "--values", "64k"], None, ""),
    ("read bandwidth", ["ib_read_bw", "-s", "65536", *READS], BANDWIDTH, ["bandwidth", "--op", "read", "--values", "64k"], None, ""),
    ("send bandwidth", ["ib_send_bw", "-s", "65536", "-r", "512"], BANDWIDTH,
     ["bandwidth", "--op", "send", "--values", "64k"], None, ""),
    ("write bandwidth, 4 pairs", ["ib_write_bw", "-s", "65536", "-q", "4"], BANDWIDTH,
     ["bandwidth", "--op", "write", "--values", "64k", *PAIRS], None, ""),
    ("send latency (qperf)", ["qperf", "-cp", "1", "rc_lat"], LATENCY,
     ["latency", "--op", "send", "--values", "1", *ONE_QUEUE], None, LOOP),
    ("write bandwidth (qperf)", ["qperf", "-cp", "1", "rc_rdma_write_bw"], BANDWIDTH,
     ["bandwidth", "--op", "write", "--values", "64k", *QPERF_WINDOW], None, ""),
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
        self.gauge, self.rounds, self.control = Gauge(options.exchange, [0, 1]), options.rounds, options.control
        self.environment = dict(os.environ)
        self.soft = options.library != "-"
        self.no_inline = False  # said by perftest
        if self.soft:
            # Batches of latencies shorter than a turn of the scheduler: the median leaves out those that lost the processor.
            self.environment["LD_PRELOAD"] = options.library
            self.timeout, self.gid, self.address, self.qperf = [], [], "127.0.0.1", ["localhost"]
            self.batch, self.samples, self.messages, self.events, self.large = 192, 301, 20000, 5000, 7680
            self.connections, self.seconds, self.in_a_second = "100", 1, {LATENCY: 400000, BANDWIDTH: 90000}
        else:
            self.timeout, self.gid, self.address = ["--timeout", "60"], ["-x", "1"], "10.77.0.10"
            self.qperf = [self.address, "-cm", "1"]  # qperf sets no GID, which Ethernet needs; librdmacm does
            self.batch, self.samples, self.messages, self.events, self.large = 48, 31, 1000, 500, 1024
            self.connections, self.seconds, self.in_a_second = "20", 3, {LATENCY: 10000, BANDWIDTH: 600}

    def count(self, command, kind):
        """Messages of a run of perftest, for each pair."""
        if kind == LATENCY:
            return self.events if "-e" in command else self.messages
        return self.large // (int(command[command.index("-q") + 1]) if "-q" in command else 1)

    def sampling(self, command, kind):
        """Arguments for samples of strata-miba that are means over as many messages as the other's: the difference of a batch and one
        of a quarter of it."""
        if kind == CONNECTION:
            return ["--samples", "31"]
        if command[0] == "qperf":
            samples, messages = 1, self.seconds * self.in_a_second[kind]
        elif kind == BANDWIDTH:
            samples, messages = 1, self.large  # of several the median would leave out those that lost the processor
        else:
            samples, messages = self.samples, self.batch
        return ["--samples", str(samples), "--time", str(TIME_MS), "--count", str(messages * 4 // 3)]


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
                ["qperf", *port, "-t", str(device.seconds), "-u", "-i", device.name, *size, *device.qperf, *command[1:]], device.port)
    found = re.search(r"(?:latency|bw) *= *([0-9.,]+) *(ns|us|ms|KB/sec|MB/sec|GB/sec|bytes/sec)", text)
    if not found:
        raise Failed(" ".join(command), text)
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "KB/sec": 1e-3, "MB/sec": 1, "GB/sec": 1e3, "bytes/sec": 1e-6}
    return float(found.group(1).replace(",", "")) * scale[found.group(2)]


def as_batches(samples, length):
    """strata-miba's figure is the median of the means of its batches; a median of single messages is some 5 % less."""
    return statistics.median(statistics.mean(samples[i:i + length]) for i in range(0, max(1, len(samples) - length + 1), length))


def other(device, command, kind):
    """Nanoseconds, or MB/s of 10^6 bytes."""
    device.port += 1
    if command[0] == "cmtime":
        return other_cmtime(device)
    if command[0] == "qperf":
        return other_qperf(device, command, kind)
    command = [command[0], "-d", device.name, *device.gid, "-p", str(device.port), "-F", "-n", str(device.count(command, kind)),
               *SAME[kind], *command[1:]]
    text = pair(device, command, [*command, "localhost"], device.port)
    device.no_inline |= NO_INLINE in text
    if kind == LATENCY:
        samples = [float(us) for us in re.findall(r"^[0-9]+, ([0-9.e+-]+)$", text, re.MULTILINE)]
        if samples:
            return 1e3 * as_batches(samples, device.batch)
    rows = [line.split() for line in text.splitlines() if re.match(r"^ *[0-9]+ +[0-9]+ ", line)]
    if not rows or kind == LATENCY:
        raise Failed(" ".join(command), text)
    return float(rows[-1][3]) * 1048576 / 1e6


def ours(device, tool, sampling, arguments, kind, wanted):
    command = [tool, "--csv", "--transport", "RC", "--device", device.name, *device.timeout, *sampling, *arguments]
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


def row(device, tool, case):
    """Prints a row; whether it is met. Each second round begins with the other program, so that neither always comes second."""
    name, command, kind, arguments, wanted, remark = case
    mine, theirs = [], []
    # perftest takes one event and polls once: softhca's other way of arming makes it wait for events that do not come.
    device.environment["SOFTHCA_ARM"] = "new" if "-e" in command else "unpolled"
    their_job = functools.partial(other, device, command, kind)
    try:
        for i in range(device.rounds):
            if i % 2 == 0:
                theirs.append(device.gauge.run(their_job))
            if wanted and wanted[0] == "inline" and device.no_inline:
                wanted, name = ("copied", wanted[1]), name.replace("inline", "not inline")
            own_job = functools.partial(ours, device, tool, device.sampling(command, kind), arguments, kind, wanted)
            mine.append(device.gauge.run(their_job if device.control else own_job))
            if i % 2 == 1:
                theirs.append(device.gauge.run(their_job))
    except (Failed, subprocess.SubprocessError) as why:
        print(f"{name:26}FAILED: {why}", flush=True)
        return False
    low, _, high = statistics.quantiles(theirs, n=4)
    a, b = statistics.median(mine), statistics.median(theirs)
    said = verdict(device, a / b, low <= a <= high)
    met = not said.startswith("MISSED")
    if not met and remark:
        said += f" ({remark})"
    unit = "MB/s" if kind == BANDWIDTH else "ns"
    spread = f"{low:.0f} to {high:.0f}"
    print(f"{name:26}{a:8.0f} {unit:4}{b:8.0f} {unit:4}{a / b:8.3f}  {spread:24}{said}", flush=True)
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool")
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="soft0")
    parser.add_argument("--only")
    parser.add_argument("--exchange")
    parser.add_argument("--control", action="store_true")
    options = parser.parse_args()
    device = Device(options)
    missed, rows = [], 0
    print(f"load average {os.getloadavg()[0]:.1f}; {options.rounds} rounds; medians; target: " +
          (f"{TARGET:.0%}" if device.soft else f"{TARGET:.0%} or the other's own spread"))
    print(f"{'':26}{'other' if options.control else 'strata-miba':>13}{'other':>13}{'ratio':>8}  {'quartiles of the other':24}verdict")
    for case in CASES:
        name, command = case[:2]
        if options.only and options.only not in name:
            continue
        if not shutil.which(command[0]):
            print(f"{name:26}{command[0]} is not installed")
            continue
        rows += 1
        if not row(device, options.tool, case):
            missed.append(name)
    if device.no_inline:
        print("perftest does not know the device and disables inline: rows of -I compare messages that are copied")
    if str(device.gauge):
        print(device.gauge)
    print(f"RESULT: {rows - len(missed)} of {rows} rows met" + (f"; missed: {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
