#!/usr/bin/env python3
"""Makes docs/measured/coll.md, and its figures by gnuplot, of what bench/coll.py and bench/coll_apps.sh have measured.
usage: coll_page.py RAW-FOLDER PAGE.md COMMAND. RAW-FOLDER has NAME.json (--cells), NAME.md (--out) and apps.txt, any may be missing;
figures go to a folder beside the page that has its name. A line of apps.txt is "APPLICATION RANKS WAY SECONDS"."""
import collections
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys

from coll_report import FLOOR, MOST, own, size_text, to_floor, verdict

PAPER = ("tuned/ob1", "direct", "pap_direct", "shm_direct", "pap_shm_direct", "auto")
NATIVE = "tuned/ob1"
LONG = 64 << 10
PAPER_SAYS = ((4, "pap_shm_direct", 32, 3.5), (8192, "pap_direct", 32, 3.1), (4, "pap_shm_direct", 512, 1.2), (8192, "pap_direct", 512, 1.5))


class Page:
    def __init__(self, raw, page, command):
        self.cells, self.lines, self.page, self.command = [], [], page, command
        self.name = os.path.splitext(os.path.basename(page))[0]
        self.folder = os.path.splitext(page)[0]
        self.raw = raw
        self.about = []
        for path in sorted(glob.glob(os.path.join(raw, "*.cells.json"))):
            with open(path, encoding="utf-8") as f:
                of = json.load(f)
            self.about.append(of["about"])
            self.cells += [{**cell, "op": of["about"]["op"], "transport": of["about"]["transport"]} for cell in of["cells"]]

    def say(self, *lines):
        self.lines += lines

    def find(self, **want):
        return [c for c in self.cells if all(c[key] == value for key, value in want.items())]

    def points(self, x, metric="in_call", **want):
        return sorted((c[x], c[metric]) for c in self.find(**want) if c[metric] is not None)

    def picture(self, name, title, xlabel, curves):
        """curves: (title, [(x, y), ...]). None where less than two points lie on each, or without gnuplot."""
        curves = [(text, points) for text, points in curves if len(points) > 1]
        if not curves or not shutil.which("gnuplot"):
            return
        os.makedirs(self.folder, exist_ok=True)
        script = [f"set terminal svg size 640,400 noenhanced font 'sans,11'\nset output '{self.folder}/{name}.svg'",
                  f"set title '{title}'\nset xlabel '{xlabel}'\nset ylabel 'us'\nset key left top\nset grid\nset logscale xy",
                  "plot " + ", ".join(f"'-' with linespoints title '{text}'" for text, _ in curves)]
        for _, points in curves:
            script += [f"{x} {y}" for x, y in points] + ["e"]
        subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)
        self.say(f"![{title}]({self.name}/{name}.svg)", "")

    def by_system(self, name, title, systems, **want):
        self.picture(name, title, "bytes of a block", [(s, self.points("bytes", system=s, **want)) for s in systems])

    def figures(self, transport):
        """Figures 1 to 4 of the paper, for alltoall over a transport: mean times in the call."""
        where = {"op": "alltoall", "transport": transport}
        ranks = sorted({c["ranks"] for c in self.find(late=0, **where)})
        if not ranks:
            return
        most = ranks[-1]
        self.say(f"## Figures 1 to 4 of the paper, over {transport}", "", "Alltoall, mean time in the call.", "")
        factors = sorted({c["mif"] for c in self.find(late=0, ranks=most, **where)})
        self.picture(f"figure-1-{transport}", f"Figure 1: {NATIVE}, {most} ranks, by arrival pattern", "bytes of a block",
                     [(f"MIF {m}", self.points("bytes", system=NATIVE, ranks=most, late=0, mif=m, **where)) for m in factors])
        for mif in (32, 512):
            self.by_system(f"figure-2-{transport}-{mif}", f"Figure 2: {most} ranks, MIF {mif}", PAPER, ranks=most, late=0, mif=mif, **where)
        sizes = sorted({c["bytes"] for c in self.find(late=0, mif=32, **where)})
        for size in sizes[-2:-1] or sizes:
            self.picture(f"figure-3-{transport}", f"Figure 3: {size_text(size)} bytes, MIF 32, by ranks", "ranks",
                         [(s, self.points("ranks", system=s, bytes=size, late=0, mif=32, **where)) for s in PAPER])
        for late in (25, 75):
            self.by_system(f"figure-4-{transport}-{late}", f"Figure 4: {most} ranks, {late} % late, MIF 128", PAPER, ranks=most, late=late,
                           mif=128, **where)

    def applications(self):
        """Table 1 of the paper with other programs."""
        times = collections.defaultdict(list)
        path = os.path.join(self.raw, "apps.txt")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                for line in f:
                    name, ranks, way, seconds = line.split()
                    times[name, int(ranks), way].append(float(seconds))
        if not times:
            return
        ways = list(dict.fromkeys(way for _, _, way in times))
        self.say("## Table 1 of the paper, with other programs", "",
                 "Seconds of the part that transposes, medians, under Open MPI over softhca; in brackets how many times as fast as Open MPI's "
                 "own (ob1). The paper has NPB's FT; who has its binaries runs `bench/npb.sh BINDIR`.", "")
        self.say("| program | ranks | " + " | ".join(ways) + " |", "|---|---|" + "---|" * len(ways))
        for name, ranks in sorted({key[:2] for key in times}):
            value = {w: statistics.median(times[name, ranks, w]) for w in ways if (name, ranks, w) in times}
            base = value.get("ob1")
            row = [f"{value[w]:.4f}" + (f" ({base / value[w]:.2f})" if base and value[w] > 0 else "") if w in value else "" for w in ways]
            self.say(f"| {name} | {ranks} | " + " | ".join(row) + " |")
        self.say("")

    def targets(self):
        """Each line a transport, operation and number of ranks: ratios over the sizes, of cells that the machine resolves."""
        self.say("## Targets", "",
                 "Together: form auto, or the best aware form, to the best that waits, all arriving together, mean time in the call; at most "
                 f"{MOST} is wanted at every size. Late: Strata's best form to {NATIVE} from the last arrival to the last exit, with skew that "
                 "the machine resolves; at most 0.5 is wanted. Floor: the same time to that of the call of the rank that arrives last; at "
                 f"most {FLOOR} is wanted. Medians and worst over sizes and patterns.", "",
                 "| operation | transport | ranks | together, cells met | worst | late, median | worst | cells | floor, median | worst |",
                 "|---|---|---|---|---|---|---|---|---|---|")
        for op, transport, ranks in sorted({(c["op"], c["transport"], c["ranks"]) for c in self.cells}):
            here = self.find(op=op, transport=transport, ranks=ranks)
            by = collections.defaultdict(dict)
            for c in here:
                by[c["late"], c["mif"], c["bytes"]][c["system"]] = c
            together = [t for key, of in by.items() if key[1] == 0
                        if (t := verdict({s: c["in_call"] for s, c in of.items()}))]
            skewed = [of for key, of in by.items() if key[1] > 0 and all(c["resolved"] for c in of.values()) and own(of)]
            late = [min(of[s]["after_last"] for s in own(of)) / of[NATIVE]["after_last"]
                    for of in skewed if NATIVE in of and of[NATIVE]["after_last"] > 0]
            floor = [r for of in skewed
                     if (r := to_floor(*({s: c[metric] for s, c in of.items()} for metric in ("after_last", "last_call"))))]
            met = f"{sum(t.endswith('met') for t in together)} of {len(together)}" if together else ""
            worst = f"{max(float(t.split()[0]) for t in together):.2f}" if together else ""
            row = [op, transport, str(ranks), met, worst, *(f"{f(late):.2f}" if late else "" for f in (statistics.median, max)), str(len(late)),
                   *(f"{f(floor):.2f}" if floor else "" for f in (statistics.median, max))]
            self.say("| " + " | ".join(row) + " |")
        self.say("")

    def one_machine(self):
        """coll_sm, which is chosen by itself on one machine, beside Open MPI's own over vader, all arriving together."""
        rows = []
        for op, transport, ranks in sorted({(c["op"], c["transport"], c["ranks"]) for c in self.cells}):
            ratios = {}
            for size in {c["bytes"] for c in self.cells}:
                here = {c["system"]: c["in_call"] for c in self.find(op=op, transport=transport, ranks=ranks, late=0, mif=0, bytes=size)}
                if transport.startswith("sm") and "sm" in here and here.get(NATIVE):
                    ratios[size] = here["sm"] / here[NATIVE]
            if not ratios:
                continue
            long = [r for size, r in ratios.items() if size >= LONG and ranks >= 8]
            rows.append([op, transport, str(ranks), f"{sum(r <= 1 for r in ratios.values())} of {len(ratios)}",
                         f"{statistics.median(ratios.values()):.2f}", f"{max(ratios.values()):.2f}",
                         f"{statistics.median(long):.2f}" if long else "", f"{max(long):.2f}" if long else ""])
        if rows:
            self.say("## One machine", "",
                     f"coll_sm, which is chosen by itself, to {NATIVE} over vader, all arriving together, mean time in the call: at most 1 is "
                     f"wanted at every size, of 8 ranks at most 0.5 from {size_text(LONG)} on. Medians and worst over sizes.", "",
                     "| operation | transport | ranks | cells met | median | worst | long, median | worst |", "|---|---|---|---|---|---|---|---|")
            for row in rows:
                self.say("| " + " | ".join(row) + " |")
            self.say("")

    def paper(self):
        """The paper's section 5.1 on PAP_Direct and PAP_Shm_Direct beside MPI's own alltoall, at the same size and MIF."""
        rows = []
        for transport, ranks in sorted({(c["transport"], c["ranks"]) for c in self.find(op="alltoall")}):
            for size, form, mif, theirs in PAPER_SAYS:
                here = {c["system"]: c for c in self.find(op="alltoall", transport=transport, ranks=ranks, late=0, mif=mif, bytes=size)}
                if NATIVE in here and form in here and here[form]["in_call"] > 0:
                    mark = "" if here[NATIVE]["resolved"] and here[form]["resolved"] else "*"
                    rows.append([transport, str(ranks), size_text(size), form, str(mif), f"{theirs}",
                                 f"{here[NATIVE]['in_call'] / here[form]['in_call']:.2f}{mark}"])
        if rows:
            self.say("## Beside the paper's figures", "",
                     f"How many times as fast as MPI's own alltoall (the paper: MVAPICH; here: {NATIVE}) on the same transport, mean time in "
                     "the call; * is below the resolution.", "",
                     "| transport | ranks | bytes | form | MIF | paper | here |", "|---|---|---|---|---|---|---|")
            for row in rows:
                self.say("| " + " | ".join(row) + " |")
            self.say("")

    def write(self):
        machine = self.about[0] if self.about else {"machine": "unknown", "date": ""}
        self.say("# Collectives under process arrival patterns", "",
                 'After Qian and Afsahi, "Process Arrival Pattern and Shared Memory Aware Alltoall on InfiniBand", section 5. A system with a '
                 "slash is Open MPI: its coll component over its pml; the others are forms of Strata. nodes: nodes of four ranks, sm within, "
                 "softhca between (Open MPI: openib everywhere). bound: each rank to one processor; elsewhere the kernel chooses.", "",
                 f"Machine: {machine['machine']}. {machine['date']}. `{self.command}`", "")
        if not all(a["whole"] for a in self.about):
            self.say("**Not whole**: the run was ended by its limit of time; the same command goes on.", "")
        self.targets()
        self.one_machine()
        self.paper()
        for transport in ("nodes", "softhca", "sm"):
            self.figures(transport)
        self.applications()
        for path in sorted(glob.glob(os.path.join(self.raw, "*.md"))):
            with open(path, encoding="utf-8") as f:
                self.say(f.read())
        with open(self.page, "w", encoding="utf-8") as f:
            f.write("\n".join(self.lines).rstrip() + "\n")


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    Page(*sys.argv[1:]).write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
