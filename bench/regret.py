#!/usr/bin/env python3
"""What the choice of protocol costs on this machine: the default beside every way that parameters can force.

For each transport, pattern and size the default and all ways take turns in random order, one job each, round after round; the peers
stand beside. regret_judge.py says how rows are judged: one is short where the lower end of its regret lies above 10 %, and the median
of all rows shall be at most 2 %. Exit status 0 when that holds, 1 when not, 2 for wrong usage.
"""
import argparse
import datetime
import glob
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys

from machine import processor
from regret_judge import DEFAULT, beside, judge

BOUND_ROW, BOUND_MEDIAN = 0.10, 0.02
# A long message announced and moved at once, from the smallest size on; what a way adds says how.
ASK = {"pml_ob1_eager_limit": "512", "pml_ob1_stream_limit": "0", "pml_ob1_rdma_min": "1"}
STREAM = {"pml_ob1_stream_limit": "16777216", "pml_ob1_rdma_min": "1g"}


def sm_copy(**more):
    return {**ASK, "pml_ob1_rndv": "get", **more}


ANY = {
    "stream": STREAM,
    "announced stream": {"pml_ob1_eager_limit": "512", "pml_ob1_stream_limit": "0", "pml_ob1_rdma_min": "1g"},
    "get": {**ASK, "pml_ob1_rndv": "get"},
    "put": {**ASK, "pml_ob1_rndv": "put"},
}
WAYS = {
    "sm": {
        "stream": STREAM,
        "stream by 8k": {**STREAM, "btl_sm_pipeline_send": "8k"},
        "stream by 32k": {**STREAM, "btl_sm_pipeline_send": "32k", "btl_sm_max_send": "32k"},
        "announced stream": ANY["announced stream"],
        "one gets": sm_copy(btl_sm_single_copy="one_sided"),
        "one puts": {**ASK, "pml_ob1_rndv": "put", "btl_sm_single_copy": "one_sided"},
        "both copy": sm_copy(btl_sm_single_copy="cooperative", btl_sm_coop_min="4k"),
        "both copy by 32k": sm_copy(btl_sm_single_copy="cooperative", btl_sm_coop_min="4k", btl_sm_coop_chunk="32k"),
    },
    "openib": {
        **ANY,
        "split": {**ASK, "pml_ob1_rndv": "split", "pml_ob1_split_min": "1"},
        "get by 256k": {**ASK, "pml_ob1_rndv": "get", "btl_openib_rdma_pipeline": "256k"},
    },
}
# Pattern: ranks, arguments of strata-perf. `siblings` runs only where a core has two threads.
PATTERNS = {
    "ping-pong": (2, ["latency"]),
    "window": (2, ["bw"]),
    "both": (2, ["bibw"]),
    "ring-4": (4, ["ring"]),
    "ring-8": (8, ["ring"]),
    "cold": (2, ["latency", "--cold"]),
    "siblings": (2, ["latency"]),
    "one-buffer": (2, ["bw", "--one-buffer"]),
}
PEERS = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich"}


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


class Runner:
    """Runs one job and takes the cost of a message, in us, from what strata-perf prints."""

    def __init__(self, options):
        self.options = options
        self.tools = os.environ.get("STRATA_BUILD", "")
        self.slowed = {}
        if options.slow:
            self.slowed = {"LD_PRELOAD": os.path.join(self.tools, "bench/.libs/slow_machine.so"), "SLOW_MACHINE": options.slow}
            if not os.access(self.slowed["LD_PRELOAD"], os.R_OK):
                sys.exit(f"regret: --slow: {self.slowed['LD_PRELOAD']} is not built; use `make bench-regret`")

    def tool(self, name):
        built = os.path.join(self.tools, name)
        return built if self.tools and os.access(built, os.X_OK) else shutil.which(name)

    def arguments(self, pattern):
        ranks, words = PATTERNS[pattern]
        words = [*words, "--json", "--sizes", self.options.sizes, "--batches", str(self.options.batches)]
        places = siblings() if pattern == "siblings" else processors()[:2]
        if ranks == 2 and len(places) == 2:
            words += ["--cpus", ",".join(map(str, places))]
        return ranks, words

    def run(self, command, environment=None):
        try:
            done = subprocess.run(command, env={**os.environ, **self.slowed, **(environment or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  timeout=self.options.timeout, check=False, text=True)
            rows = json.loads(done.stdout)["rows"]
        except subprocess.TimeoutExpired:
            sys.exit(f"regret: not ended after {self.options.timeout} s: {' '.join(command)}")
        except (ValueError, KeyError):
            sys.exit(f"regret: status {done.returncode}: {' '.join(command)}\n{done.stderr[-2000:]}")
        return {row["bytes"]: row["bytes"] / row["median"] if row["unit"] == "MB/s" else row["median"] for row in rows}

    def strata(self, transport, pattern, settings):
        ranks, words = self.arguments(pattern)
        command = [self.tool("strata-run"), *(["--softhca"] if transport == "openib" and not self.options.device else []), "-n", str(ranks)]
        alone = ["self"] if transport == "self" else [transport, "self"]
        if transport == "self":
            command[-1] = "1"
        for name, value in {"btl": ",".join(alone), "rcache": "tree", **settings}.items():
            if name != "rcache" or transport == "openib":
                command += ["--mca", name, value]
        return self.run([*command, self.tool("strata-perf"), *words])

    def peer(self, name, pattern):
        ranks, words = self.arguments(pattern)
        more = ["--oversubscribe", "--bind-to", "none"] if name == "openmpi" else ["-bind-to", "none"]
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return self.run([PEERS[name], *more, "-n", str(ranks), self.tool("strata-mpi-twin." + name), *words], root)

    def peers(self, transport):
        """Peers that stand beside a transport: over their own shared memory."""
        if transport != "sm" or not self.options.peers:
            return []
        return [name for name in PEERS if shutil.which(PEERS[name]) and self.tool("strata-mpi-twin." + name)]


def ways_of(transport):
    return {DEFAULT: {}, **WAYS.get(transport, ANY)}


def measure(runner, transport, pattern, rounds):
    """Costs by way and size: {way: {bytes: [us, ...]}}; peers have names with a leading "peer "."""
    ways, costs = ways_of(transport), {}
    for turn in range(rounds):
        order = list(ways) + ["peer " + name for name in runner.peers(transport)]
        random.shuffle(order)
        for way in order:
            print(f"regret: {transport}, {pattern}, round {turn + 1} of {rounds}: {way}", file=sys.stderr)
            if way in ways:
                result = runner.strata(transport, pattern, ways[way])
            else:
                result = runner.peer(way.removeprefix("peer "), pattern)
            for size, cost in result.items():
                costs.setdefault(way, {}).setdefault(str(size), []).append(cost)
    return costs


def table(transport, pattern, costs):
    """Prints the rows of one pattern as Markdown; returns (median, low) of each."""
    peers = [way for way in costs if way.startswith("peer ")]
    print(f"\n## {transport}, {pattern}\n")
    print("| bytes | default, us | best way | regret, % | interval, % |" + "".join(f" x of {peer[5:]} |" for peer in peers) + " |")
    print("|" + "---|" * (6 + len(peers)))
    found = []
    for size in costs[DEFAULT]:
        ways, (median, low, high) = judge({way: by_size[size] for way, by_size in costs.items() if way not in peers})
        best = ways[0] if ways[0] == ways[1] else " or ".join(ways)
        against = "".join(f" {beside({DEFAULT: costs[DEFAULT][size]}, costs[peer][size]):.2f} |" for peer in peers)
        verdict = "short" if low > BOUND_ROW else ""
        print(f"| {size} | {statistics.median(costs[DEFAULT][size]):.3f} | {best} | {100 * median:.1f} | "
              f"{100 * low:.1f} to {100 * high:.1f} |{against} {verdict} |")
        found.append((median, low))
    return found


def report(raw):
    """Prints all tables and the verdict; returns the exit status."""
    print(f"# Regret of the default protocols\n\n{raw['machine']}; {raw['date']}; {raw['rounds']} rounds"
          f"{'; slowed: ' + raw['slow'] if raw.get('slow') else ''}.")
    rows = [row for transport, patterns in raw["costs"].items() for pattern, costs in patterns.items()
            for row in table(transport, pattern, costs)]
    median = statistics.median(row[0] for row in rows)
    short = sum(row[1] > BOUND_ROW for row in rows)
    print(f"\nRegret of {len(rows)} rows: {100 * median:.1f} % in the median (at most 2 wanted); "
          f"{short} rows certainly above 10 % (none wanted).")
    return 1 if short or median > BOUND_MEDIAN else 0


def machine():
    return f"{processor()}, {len(processors())} processors, Linux {platform.release()}"


def options(words):
    parser = argparse.ArgumentParser(prog="regret", description=__doc__.splitlines()[0])
    parser.add_argument("--transports", default="sm,openib,self", help="with commas; any transport by its name (%(default)s)")
    parser.add_argument("--patterns", default=",".join(PATTERNS), help="with commas (all)")
    parser.add_argument("--sizes", default="1k:4m", help="as for strata-perf (%(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="turns of all ways (%(default)s)")
    parser.add_argument("--batches", type=int, default=5, help="timed batches of a job (%(default)s)")
    parser.add_argument("--timeout", type=int, default=300, help="seconds after which a job is given up (%(default)s)")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="without MPI libraries beside")
    parser.add_argument("--device", action="store_true", help="openib on this machine's adapter, not on softhca")
    parser.add_argument("--slow", metavar="LIST", default="",
                        help="a machine slowed down by factors, e.g. copy=4,vm=2,wake=3; vm=never: without single copy (slow_machine.c)")
    parser.add_argument("--raw", metavar="FILE", help="keep every figure, as JSON")
    parser.add_argument("--from", dest="source", metavar="FILE", help="judge what --raw has kept; nothing is run")
    chosen = parser.parse_args(words)
    for pattern in chosen.patterns.split(","):
        if pattern not in PATTERNS:
            parser.error(f"there is no pattern {pattern}; there are: {', '.join(PATTERNS)}")
    if chosen.rounds < 6:
        print("regret: with fewer than six rounds no row is certain", file=sys.stderr)
    if chosen.rounds < 2:
        parser.error("--rounds: at least 2, one to choose and one to judge")
    return chosen


def main(words):
    chosen = options(words)
    if chosen.source:
        with open(chosen.source, encoding="utf-8") as file:
            return report(json.load(file))
    runner = Runner(chosen)
    if not (runner.tool("strata-run") and runner.tool("strata-perf")):
        sys.exit("regret: strata-run and strata-perf are neither below STRATA_BUILD nor on PATH; use `make bench-regret`")
    raw = {"machine": machine(), "date": datetime.date.today().isoformat(), "rounds": chosen.rounds, "slow": chosen.slow, "costs": {}}
    for transport in chosen.transports.split(","):
        for pattern in chosen.patterns.split(","):
            if pattern == "siblings" and not siblings():
                print("regret: no core here has two threads: pattern siblings is left out", file=sys.stderr)
            elif transport != "self" or pattern in ("ping-pong", "cold"):  # rank 0 to itself
                raw["costs"].setdefault(transport, {})[pattern] = measure(runner, transport, pattern, chosen.rounds)
                if chosen.raw:
                    with open(chosen.raw, "w", encoding="utf-8") as file:
                        json.dump(raw, file)
    return report(raw)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
