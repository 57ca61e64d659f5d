#!/usr/bin/env python3
"""MPI programs from Debian's packages, unchanged, over Strata and over ob1: each must do over Strata what it does over ob1.

usage: packages.py quick|full [NAME...]      (with NAMEs only those whose name begins so)
One line per program. A program that fails under both is listed and does not count as Strata's failure. Environment:
STRATA_BUILD, the build folder. Exit status: 0, 1 when something fails over Strata alone, 77 when nothing could run.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("STRATA_BUILD", os.getcwd())
PLUGIN = os.path.join(BUILD, "embed/openmpi/.libs")
LAUNCH = {
    "strata": ["--mca", "mca_base_component_path", PLUGIN + ":SYSTEM_DEFAULT", "--mca", "pml", "strata"],
    "ob1": ["--mca", "pml", "ob1", "--mca", "btl", "vader,self"],
}
ENVIRONMENT = dict(
    os.environ,
    OMPI_ALLOW_RUN_AS_ROOT="1",
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    OPENBLAS_NUM_THREADS="1",
    OMP_NUM_THREADS="1",
    OMPI_MCA_mpi_yield_when_idle="1",
    STRATA_MCA_mca_component_path=os.path.join(BUILD, "plugins"),
)


class Run:
    """What one run left: exit status, output, and the folder it ran in."""

    def __init__(self, pml, ranks, argv, folder, stdin=None, timeout=600):
        command = ["mpirun.openmpi", *LAUNCH[pml], "--oversubscribe", "-n", str(ranks), *argv]
        self.folder = folder
        start = time.monotonic()
        with open(stdin) if stdin else open(os.devnull) as source:
            try:
                done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, stdin=source, text=True, errors="replace",
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, check=False)
                self.status, self.text = done.returncode, done.stdout
            except subprocess.TimeoutExpired as late:
                text = late.stdout or b""
                self.status, self.text = "timeout", text if isinstance(text, str) else text.decode(errors="replace")
        self.seconds = time.monotonic() - start

    def file(self, name):
        with open(os.path.join(self.folder, name), errors="replace") as f:
            return f.read()


# Each judge says what a run achieved, as a value to compare, or None when it failed.

def hpcc(run):
    text = run.file("hpccoutf.txt") if os.path.exists(os.path.join(run.folder, "hpccoutf.txt")) else ""
    verified = len(re.findall(r"\bPASSED\b", text))
    if run.status or "Success=1" not in text or re.search(r"\bFAILED\b", text) or not verified:
        return None
    return f"verification passed, {verified} checks"


def netpipe(run):
    rows = re.findall(r"^\s*(\d+):\s+(\d+) bytes\s+\d+ times -->\s+([\d.]+) Mbps", run.text, re.M)
    return None if run.status or len(rows) < 20 or any(float(r[2]) <= 0 for r in rows) else f"{len(rows)} sizes"


def residuals(run):
    found = re.findall(r"(\d+) tests completed and (passed|failed) residual", run.text)
    passed = sum(int(n) for n, how in found if how == "passed")
    failed = sum(int(n) for n, how in found if how == "failed")
    return None if run.status or failed or not passed else f"{passed} residual checks passed"


def blacs(run):
    if run.status or re.search(r"FAILED|\*\*\* *ERROR", run.text) or "DONE BLACS_GRIDINIT" not in run.text.upper() + \
            ("DONE BLACS_GRIDINIT" if "PASSED" in run.text.upper() else ""):
        return None
    return "passed"


def pblas(run):
    passed, failed = len(re.findall(r"PASSED", run.text)), len(re.findall(r"FAILED", run.text))
    return None if run.status or failed or not passed else f"{passed} tests passed"


def mumps(run):
    solution = re.search(r"Solution is\s+(.*)", run.text)
    if run.status or not solution:
        return None
    return "solution " + " ".join(f"{float(x):.4f}" for x in re.findall(r"[-+]?\d+\.\d+(?:[ED][-+]\d+)?",
                                                                     solution.group(1).replace("D", "E")))


def thermo(run):
    rows = re.findall(r"^ +(\d+) +([-\d.]+) +([-\d.]+) +[-\d.]+ +([-\d.]+) +([-\d.]+) *$", run.text, re.M)
    if run.status or "Loop time" not in run.text or len(rows) < 2:
        return None
    return "\n".join(" ".join(f"{float(x):.3g}" for x in row) for row in rows)


def finished(run):
    return None if run.status else "finished"


def unittests(run):
    """Results per test of Python's unittest at verbosity 2, from the first rank that says it."""
    tests = dict(re.findall(r"^(test\w+ \([\w.]+\)).*? \.\.\. (ok|FAIL|ERROR|skipped)", run.text, re.M))
    bad = sorted(name for name, how in tests.items() if how in ("FAIL", "ERROR"))
    if run.status == "timeout" or not tests or not re.search(r"^Ran \d+ tests", run.text, re.M):
        return None
    return f"{sum(how == 'ok' for how in tests.values())} ok" + "".join("; not ok: " + name for name in bad)


SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests"
QUICK_SCALAPACK = ("xdlu", "xdqr")


def hpccinf(folder, full):
    """HPCC's own example input with a smaller problem, on a grid of two by two."""
    lines = subprocess.run(["zcat", "-f", "/usr/share/doc/hpcc/examples/_hpccinf.txt"], text=True, check=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    for i, line in enumerate(lines):
        if line.rstrip().endswith(" Ns") and i < 10:
            lines[i] = f"{2000 if full else 600} Ns"
    with open(os.path.join(folder, "hpccinf.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


def plan(full):
    """(name, needed file, ranks, argv, judge, keywords of Run, preparation of the folder)"""
    yield "hpcc", "/usr/bin/hpcc", 4, ["hpcc"], hpcc, {}, lambda d: hpccinf(d, full)
    yield ("netpipe", "/usr/bin/NPopenmpi", 2, ["NPopenmpi", "-u", "4194304" if full else "4096", "-n", "200"], netpipe, {},
           None)
    for p in "sdcz":
        kind = "real" if p in "sd" else "cmplx"
        yield (f"mumps {p}simpletest", f"/usr/lib/mumps/{p}simpletest", 3, [f"/usr/lib/mumps/{p}simpletest"], mumps,
               {"stdin": f"/usr/lib/mumps/input_simpletest_{kind}"}, None)
    for path in sorted(glob.glob(SCALAPACK + "/x*")):
        name = os.path.basename(path)
        if name not in ("xCbtest", "xFbtest") and (full or name in QUICK_SCALAPACK):
            yield f"scalapack {name}", path, 4, [path], residuals, {"timeout": 1200}, copy_data
    if full:
        for path in sorted(glob.glob(SCALAPACK + "/PBLAS/*tst")):
            yield "pblas " + os.path.basename(path), path, 4, [path], pblas, {"timeout": 1200}, copy_pblas
    yield ("lammps melt", "/usr/bin/lmp", 4, ["lmp", "-in", "/usr/share/lammps/examples/melt/in.melt", "-log", "none"],
           thermo, {}, None)
    yield ("mpi4py ringtest", "/usr/lib/python3/dist-packages/mpi4py", 4,
           ["/usr/bin/python3", "-m", "mpi4py.bench", "ringtest", "-n", "10000", "-l", "20"], finished, {}, None)
    yield ("mpi4py helloworld", "/usr/lib/python3/dist-packages/mpi4py", 4,
           ["/usr/bin/python3", "-m", "mpi4py.bench", "helloworld"], finished, {}, None)
    if full and "MPI4PY_SOURCE" in os.environ:
        yield ("mpi4py test suite", os.environ["MPI4PY_SOURCE"] + "/test/runtests.py", 3,
               ["/usr/bin/python3", os.environ["MPI4PY_SOURCE"] + "/test/runtests.py", "-v", "--no-builddir", "--inplace"],
               unittests, {"timeout": 1800}, None)


def copy_data(folder):
    for path in glob.glob(SCALAPACK + "/*.dat"):
        shutil.copy(path, folder)


def copy_pblas(folder):
    for path in glob.glob(SCALAPACK + "/PBLAS/*.dat"):
        shutil.copy(path, folder)


def attempt(pml, ranks, argv, judge, keywords, prepare):
    with tempfile.TemporaryDirectory(prefix="strata-embed-") as folder:
        if prepare:
            prepare(folder)
        run = Run(pml, ranks, argv, folder, **keywords)
        return judge(run), run


def one(name, ranks, argv, judge, keywords, prepare):
    """Runs a program over both; True unless it fails over Strata alone."""
    mine, run = attempt("strata", ranks, argv, judge, keywords, prepare)
    theirs, reference = attempt("ob1", ranks, argv, judge, keywords, prepare)
    times = f"({run.seconds:.1f} s, ob1 {reference.seconds:.1f} s)"
    if mine is not None and (mine == theirs or theirs is None):
        print(f"ok      {name}: {mine.splitlines()[-1]} {times}", flush=True)
        return True
    if mine is None and theirs is None:
        print(f"both    {name}: fails over Strata and over ob1 {times}: {(run.text.strip() or '?').splitlines()[-1]}",
              flush=True)
        return True
    print(f"FAILED  {name}: over Strata {mine or 'it fails, status ' + str(run.status)}; over ob1 {theirs} {times}",
          flush=True)
    print("\n".join("      | " + line for line in run.text.splitlines()[-30:]), flush=True)
    return False


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("quick", "full"):
        print(__doc__.splitlines()[2], file=sys.stderr)
        return 2
    if not os.path.exists(PLUGIN + "/mca_pml_strata.so"):
        print("skipped: the plugin for Open MPI was not built")
        return 77
    ran = failed = 0
    for name, needed, *rest in plan(sys.argv[1] == "full"):
        if len(sys.argv) > 2 and not any(name.startswith(n) for n in sys.argv[2:]):
            continue
        if not os.path.exists(needed):
            print(f"skipped {name}: {needed} is not installed", flush=True)
            continue
        ran += 1
        failed += not one(name, *rest)
    if ran == 0:
        print("skipped: none of the packages is installed")
        return 77
    print(f"{ran - failed} of {ran} do over Strata what they do over ob1")
    return 1 if failed else 0


sys.exit(main())
