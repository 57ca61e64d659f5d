#!/usr/bin/env python3
"""Collectives under process arrival patterns: forms of Strata and Open MPI's own in turn, as Qian and Afsahi measure them.

One job of strata-perf coll, or of its MPI twin, for each size, pattern, number of ranks and system, round after round, systems in random
order. Delays are multiples of the time of one message over the reference (the first system), the same for all systems. What was
measured is kept in --state, so that a run that was broken off goes on where it stopped. Tables go to standard output (--out: a file),
figures (gnuplot) to --figures. Exit status 0, 1 when a job failed, 2 for wrong usage.
"""
import argparse
import datetime
import glob
import hashlib
import json
import os
import platform
import random
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time

from coll_report import figures, flat, tables
from machine import processor

FORMS = {
    "default": [],
    "basic": ["coll=basic"],
    "sm": ["coll_arrival_ranks=0", "coll_sm_ranks=1024"],
}
ARRIVAL = ["direct", "pap_direct", "shm_direct", "pap_shm_direct", "auto", "bruck", "pap_bruck", "doubling", "pap_doubling"]
for arrival in ARRIVAL:
    FORMS[arrival] = ["coll_sm_ranks=0", "coll_arrival_ranks=1024", f"coll_arrival_form={arrival}"]
    if "shm" in arrival:  # by name at every size that an area has room for
        FORMS[arrival] += ["coll_arrival_shm_block=64k", "coll_arrival_memory=64m"]
# Transport: Strata's and Open MPI's parameters. Open MPI cannot divide the ranks of a machine into nodes: all of its own
# messages go by openib then.
TRANSPORTS = {"sm": ("sm,self", "vader,self"), "softhca": ("openib,self", "openib,self"), "nodes": ("sm,openib,self", "openib,self")}
FULL = {"rounds": 5, "ranks": [4, 8, 16], "sizes": [1, 4, 16, 64, 256, 1024, 8192, 65536, 262144, 1 << 20], "batches": 5, "iters": 0}
QUICK = {"rounds": 1, "ranks": [8], "sizes": [1, 256, 8192, 65536], "batches": 3, "iters": 5}
TINY = {"rounds": 1, "ranks": [2], "sizes": [8], "batches": 1, "iters": 1}


def openmpi(pml, coll, options):
    transport, build = options.transport, options.build
    args = ["mpirun.openmpi", "--bind-to", "core:overload-allowed" if options.bind else "none", "--oversubscribe",
            "--mca", "mpi_yield_when_idle", "1"]
    if pml == "strata":
        args += ["--mca", "mca_base_component_path", f"{plugin_folder(build)}:SYSTEM_DEFAULT", "--mca", "pml", "strata",
                 "--mca", "pml_strata_btl", TRANSPORTS[transport][0 if transport != "nodes" else 1]]
    else:
        args += ["--mca", "pml", "ob1", "--mca", "btl", TRANSPORTS[transport][1]]
    args += ["--mca", "coll_strata_priority", "40" if coll == "strata" else "0", "--mca", "coll_strata_operations", "all"]
    if coll == "han":
        args += ["--mca", "coll_han_priority", "100"]
    if transport != "sm":
        preload = f"{build}/softhca/.libs/libsofthca.so"
        if pml == "ob1":  # Open MPI 4.1.4 calls openib after it has unloaded it (docs/design/softhca.md)
            text = subprocess.run(["ompi_info", "--path", "pkglibdir", "--parsable"], capture_output=True, text=True).stdout
            preload += ":" + text.strip().split(":")[-1] + "/mca_btl_openib.so"
            args += ["--mca", "btl_openib_allow_ib", "1", "--mca", "btl_openib_warn_no_device_params_found", "0"]
        args += ["-x", f"LD_PRELOAD={preload}", "-x", "SOFTHCA_FABRIC"]
    return args


def plugin_folder(build):
    """A folder with the plugins alone: Open MPI takes every file that begins with mca_ for one of its own."""
    folder = os.path.join(build, "bench", "plugin")
    os.makedirs(folder, exist_ok=True)
    for name in ("mca_pml_strata.so", "mca_coll_strata.so"):
        built, link = os.path.join(build, "embed/openmpi/.libs", name), os.path.join(folder, name)
        if os.path.exists(built) and not os.path.lexists(link):
            os.symlink(built, link)
    return folder


def systems(options, parser):
    """Name: command without the program's own arguments, for a number of ranks."""
    build, transport = options.build, options.transport
    found = {}
    twin = os.path.join(build, "strata-mpi-twin.openmpi")
    peers = [("tuned/ob1", "ob1", "tuned"), ("han/ob1", "ob1", "han"), ("tuned/strata", "strata", "tuned"),
             ("han/strata", "strata", "han"), ("strata/strata", "strata", "strata")]
    if shutil.which("mpirun.openmpi") and os.path.exists(twin):
        for name, pml, coll in peers:
            plugin = f"mca_{'coll' if coll == 'strata' else 'pml'}_strata.so"
            if pml == "ob1" or os.path.exists(os.path.join(build, "embed/openmpi/.libs", plugin)):
                found[name] = (openmpi(pml, coll, options), twin, [])
    else:
        print("coll.py: without Open MPI: no mpirun.openmpi or no strata-mpi-twin.openmpi", file=sys.stderr)
    run = ["strata-run"] + (["--softhca"] if transport != "sm" else []) + (["--bind-to", "core"] if options.bind else [])
    forms = {**FORMS, **{form: settings.split(";") for form, _, settings in (f.partition(":") for f in options.form)}}
    for form, settings in forms.items():
        if transport == "softhca" and form in ("sm", "shm_direct", "pap_shm_direct", "auto"):
            continue  # one node, whose members reach each other by memory alone
        mca = ["--mca", "btl", TRANSPORTS[transport][0]]
        if transport == "nodes":
            mca += ["--mca", "mca_base_node", options.node]
        for setting in settings + options.mca:
            mca += ["--mca", *setting.split("=", 1)]
        found[form] = (run, "strata-perf", mca)
    if options.systems:
        wanted = options.systems.split(",")
        unknown = [name for name in wanted if name not in found]
        if unknown:
            parser.error(f"there is no system {unknown[0]} here; there are: {', '.join(found)}")
        found = {name: found[name] for name in wanted}
    return found


def job(system, ranks, arguments, timeout):
    command, program, mca = system
    line = [*command, "-n", str(ranks), program, "coll", "--json", *arguments, *mca]
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PMIX_MCA_gds": "hash",
           "SOFTHCA_FABRIC": f"coll-{os.getpid()}"}
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=timeout, env=env, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, "took too long (--timeout)"
    start = done.stdout.find("{")
    if done.returncode != 0 or start < 0:
        return None, f"status {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}"
    return json.JSONDecoder().raw_decode(done.stdout[start:])[0]["rows"], None


class State:
    """Results by a key of the job; written after each."""

    def __init__(self, path):
        self.path, self.of = path, {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                self.of = json.load(f)

    def put(self, key, value):
        self.of[key] = value
        if self.path:
            with open(self.path + ".new", "w", encoding="utf-8") as f:
                json.dump(self.of, f)
            os.replace(self.path + ".new", self.path)


def digest(parts):
    """Short name of what was measured, for keys of the state."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()[:12]


def build_digest(build):
    """Changes with the code of the library, its plugins and the programs; not with the time when they were built."""
    files = [os.path.join(build, name) for name in (".libs/strata-perf", "strata-perf", "strata-mpi-twin.openmpi")]
    for pattern in (".libs/*.so", "plugins/.libs/*.so", "embed/openmpi/.libs/*.so", "softhca/.libs/*.so"):
        files += sorted(glob.glob(os.path.join(build, pattern)))
    contents = []
    for path in files:
        if os.path.exists(path):
            with open(path, "rb") as f:
                contents.append(f.read())
    return digest(contents)


def key_of(options, turn, ranks, pattern, size, name, system):
    """All that a result depends on: two runs with different builds, settings or batches share nothing."""
    late, factors = pattern
    settings = digest(word.encode() + b"\0" for word in system[2])
    return (f"{turn} {options.where} {options.op} {ranks} {late} {factors} {size} {name} "
            f"batches {options.batches} calls {options.iters} settings {settings} build {options.digest}")


def base_of(state, found, size, ranks, options):
    """us of one message of that size over the reference."""
    key = f"base {options.where} {ranks} {size} {next(iter(found))} build {options.digest}"
    if key not in state.of:
        times = []
        for _ in range(3):
            arguments = ["--sizes", str(size), "--mif", "0", "--iters", "1", "--batches", "1"]
            rows, why = job(next(iter(found.values())), ranks, arguments, options.timeout)
            if rows is None:
                sys.exit(f"coll.py: the time of a message of {size} bytes: {why}")
            times.append(rows[0]["message"])
        state.put(key, statistics.median(times))
    return state.of[key]


def patterns_of(options):
    """Per cent of late ranks (0: random arrival), and the factors."""
    return [(0, options.mif)] + [(late, "0,128") for late in options.late]


def measure(options, found, state):
    """Number of jobs that failed, and whether time was left for all (--until)."""
    failed = 0
    for turn in range(options.rounds):
        for ranks in options.ranks:
            for late, factors in patterns_of(options):
                for size in options.sizes:
                    if options.until and time.time() >= options.until:
                        return failed, False
                    base = base_of(state, found, size, ranks, options)
                    for name in random.sample(list(found), len(found)):
                        key = key_of(options, turn, ranks, (late, factors), size, name, found[name])
                        if key in state.of:
                            continue
                        arguments = ["--sizes", str(size), "--op", options.op, "--mif", factors, "--late", str(late),
                                     "--base", f"{base:.3f}", "--batches", str(options.batches)]
                        if options.iters:
                            arguments += ["--iters", str(options.iters)]
                        rows, why = job(found[name], ranks, arguments, options.timeout)
                        if rows is None:
                            failed += 1
                            print(f"coll.py: {name}, {ranks} ranks, {size} bytes: {why}", file=sys.stderr)
                        else:
                            state.put(key, rows)
                    print(f"coll.py: round {turn + 1} of {options.rounds}, {ranks} ranks, late {late} %, {size} bytes",
                          file=sys.stderr, flush=True)
    return failed, True


def collect(options, found, state):
    """(ranks, late, mif) -> size -> system -> rows of the rounds."""
    cells = {}
    for turn in range(options.rounds):
        for ranks in options.ranks:
            for pattern in patterns_of(options):
                for size in options.sizes:
                    for name in found:
                        for row in state.of.get(key_of(options, turn, ranks, pattern, size, name, found[name]), []):
                            where = cells.setdefault((ranks, pattern[0], row["mif"]), {}).setdefault(size, {})
                            where.setdefault(name, []).append(row)
    return cells


def size_of(text):
    match = re.fullmatch(r"(\d+)([km]?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"not a size: {text}")
    return int(match[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20}[match[2]]


def numbers(kind):
    return lambda text: [kind(word) for word in text.split(",") if word]


def command_text(words):
    """The command without the files that it writes and its limit of time."""
    kept, names = [], ("--state", "--out", "--cells", "--figures", "--until")
    for i, word in enumerate(words):
        if word not in names and (i == 0 or words[i - 1] not in names):
            kept.append(shlex.quote(word))
    return " ".join(["bench/coll.py", *kept])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", default="alltoall", help="the operation, as strata-perf coll names it")
    parser.add_argument("--transport", choices=TRANSPORTS, default="sm")
    parser.add_argument("--node", default="4", help="ranks of a node, with --transport nodes (mca_base_node; 4)")
    parser.add_argument("--bind", action="store_true", help="each rank to a processor, in turn; without, the kernel chooses")
    parser.add_argument("--ranks", type=numbers(int), help="numbers of ranks (4,8,16)")
    parser.add_argument("--sizes", type=numbers(size_of), help="of a block (ten from 1 to 1m)")
    parser.add_argument("--mif", default="0,1,32,128,512", help="of random delays")
    parser.add_argument("--late", type=numbers(int), default=[25, 75], help="per cent that come late by MIF 128")
    parser.add_argument("--rounds", type=int, help="(5)")
    parser.add_argument("--batches", type=int, help="(5)")
    parser.add_argument("--iters", type=int, help="calls of a batch (by size)")
    parser.add_argument("--systems", help="of those that are found, the first being the reference (all)")
    parser.add_argument("--form", action="append", default=[], metavar="NAME:SETTING=VALUE;...", help="one more of Strata's")
    parser.add_argument("--mca", action="append", default=[], metavar="NAME=VALUE", help="of all of Strata's own")
    parser.add_argument("--quick", action="store_true", help="one round of few sizes (8 ranks; 1, 256, 8k, 64k)")
    parser.add_argument("--tiny", action="store_true", help="one call of 8 bytes between 2 ranks: to see that it works")
    parser.add_argument("--until", type=float, help="begins no job after this time (date +%%s): the next run goes on")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one job")
    parser.add_argument("--build", default=os.environ.get("STRATA_BUILD", "."))
    parser.add_argument("--state", help="file of what was measured")
    parser.add_argument("--out", help="file for the tables")
    parser.add_argument("--figures", help="folder for the figures")
    parser.add_argument("--cells", help="file for the medians, which bench/coll_page.py reads")
    options = parser.parse_args()
    for name, value in (TINY if options.tiny else QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    options.build = os.path.abspath(options.build)
    options.digest = build_digest(options.build)
    options.where = options.transport + (", bound" if options.bind else "")
    if options.op == "barrier":
        options.sizes = [0]
    if options.rounds < 1 or not options.ranks or not options.sizes:
        parser.error("--rounds, --ranks and --sizes: at least one")
    found, state = systems(options, parser), State(options.state)
    failed, whole = measure(options, found, state)
    about = {"op": options.op, "transport": options.where, "rounds": options.rounds, "batches": options.batches,
             "machine": f"{processor()}, {len(os.sched_getaffinity(0))} processors, Linux {platform.release()}",
             "date": datetime.date.today().isoformat(), "whole": whole, "command": command_text(sys.argv[1:])}
    cells = collect(options, found, state)
    text = tables(about, cells, list(found))
    if options.out:
        with open(options.out, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        print(text)
    if options.figures:
        figures(options.figures, about, cells, list(found))
    if options.cells:
        with open(options.cells, "w", encoding="utf-8") as f:
            json.dump(flat(about, cells), f)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
