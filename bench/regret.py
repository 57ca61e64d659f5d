#!/usr/bin/env python3
"""What the choice of protocol costs on this machine: the default beside every way that parameters can force.

For each transport, pattern and size the default and all ways take turns in random order, one job each, round after round; the peers
stand beside. regret_judge.py says how rows are judged: one is short where the lower end of its regret lies above 10 %, and the median
of all rows shall be at most 2 %. Exit status 0 when that holds, 1 when not, 2 for wrong usage.

--set names what is measured together and written to a page of docs/measured. Each job's figures are kept in --state when it has ended,
so that a run that was broken off goes on where it stopped, as long as build and options are the same.
"""
import argparse
import datetime
import glob
import hashlib
import json
import os
import platform
import random
import shutil
import subprocess
import sys

from exchange_states import samples_of
from machine import processor
from regret_page import MARK, report
from regret_ways import PATTERNS, PEERS, SETS, SLOW_COPIES, TUNES, WAITING, patterns_of, ways_of


def processors():
    return sorted(os.sched_getaffinity(0))


def siblings():
    """Two threads of one core, or None."""
    for path in sorted(glob.glob("/sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list")):
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
        ends = [int(end) for part in text.split(",") for end in part.split("-")]
        if len(ends) > 1 and set(ends[:2]) <= set(processors()):
            return ends[:2]
    return None


def cost(row):
    """What a row of strata-perf is about, and its samples: [us, exchange of a cache line before, after]."""
    if "op" in row:
        return f"{row['op']} {row['bytes']}", [[us, 0, 0] for us in row["in_call"]["samples"]]
    return row["bytes"], [[row["bytes"] / value if row["unit"] == "MB/s" else value, *exchange] for value, *exchange in samples_of(row)]


class Runner:
    """Runs one job and takes the costs of a message, in us, from what strata-perf prints."""

    def __init__(self, options):
        self.options = options
        self.tools = os.environ.get("STRATA_BUILD", "")
        self.preload = os.path.join(self.tools, "bench/.libs/slow_machine.so")
        if any(options.slow) and not os.access(self.preload, os.R_OK):
            sys.exit(f"regret: --slow: {self.preload} is not built; use `make bench-regret`")

    def tool(self, name):
        built = os.path.join(self.tools, name)
        return built if self.tools and os.access(built, os.X_OK) else shutil.which(name)

    def arguments(self, transport, pattern):
        ranks, words = PATTERNS[pattern]
        sizes = "8:64" if pattern in WAITING else self.options.sizes
        words = [*words, "--json", "--sizes", sizes, "--batches", str(self.options.batches)]
        places = siblings() if pattern == "siblings" else processors()[:2]
        if ranks == 2 and len(places) == 2:
            words += ["--cpus", ",".join(map(str, places))]
            words += ["--exchange"] if transport != "self" else []
        return ranks, words

    def run(self, command, slow, environment=None):
        slowed = {"LD_PRELOAD": self.preload, "SLOW_MACHINE": slow} if slow else {}
        try:
            done = subprocess.run(command, env={**os.environ, **slowed, **(environment or {})}, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=self.options.timeout, check=False, text=True)
            rows = json.loads(done.stdout)["rows"]
        except subprocess.TimeoutExpired:
            sys.exit(f"regret: not ended after {self.options.timeout} s: {' '.join(command)}")
        except (ValueError, KeyError):
            sys.exit(f"regret: status {done.returncode}: {' '.join(command)}\n{done.stderr[-2000:]}")
        return dict(cost(row) for row in rows)

    def strata(self, transport, pattern, settings, slow):
        ranks, words = self.arguments(transport, pattern)
        if transport == "sm" and "copy=" in slow:
            settings = {**SLOW_COPIES, **settings}
        command = [self.tool("strata-run"), *(["--softhca"] if transport == "openib" and not self.options.device else []), "-n", str(ranks)]
        alone = ["self"] if transport == "self" else [transport, "self"]
        if transport == "self":
            command[-1] = "1"
        for name, value in {"btl": ",".join(alone), "rcache": "tree", **settings}.items():
            if name != "rcache" or transport == "openib":
                command += ["--mca", name, value]
        return self.run([*command, self.tool("strata-perf"), *words], slow)

    def peer(self, name, pattern):
        ranks, words = self.arguments("sm", pattern)
        more = ["--oversubscribe", "--bind-to", "none"] if name == "openmpi" else ["-bind-to", "none"]
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return self.run([PEERS[name], *more, "-n", str(ranks), self.tool("strata-mpi-twin." + name), *words], "", root)

    def peers(self, transport, slow):
        """Peers that stand beside a transport: over their own shared memory."""
        if transport != "sm" or slow or not self.options.peers:
            return []
        return [name for name in PEERS if shutil.which(PEERS[name]) and self.tool("strata-mpi-twin." + name)]


class State:
    """Figures of jobs that have ended, by what was run; lost with another build or other options."""

    def __init__(self, options, tools):
        self.path = options.state
        if self.path is None and tools:
            self.path = os.path.join(tools, "bench", f"regret-{options.set or 'some'}.json")
        self.key = hashlib.sha256(repr(("samples", build_digest(tools), options.sizes, options.batches, options.device)).encode()).hexdigest()[:12]
        self.kept = {}
        if self.path and not options.again and os.access(self.path, os.R_OK):
            with open(self.path, encoding="utf-8") as file:
                raw = json.load(file)
            self.kept = raw["jobs"] if raw.get("key") == self.key else {}

    def put(self, job, costs):
        self.kept[job] = costs
        if self.path:
            os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
            with open(self.path + ".new", "w", encoding="utf-8") as file:
                json.dump({"key": self.key, "jobs": self.kept}, file)
            os.replace(self.path + ".new", self.path)


def build_digest(tools):
    total = hashlib.sha256()
    for path in sorted(glob.glob(os.path.join(tools, ".libs/libstrata.so*")) + glob.glob(os.path.join(tools, "plugins/*"))):
        with open(path, "rb") as file:
            total.update(hashlib.sha256(file.read()).digest())
    return total.hexdigest()


def one(runner, transport, pattern, slow, way, ways):
    """Costs of one job by size."""
    if way in ways:
        return runner.strata(transport, pattern, ways[way], slow)
    name = way.removeprefix("peer ")
    return runner.strata(transport, pattern, TUNES[name], slow) if name in TUNES else runner.peer(name, pattern)


def measure(runner, state, transport, pattern, slow, rounds):
    """Samples by way, size and round: {way: {bytes: [samples, ...]}}; what stands beside has names with a leading "peer "."""
    ways, costs = ways_of(transport, pattern), {}
    for turn in range(rounds):
        beside = [*runner.peers(transport, slow), *(TUNES if pattern not in WAITING else [])]
        order = list(ways) + ["peer " + name for name in beside]
        random.shuffle(order)
        for way in order:
            job = f"{transport}, {pattern}, {slow or 'as it is'}, round {turn + 1}: {way}"
            if job not in state.kept:
                print(f"regret: {job}", file=sys.stderr)
                result = one(runner, transport, pattern, slow, way, ways)
                state.put(job, {str(size): samples for size, samples in result.items()})
            for size, samples in state.kept[job].items():
                costs.setdefault(way, {}).setdefault(size, []).append(samples)
    return costs


def machine():
    return f"{processor()}, {len(processors())} processors, Linux {platform.release()}"


def options(words):
    parser = argparse.ArgumentParser(prog="regret", description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SETS, help="transports, patterns and slowed machines that make one page of docs/measured")
    parser.add_argument("--transports", help="with commas; any transport by its name (sm,openib,self)")
    parser.add_argument("--patterns", help="with commas (all but calls)")
    parser.add_argument("--sizes", default="1k:4m", help="as for strata-perf (%(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="turns of all ways (%(default)s)")
    parser.add_argument("--batches", type=int, default=5, help="timed batches of a job (%(default)s)")
    parser.add_argument("--timeout", type=int, default=300, help="seconds after which a job is given up (%(default)s)")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="without MPI libraries beside")
    parser.add_argument("--device", action="store_true", help="openib on this machine's adapter, not on softhca")
    parser.add_argument("--slow", metavar="LIST", action="append", default=[],
                        help="a machine slowed down by factors, e.g. copy=4,vm=2,wake=3; vm=never: without single copy; page=64k, "
                        "page=huge (slow_machine.c); several times: one after the other")
    parser.add_argument("--quick", action="store_true", help="two rounds of a few sizes: to see that all runs")
    parser.add_argument("--state", metavar="FILE", help="figures of the jobs that have ended (bench/regret-SET.json of the build folder)")
    parser.add_argument("--again", action="store_true", help="do not go on from --state")
    parser.add_argument("--page", metavar="FILE", help="write the tables there (docs/measured/ with --set), not to standard output")
    parser.add_argument("--raw", metavar="FILE", help="keep every figure, as JSON")
    parser.add_argument("--from", dest="source", metavar="FILE", help="judge what --raw has kept; nothing is run")
    chosen = parser.parse_args(words)
    wanted = SETS[chosen.set] if chosen.set else {}
    chosen.transports = (chosen.transports or wanted.get("transports", "sm,openib,self")).split(",")
    chosen.patterns = (chosen.patterns or wanted.get("patterns", ",".join(p for p in PATTERNS if p not in WAITING))).split(",")
    chosen.slow = chosen.slow or wanted.get("slow", [""])
    if chosen.quick:
        chosen.rounds, chosen.batches, chosen.sizes = 2, 2, "16k:64k"
    elif chosen.set and not chosen.page and os.environ.get("STRATA_SOURCE"):
        chosen.page = os.path.join(os.environ["STRATA_SOURCE"], "docs/measured", wanted["page"])
    for pattern in chosen.patterns:
        if pattern not in PATTERNS:
            parser.error(f"there is no pattern {pattern}; there are: {', '.join(PATTERNS)}")
    if chosen.rounds < 2:
        parser.error("--rounds: at least 2, one to choose and one to judge")
    if chosen.rounds < 6:
        print("regret: with fewer than six rounds no row is certain", file=sys.stderr)
    return chosen


def label(transport, slow):
    return f"{transport} with {slow}" if slow else transport


def page(path, raw):
    """Writes the tables; what stands from MARK on in an earlier page stays."""
    if path is None:
        return report(raw, sys.stdout)
    kept = ""
    if os.access(path, os.R_OK):
        with open(path, encoding="utf-8") as file:
            kept = file.read()
        kept = "\n" + kept[kept.index(MARK):] if MARK in kept else ""
    with open(path + ".new", "w", encoding="utf-8") as file:
        status = report(raw, file)
        file.write(kept)
    os.replace(path + ".new", path)
    return status


def main(words):
    chosen = options(words)
    if chosen.source:
        with open(chosen.source, encoding="utf-8") as file:
            return page(chosen.page, json.load(file))
    runner = Runner(chosen)
    if not (runner.tool("strata-run") and runner.tool("strata-perf")):
        sys.exit("regret: strata-run and strata-perf are neither below STRATA_BUILD nor on PATH; use `make bench-regret`")
    state = State(chosen, runner.tools)
    raw = {"machine": machine(), "date": datetime.date.today().isoformat(), "rounds": chosen.rounds, "command": " ".join(words), "costs": {}}
    for slow in chosen.slow:
        for transport in chosen.transports:
            for pattern in patterns_of(transport, chosen.patterns):
                if pattern == "siblings" and not siblings():
                    print("regret: no core here has two threads: pattern siblings is left out", file=sys.stderr)
                    continue
                costs = measure(runner, state, transport, pattern, slow, chosen.rounds)
                raw["costs"].setdefault(label(transport, slow), {})[pattern] = costs
                if chosen.raw:
                    with open(chosen.raw, "w", encoding="utf-8") as file:
                        json.dump(raw, file)
    return page(chosen.page, raw)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
