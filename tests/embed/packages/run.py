#!/usr/bin/python3
"""Runs programs of Debian's packages, as they are, over Strata's pml and over Open MPI's own, and compares.

usage: run.py --plugin FOLDER --mpirun STRATA-MPIRUN [--full|--short] [--alone] [--ranks N] [--verbose] NAME

NAME is one of the packages in cases.py and mpi4py_cases.py. Every package gives named cases; a case that fails only over
Strata is a failure, one that fails under both is listed, so is one that fails only under Open MPI's own pml. Where a program's
outcome changes from run to run, a failure over Strata is held against more runs under Open MPI's own. With --alone that one
runs only when a case has failed over Strata. --full is the whole of a package; --short its smallest problems, and Open MPI's own pml
only where numbers are compared. Limits of time are a safety net. Exit status 0, 1, or 77 with the reason when the package is not installed.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time


class Missing(Exception):
    """What a package needs is not there."""


class Case:
    """The outcome of one case: whether it passed, what to print when not, and numbers to compare between the pmls.

    again(job) runs it once more, under that job's pml: for programs whose outcome depends on the order in which messages
    of several ranks happen to come.
    """

    def __init__(self, ok, detail="", numbers=(), again=None):
        self.ok, self.detail, self.numbers, self.again = ok, detail, list(numbers), again


class Job:
    """Starts mpirun with one of the two pmls, in a folder of its own."""

    def __init__(self, pml, options):
        self.pml, self.options = pml, options
        self.ranks, self.full, self.short = options.ranks, options.full, options.short
        self.folder = tempfile.mkdtemp(prefix=pml + ".", dir=os.environ.get("TMPDIR"))

    def mpi(self, command, ranks=None, limit=600, folder=None, stdin=None, mpirun=()):
        """The combined output and the exit status (124: ended by the limit)."""
        environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
        start = ["mpirun.openmpi", "--mca", "pml", "ob1"]
        if self.pml == "strata":
            start = ["sh", self.options.mpirun]
            environment["STRATA_EMBED_DIR"] = self.options.plugin
        line = start + list(mpirun) + ["-n", str(ranks or self.ranks)] + list(command)
        begin = time.monotonic()
        with tempfile.TemporaryFile(mode="w+", errors="replace", dir=self.folder) as out:
            source = open(stdin) if stdin else subprocess.DEVNULL
            process = subprocess.Popen(line, cwd=folder or self.folder, stdin=source, stdout=out,
                                       stderr=subprocess.STDOUT, env=environment, start_new_session=True)
            try:
                status = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                status = 124
                os.killpg(process.pid, signal.SIGTERM)  # mpirun ends its ranks
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            out.seek(0)
            text = out.read()
        if self.options.verbose:
            print(f"   {self.pml}: {' '.join(command)}: status {status}, {time.monotonic() - begin:.1f} s")
        return text, status


def end(text, lines=6):
    """The last lines of an output that are not empty, in one."""
    kept = [line.strip() for line in text.splitlines()
            if line.strip() and not line.startswith(("-----", "Note: The following floating-point"))]
    return " | ".join(kept[-lines:])[:600]


def differs(a, b, tolerance):
    """The first number of a run that is not the other's, or None."""
    if len(a) != len(b):
        return f"{len(a)} numbers under one, {len(b)} under the other"
    for i, (x, y) in enumerate(zip(a, b)):
        if abs(x - y) > tolerance * max(abs(x), abs(y), 1e-12):
            return f"number {i} is {x} under Strata, {y} under ob1"
    return None


AGAIN = 20


def fails_again(case, job):
    """The first of AGAIN more runs under a job's pml that fails, as a text; None when all pass."""
    for turn in range(1, AGAIN + 1):
        other = case.again(job)
        if not other.ok:
            return f"{case.detail}; run {turn} under {job.pml}: {other.detail}"
    return None


def compare(name, ours, theirs, tolerance, reference):
    """Prints what there is to say; how many cases fail over Strata alone, under both, under the job `reference` alone."""
    failures, both, only_theirs = [], [], []
    for case in sorted(set(ours) | set(theirs)):
        a = ours.get(case, Case(False, "was not run or did not report"))
        b = theirs.get(case, Case(False, "was not run or did not report"))
        if a.ok and b.ok:
            other = differs(a.numbers, b.numbers, tolerance)
            if other:
                failures.append((case, other))
        elif b.ok:
            now_and_then = fails_again(a, reference) if a.again else None
            if now_and_then:
                both.append((case, now_and_then))
            else:
                failures.append((case, a.detail))
        elif a.ok:
            only_theirs.append((case, b.detail))
        else:
            both.append((case, a.detail))
    for title, cases in (("fails under both", both), ("fails under ob1 only", only_theirs),
                         ("FAILS over Strata only", failures)):
        for case, detail in cases:
            print(f"  {name}: {case}: {title}: {detail}")
    return len(failures), len(both), len(only_theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--mpirun", required=True)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    import cases
    import mpi4py_cases
    packages = dict(cases.PACKAGES)
    packages.update(mpi4py_cases.PACKAGES)
    function, tolerance = packages[options.name]
    results, seconds = {}, {}
    jobs = {pml: Job(pml, options) for pml in ("strata", "ob1")}
    try:
        for pml, job in jobs.items():
            begin = time.monotonic()
            alone = options.alone or (options.short and tolerance == 0)
            if pml == "ob1" and alone and all(case.ok for case in results["strata"].values()):
                results[pml], seconds[pml] = results["strata"], 0
                continue
            results[pml] = function(job)
            seconds[pml] = time.monotonic() - begin
        failed, both, theirs = compare(options.name, results["strata"], results["ob1"], tolerance, jobs["ob1"])
    except Missing as reason:
        print(f"skipped: {options.name}: {reason}")
        return 77
    finally:
        for job in jobs.values():
            shutil.rmtree(job.folder, ignore_errors=True)
    passed = sum(case.ok for case in results["strata"].values())
    print(f"{options.name}: {passed} of {len(results['strata'])} cases pass over Strata, {failed} fail over Strata only, "
          f"{both} under both, {theirs} under ob1 only; {seconds['strata']:.1f} s, ob1 {seconds['ob1']:.1f} s")
    if passed == 0:
        print(f"{options.name}: nothing passed: that is no test")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.modules["run"] = sys.modules["__main__"]  # the cases import from here
    sys.exit(main())
