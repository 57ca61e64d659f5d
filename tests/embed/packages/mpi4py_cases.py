"""mpi4py: the benchmarks that its package has, its pool of spawned processes, and the test suite of its source package."""
import glob
import os
import re
import subprocess

from run import Case, Missing, end

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # Debian's: its modules are for it

POOL = """
from mpi4py.futures import MPIPoolExecutor
def square(x): return x * x
if __name__ == "__main__":
    with MPIPoolExecutor(max_workers=2) as pool:
        assert list(pool.map(square, range(200))) == [x * x for x in range(200)]
        assert len(pool.submit(bytes, 3000000).result()) == 3000000
    print("pool ok")
"""


def need():
    if subprocess.run([PYTHON, "-c", "import mpi4py"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise Missing("no mpi4py (Debian: python3-mpi4py)")


def bench(job):
    need()
    more = 10 if job.full else 1
    runs = {"helloworld": (["helloworld"], job.ranks, r"Hello, World! I am process"),
            "ringtest": (["ringtest", "-l", str(100 * more), "-n", "1000"], job.ranks, r"time for"),
            "ringtest, 1 MB": (["ringtest", "-l", str(10 * more), "-n", "1000000"], job.ranks, r"time for"),
            "ringtest, 1 byte": (["ringtest", "-l", str(1000 * more), "-n", "1"], job.ranks, r"time for")}
    if job.short:
        del runs["ringtest"]
    results = {}
    for name, (arguments, ranks, wanted) in runs.items():
        text, status = job.mpi([PYTHON, "-m", "mpi4py.bench"] + arguments, ranks=ranks)
        found = len(re.findall(wanted, text))
        ok = status == 0 and found >= (ranks if name == "helloworld" else 1)
        results[name] = Case(ok, f"status {status}: {end(text)}")
    script = os.path.join(job.folder, "pool.py")
    with open(script, "w") as f:
        f.write(POOL)
    # All ranks form the pool, without spawning.
    text, status = job.mpi([PYTHON, "-m", "mpi4py.futures", script], ranks=3)
    results["futures"] = Case(status == 0 and "pool ok" in text, f"status {status}: {end(text)}")
    if job.short:
        return results
    # One rank spawns its workers, which may hang in Open MPI: see lib.sh.
    for _ in range(6):
        text, status = job.mpi([PYTHON, script], ranks=1, limit=120)
        if status != 124:
            break
    results["futures, spawned"] = Case(status == 0 and "pool ok" in text, f"status {status}: {end(text)}")
    return results


# ---- the suite of the source package ----------------------------------------------------------------------------

QUICK = ("test_cco_buf test_cco_obj test_cco_nb_buf test_comm test_comm_inter test_datatype test_msgspec test_p2p_buf "
         "test_p2p_buf_matched test_p2p_obj test_p2p_obj_matched test_request test_status test_threads").split()
SHORT = "test_datatype test_msgspec test_p2p_obj_matched".split()
QUICK_SPAWN = ["test_spawn"]
OTHER_WORLD = ("test_dynproc", "test_spawn")  # these hang now and then in Open MPI's launcher: tried again


def source(job):
    """The folder of the suite: unpacked by fetch_source.sh, once for both pmls."""
    where = os.path.join(os.environ["STRATA_BUILD"], "tests/embed/source")
    got = subprocess.run(["bash", os.path.join(HERE, "../fetch_source.sh"), "mpi4py", where], capture_output=True,
                         text=True, check=False)
    if got.returncode != 0:
        raise Missing(end(got.stdout + got.stderr, 2))
    return os.path.join(where, "mpi4py", "test")


def module(job, folder, name):
    """Outcomes of one module, a test being ok when it is on every rank."""
    results = os.path.join(job.folder, name)
    options = ["--mca", "osc", "pt2pt"] if "rma" in name or "win" in name else []
    text, status = job.mpi([PYTHON, os.path.join(HERE, "mpi4py_one.py"), folder, name, results], mpirun=options,
                           limit=900 if job.full else 600)
    cases, ended = {}, 0
    for path in glob.glob(results + ".*"):
        running = None
        with open(path, errors="replace") as f:
            for line in f:
                outcome, _, rest = line.strip().partition(" ")
                test, _, detail = rest.partition(" ")
                if outcome == "end":
                    ended += 1
                elif outcome == "start":
                    running = test
                elif outcome == "fail" or cases.get(test) is None:
                    cases[test] = Case(outcome != "fail", detail)
                if outcome in ("ok", "skip", "fail"):
                    running = None
        if running:
            cases[running] = Case(False, f"did not end, status {status}: {end(text)}")
    cases[name + " as a whole"] = Case(status == 0 and ended == job.ranks, f"status {status}: {end(text)}")
    return cases, status


def suite(job):
    need()
    folder = source(job)
    names = SHORT if job.short else QUICK + QUICK_SPAWN
    if job.full:
        names = sorted(os.path.splitext(os.path.basename(f))[0] for f in glob.glob(folder + "/test_*.py"))
        names = [n for n in names if not n.startswith("test_util_") or n in ("test_util_pkl5", "test_util_dtlib")]
    results = {}
    for name in names:
        cases, status = module(job, folder, name)
        for _ in range(5):
            if status != 124 or name not in OTHER_WORLD:
                break
            cases, status = module(job, folder, name)
        results.update(cases)
    return results


PACKAGES = {"mpi4py-bench": (bench, 0), "mpi4py-suite": (suite, 0)}
