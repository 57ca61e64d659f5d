#!/usr/bin/env python3
"""Makes docs/measured/eager-rdma.md, and its figures by gnuplot, of what bench/eager_rdma.sh has measured.
usage: eager_rdma_page.py RAW FOLDER [--quick]. A line of RAW is "MODE WAY TEST X VALUE"; figures are medians of those alike."""
import collections
import datetime
import os
import shutil
import statistics
import subprocess
import sys

MODES = {"short": "softhca, writes by stores", "kernel": "softhca, all by the kernel (`SOFTHCA_SHORT=0`)",
         "rxe": "Soft-RoCE in the guest"}
WAYS = ("off", "flag", "seal", "imm", "auto")
CHANNEL = ("flag", "seal", "imm")
NAMES = {"off": "send/receive", "flag": "flag", "seal": "seal", "imm": "imm", "auto": "auto"}
RATIOS = ["best of the channel / send/receive", "auto / send/receive"]


class Raw:
    """The figures: medians by mode, way, test and X."""

    def __init__(self, path):
        values = collections.defaultdict(list)
        self.rounds = 0
        self.load = None  # the highest at the beginning of a run: later its own jobs are the load
        with open(path, encoding="utf-8") as f:
            for line in f:
                word = line.split()
                if word[:1] == ["done"]:
                    self.rounds = max(self.rounds, int(word[4]))
                elif word[:1] == ["load"]:
                    self.load = max(self.load or 0.0, float(word[1]))
                elif len(word) == 5:
                    values[tuple(word[:4])].append(float(word[4]))
        self.median = {key: statistics.median(of) for key, of in values.items()}

    def modes(self):
        return [m for m in MODES if any(key[0] == m for key in self.median)]

    def xs(self, mode, test):
        found = {x for m, _, t, x in self.median if (m, t) == (mode, test)}
        return sorted(found, key=lambda x: (not x.isdigit(), int(x) if x.isdigit() else 0, x))

    def at(self, mode, way, test, x):
        return self.median.get((mode, way, test, str(x)))


def cell(value, digits=3):
    return "" if value is None else f"{value:.{digits}f}"


def ratio(part, whole):
    return "" if not part or not whole else f"{part / whole:.2f}"


def ratios(row, best=min):
    """Ratios of values by WAYS: of the best of the channel, and of auto."""
    value = dict(zip(WAYS, row))
    of = [value[w] for w in CHANNEL if value[w]]
    return [ratio(best(of) if of else None, value["off"]), ratio(value["auto"], value["off"])]


class Page:
    def __init__(self, raw, folder):
        self.raw, self.folder, self.lines = raw, folder, []
        self.pictures = os.path.join(folder, "eager-rdma")

    def say(self, *lines):
        self.lines += lines

    def table(self, heads, rows):
        self.say("| " + " | ".join(heads) + " |", "|" + "---|" * len(heads))
        self.say(*("| " + " | ".join(row) + " |" for row in rows), "")

    def picture(self, name, title, xlabel, ylabel, curves, logx=True, logy=False):
        """curves: (title, [(x, y), ...]). Without gnuplot there is none."""
        curves = [(title_, points) for title_, points in curves if len(points) > 1]
        if not curves or not shutil.which("gnuplot"):
            return
        os.makedirs(self.pictures, exist_ok=True)
        script = [f"set terminal svg size 640,400 noenhanced font 'sans,11'\nset output '{self.pictures}/{name}.svg'",
                  f"set title '{title}'\nset xlabel '{xlabel}'\nset ylabel '{ylabel}'\nset key left top\nset grid"]
        script += ["set logscale x 2"] * logx + ["set logscale y"] * logy
        script += ["set yrange [0:*]"] * (not logy)
        script.append("plot " + ", ".join(f"'-' with linespoints title '{t}'" for t, _ in curves))
        for _, points in curves:
            script += [f"{x} {y}" for x, y in points] + ["e"]
        subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)
        self.say(f"![{title}](eager-rdma/{name}.svg)", "")

    def compare(self, mode, test, name, title, unit, more_is_better=False, digits=3):
        """Send and receive beside the ways of the channel, by size."""
        xs = self.raw.xs(mode, test)
        if not xs:
            return
        self.say(f"### {title}", "")
        rows = []
        for x in xs:
            row = [self.raw.at(mode, way, test, x) for way in WAYS]
            rows.append([x] + [cell(v, digits) for v in row] + ratios(row, max if more_is_better else min))
        self.table(["bytes"] + [f"{NAMES[w]}, {unit}" for w in WAYS] + RATIOS, rows)
        self.picture(f"{name}-{mode}", f"{title}: {MODES[mode].replace('`', '')}", "bytes", unit,
                     [(NAMES[w], [(x, v) for x in xs if (v := self.raw.at(mode, w, test, x)) is not None]) for w in WAYS],
                     logy=int(xs[-1]) > 16384)

    def device(self, mode):
        xs = self.raw.xs(mode, "send")
        kinds = ("send", "write", "write_imm", "two_writes", "gather")
        if not xs:
            return
        self.say("### The device: figures 1, 4 and 7", "",
                 "Half of a round trip, us: a send; one write whose last byte is polled; a write with immediate data; data and flag "
                 "as two writes; data and flag gathered by one.", "")
        self.table(["bytes", *(k.replace("_", " ") for k in kinds), "write / send"],
                   [[x, *(cell(self.raw.at(mode, "raw", k, x)) for k in kinds),
                     ratio(self.raw.at(mode, "raw", "write", x), self.raw.at(mode, "raw", "send", x))] for x in xs])
        self.picture(f"device-{mode}", f"The device: {MODES[mode].replace('`', '')}", "bytes", "us",
                     [(k.replace("_", " "), [(x, self.raw.at(mode, "raw", k, x)) for x in xs]) for k in kinds])

    def share(self, mode):
        """How much of the device's own difference the channel has, at 8 bytes."""
        send, write = (self.raw.at(mode, "raw", k, 8) for k in ("send", "write"))
        off = self.raw.at(mode, "off", "latency", 8)
        if not (send and write and off):
            return
        gains = {w: off - v for w in CHANNEL if (v := self.raw.at(mode, w, "latency", 8))}
        if not gains:
            return
        best = max(gains, key=lambda w: gains[w])
        self.say(f"Of 8 bytes the device's write is {send - write:.3f} us ({100 * (send - write) / send:.0f} %) below its send; a "
                 f"message by the channel ({best}) is {gains[best]:.3f} us ({100 * gains[best] / off:.0f} %) below one by send and "
                 "receive.", "")

    def collectives(self, mode):
        tests = sorted({t for m, _, t, _ in self.raw.median if m == mode and t.split("_")[0] in ("barrier", "allreduce", "bcast")},
                       key=lambda t: (t.split("_")[0] != "barrier", t.split("_")[0], int(t.split("_")[1])))
        if not tests:
            return
        self.say("### Barrier, allreduce, broadcast: figures 15 to 17", "")
        rows = []
        for test in tests:
            kind, ranks = test.split("_")
            for x in self.raw.xs(mode, test):
                row = [self.raw.at(mode, w, test, x) for w in WAYS]
                rows.append([kind, ranks, x] + [cell(v, 2) for v in row] + ratios(row))
        self.table(["", "ranks", "bytes"] + [f"{NAMES[w]}, us" for w in WAYS] + RATIOS, rows)
        barriers = [t for t in tests if t.startswith("barrier")]
        self.picture(f"barrier-{mode}", f"Barrier: {MODES[mode].replace('`', '')}", "ranks", "us",
                     [(NAMES[w], [(t.split("_")[1], v) for t in barriers if (v := self.raw.at(mode, w, t, 0))]) for w in WAYS],
                     logx=False)
        most = max(int(t.split("_")[1]) for t in tests)
        for kind, title in (("allreduce", "Allreduce"), ("bcast", "Broadcast")):
            test = f"{kind}_{most}"
            self.picture(f"{kind}-{mode}", f"{title} of {most} ranks: {MODES[mode].replace('`', '')}", "bytes", "us",
                         [(NAMES[w], [(x, v) for x in self.raw.xs(mode, test) if (v := self.raw.at(mode, w, test, x))])
                          for w in WAYS])

    def polling(self, mode):
        xs = self.raw.xs(mode, "rings")
        if not xs:
            return
        names = {"off": "no rings", "few": "16 places", "quiet": "quiet in turn", "sequential": "all, sequential",
                 "circular": "all, circular", "prioritised": "all, prioritised"}
        self.say("### Polling by the number of peers: figures 3 and 20", "",
                 "All contexts share a thread, and each peer is connected. Without rings, a round looks at the CQ. With default parameters "
                 "16 peers have a ring, which may pass to another. Else each has one: quiet ones are polled in turn, as by default, or all "
                 "in every round (`eager_rdma_lively 1024`), in the order of `eager_rdma_order`.", "")
        tests = (("rings", "One `strata_progress` that finds nothing, us", 3),
                 ("ping", "Ping-pong with the peer that was connected first, 8 bytes, half of a round trip, us", 3),
                 ("ping_last", "Ping-pong with the peer that was connected last, us", 3),
                 ("quiet", "One message of 8 bytes from a peer that has sent none for long, us", 3))
        for test, title, digits in tests:
            ways = [w for w in names if any(self.raw.at(mode, w, test, x) is not None for x in xs)]
            if not ways:
                continue
            self.say(f"{title}:", "")
            self.table(["peers", *(names[w] for w in ways)],
                       [[x, *(cell(self.raw.at(mode, w, test, x), digits) for w in ways)] for x in xs])
        one, most = (self.raw.at(mode, "few", "ping", x) for x in (1, xs[-1]))
        if one and most:
            self.say(f"With default parameters, the ping-pong takes {most / one:.2f} times as long with {xs[-1]} connected peers as with "
                     "one.", "")
        self.picture(f"polling-{mode}", "A round of polling, by peers", "peers", "us",
                     [(names[w], [(x, v) for x in xs if (v := self.raw.at(mode, w, "rings", x)) is not None]) for w in names])

    def applications(self, mode):
        names = self.raw.xs(mode, "hit_rate")
        if not names:
            return
        self.say("### Applications: table 1, and how many messages go by rings", "",
                 "Sources: peers that a rank got messages from, mean. Rings: messages of eager RDMA in a hundred.", "")
        rows = []
        for name in names:
            rows.append([name, cell(self.raw.at(mode, "flag", "sources", name), 1),
                         *(cell(self.raw.at(mode, w, "hit_rate", name), 1) for w in ("flag", "auto")),
                         *(cell(self.raw.at(mode, w, "time", name), 2) for w in ("off", "flag", "auto"))])
        self.table(["", "sources", "flag: by rings, %", "auto: by rings, %", "send/receive, s", "flag, s", "auto, s"], rows)

    def write(self):
        with open(os.path.join(self.folder, "eager-rdma.md"), "w", encoding="utf-8") as f:
            f.write("\n".join(self.lines).rstrip() + "\n")


def machine(load):
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                model = " ".join(line.split(":", 1)[1].split())
                break
    busy = f"load before it {load:.1f}" if load is not None else "load not noted"
    if load is not None and load > os.cpu_count() / 2:
        busy = f"**busy, {busy}: figures of this run say little**"
    return f"{model}, {os.cpu_count()} processors, Linux {os.uname().release}; {datetime.date.today()}; {busy}"


def main():
    raw, folder, quick = Raw(sys.argv[1]), sys.argv[2], "--quick" in sys.argv
    page = Page(raw, folder)
    page.say("# Eager RDMA beside send and receive", "",
             f"{machine(raw.load)}; medians of {raw.rounds} rounds. `make bench-eager-rdma{' EAGER=--quick' if quick else ''}`, which writes "
             "this page.", "",
             "After \"High Performance RDMA-Based MPI Implementation over InfiniBand\"; figures are numbered as there. The design: "
             "[eager-rdma.md](../design/eager-rdma.md), with the three ways of finding a message (flag, seal, imm). A last column "
             "below 1 is a gain of the channel, of bandwidths one above 1.", "")
    for mode in raw.modes():
        page.say(f"## {MODES[mode][0].upper() + MODES[mode][1:]}", "")
        page.device(mode)
        page.share(mode)
        page.compare(mode, "latency", "latency", "Latency, figure 11: half a round trip", "us")
        page.compare(mode, "bw", "bandwidth", "Bandwidth, figures 12 and 13: windows of 100", "MB/s", more_is_better=True, digits=1)
        page.compare(mode, "overhead", "overhead", "Host overhead (LogP o), figure 14", "us")
        page.collectives(mode)
        page.polling(mode)
        page.applications(mode)
    page.write()
    print(os.path.join(folder, "eager-rdma.md"))


main()
