"""hpcc, NetPIPE, ScaLAPACK's and MUMPS's tests, LAMMPS: how each is run and how its own verdict is read."""
import glob
import os
import re
import shutil

from run import Case, Missing, end


def need(path, package):
    """A file of a package."""
    found = shutil.which(path) if "/" not in path else (sorted(glob.glob(path)) or [None])[0]
    if not found:
        raise Missing(f"no {path} (Debian: {package})")
    return found


# ---- hpcc ---------------------------------------------------------------------------------------------------

HPCC_INPUT = """HPLinpack benchmark input file
for the tests of Strata's embedding
HPL.out
8 device out
{n_sizes} # of problem sizes
{sizes} Ns
1 # of NBs
{block} NBs
0 PMAP
1 # of process grids
{p} Ps
{q} Qs
16.0 threshold
3 # of panel fact
0 1 2 PFACTs
1 # of recursive stopping criterium
4 NBMINs
1 # of panels in recursion
2 NDIVs
1 # of recursive panel fact.
1 RFACTs
3 # of broadcast
0 1 4 BCASTs
2 # of lookahead depth
0 1 DEPTHs
2 SWAP
64 swapping threshold
0 L1
0 U
1 Equilibration
8 memory alignment
##### This line (no. 32) is ignored (it serves as a separator). ######
0 Number of additional problem sizes for PTRANS
1200 values of N
0 number of additional blocking sizes for PTRANS
40 values of NB
"""


def hpcc(job):
    program = need("hpcc", "hpcc")
    q = max(d for d in range(1, job.ranks + 1) if job.ranks % d == 0 and d * d <= job.ranks)
    sizes = "1500 2500" if job.full else "200" if job.short else "900"
    with open(os.path.join(job.folder, "hpccinf.txt"), "w") as f:
        f.write(HPCC_INPUT.format(sizes=sizes, n_sizes=len(sizes.split()), block=64, p=q, q=job.ranks // q))
    text, status = job.mpi([program], limit=1800)
    results = {"ends well": Case(status == 0, f"status {status}: {end(text)}")}
    try:
        with open(os.path.join(job.folder, "hpccoutf.txt"), errors="replace") as f:
            out = f.read()
    except OSError:
        out = ""
    summary = dict(re.findall(r"^(\w+)=(\S+)$", out, re.M))
    results["Success"] = Case(summary.get("Success") == "1", f"Success={summary.get('Success')}")
    sections = re.split(r"^Begin of (.*) section\.$", out, flags=re.M)
    for title, body in zip(sections[1::2], sections[2::2]):
        verdicts = []
        verdicts += [n == "0" for n in re.findall(r"Node\(s\) with error (\d+)", body)]
        verdicts += [v == "passed" for v in re.findall(r"Found \d+ errors in \d+ locations \((\w+)\)", body)]
        verdicts += [v == "PASSED" for v in re.findall(r"\b(PASSED|FAILED)\b", body)]
        verdicts += [n == "0" for n in re.findall(r"(\d+) tests completed and failed", body)]
        if "Solution" in body:
            verdicts.append("Solution Validates" in body)
        results[title] = Case(all(verdicts), f"{verdicts.count(False)} of {len(verdicts)} verdicts are bad")
    for name in ("MPIFFT_maxErr", "StarFFT_maxErr"):
        if name in summary:
            results[name] = Case(0 <= float(summary[name]) < 1e-12, summary[name])
    return results


# ---- NetPIPE ------------------------------------------------------------------------------------------------


def netpipe(job):
    program = need("NPopenmpi", "netpipe-openmpi")
    biggest = 3 << 20 if job.full else 140000
    forms = {"plain": [], "both ways": ["-2"], "preposted": ["-a"], "synchronous": ["-S"], "any source": ["-z"],
             "burst": ["-a", "-B"], "stream": ["-s"], "integrity": ["-i"]}
    if not job.full:  # these two hang and fail under any pml
        del forms["both ways"], forms["burst"]
    results = {}
    for name, options in forms.items():
        repeats = [] if name == "integrity" else ["-n", "200" if job.full else "5" if job.short else "50"]
        out = os.path.join(job.folder, "np.out")
        text, status = job.mpi([program, "-u", str(biggest), "-o", out] + repeats + options, ranks=2,
                               limit=600)
        if name == "integrity":
            ok = status == 0 and "failed" not in text.lower() and re.search(r"\d+ bytes", text) is not None
            results[name] = Case(ok, f"status {status}: {end(text)}")
            continue
        try:
            with open(out) as f:
                rows = [[float(x) for x in line.split()] for line in f if line.strip()]
            os.remove(out)
        except (OSError, ValueError):
            rows = []
        sizes = [row[0] for row in rows]
        ok = (status == 0 and len(rows) > 40 and sizes == sorted(sizes) and sizes[-1] > biggest / 2 and
              all(row[1] > 0 and row[2] > 0 for row in rows))
        results[name] = Case(ok, f"status {status}, {len(rows)} rows: {end(text)}")
    return results


# ---- ScaLAPACK, PBLAS, BLACS ----------------------------------------------------------------------------------

SHORT = "xdlu xsptllt xdbrd PBLAS/dpb1tst PBLAS/spb3tst BLACS/xCbtest".split()
QUICK = ("xdlu xcllt xzqr xsls xdinv xcdblu xdgblu xzpbllt xsptllt xddtlu xdbrd xzhrd xctrd xsnep xzevc xdsep xdsvd "
         "xssyevr xdhseqr PBLAS/dpb1tst PBLAS/zpb2tst PBLAS/spb3tst BLACS/xCbtest").split()


def scalapack_verdict(text, status):
    """Some of these programs end with counts, some have PASSED or FAILED in the line of each test, some both."""
    aborts = "BLACS_ABORT" in text and status == 255
    counted = single = bad = 0
    for line in text.splitlines():
        if " completed and " in line or " TESTS;" in line:
            counts = re.findall(r"(\d+)\s+(?:tests? completed and )?(passed|failed)", line, re.I)
            counted += sum(int(n) for n, word in counts if word.lower() == "passed")
            bad += sum(int(n) for n, word in counts if word.lower() == "failed")
        elif "indication of which" not in line and "TOTAL TESTS" not in line and "Stop on" not in line:
            single += bool(re.search(r"\bpassed\b", line, re.I))
            bad += bool(re.search(r"\bfailed\b", line, re.I))
    # The last thing that BLACS's programs test is to end the job with -1. The first rank to get there takes from the others
    # what they have not written yet, whatever the pml; the counts were written long before.
    numbers = [counted] if aborts else [counted + single]
    ok = (status == 0 or aborts) and bad == 0 and counted + single > 0
    return Case(ok, f"status {status}, {counted + single} passed, {bad} failed: {end(text, 3)}", numbers)


def scalapack_copy(job):
    """They write beside themselves."""
    copy = os.path.join(job.folder, "tests")
    if not os.path.isdir(copy):
        shutil.copytree(need("/usr/lib/*/scalapack/openmpi-tests", "scalapack-mpi-test"), copy)
    return copy


def scalapack_one(job, name):
    """xdsep fails one of its 108 tests in about a third of its runs with 4 ranks, under any pml."""
    where, program = os.path.split(os.path.join(scalapack_copy(job), name))
    text, status = job.mpi(["./" + program], ranks=4, limit=900, folder=where)
    case = scalapack_verdict(text, status)
    case.again = lambda other: scalapack_one(other, name)
    return case


def scalapack(job):
    copy = scalapack_copy(job)
    names = SHORT if job.short else QUICK
    if job.full:
        names = [os.path.relpath(f, copy) for f in glob.glob(copy + "/**", recursive=True)
                 if os.path.isfile(f) and os.access(f, os.X_OK) and "TIMING" not in f]
        names = [n for n in names if n not in ("xCbtest", "xFbtest")]  # these are those in BLACS
    return {name: scalapack_one(job, name) for name in sorted(names)}


# ---- MUMPS ----------------------------------------------------------------------------------------------------


def mumps(job):
    folder = os.path.dirname(need("/usr/lib/mumps/dsimpletest", "mumps-test"))
    results = {}
    for kind in "sdcz":
        for ranks in (2,) if job.short else (1, 2, 4) + ((8,) if job.full else ()):
            for round_ in range(10 if job.full else 1 if job.short else 2):
                data = "input_simpletest_" + ("real" if kind in "sd" else "cmplx")
                text, status = job.mpi([f"./{kind}simpletest"], ranks=ranks, limit=600, folder=folder,
                                       stdin=os.path.join(folder, data))
                solution = re.search(r"Solution is\s+(.*?)\n\s*\n", text, re.S)
                numbers = [float(x) for x in re.findall(r"-?\d+\.\d+(?:[ED][-+]?\d+)?", solution.group(1))] if solution else []
                real = numbers if kind in "sd" else numbers[0::2]
                ok = (status == 0 and len(real) == 5 and all(abs(x - i - 1) < 1e-3 for i, x in enumerate(real)))
                results[f"{kind}simpletest, {ranks} ranks, round {round_}"] = Case(ok, f"status {status}: {end(text)}")
    return results


# ---- LAMMPS -----------------------------------------------------------------------------------------------------


def thermo(text):
    """The numbers of every table of thermodynamic output, also of those that name each number (thermo_style multi)."""
    rows, inside = [], False
    for line in text.splitlines():
        words = line.split()
        named = re.findall(r"\w+ += +(-?\d+\.\d+)", line)
        if len(named) > 1:
            rows.append([float(value) for value in named])
            continue
        if words and words[0] == "Step":
            inside = True
        elif line.startswith("Loop time"):
            inside = False
        elif inside:
            try:
                rows.append([float(w) for w in words])
            except ValueError:
                pass
    return [x for row in rows for x in row]


def lammps(job):
    program = need("lmp", "lammps")
    examples = need("/usr/share/lammps/examples/melt/in.melt", "lammps-examples")
    examples = os.path.dirname(os.path.dirname(examples))
    inputs = ["melt/in.melt", "COUPLE/simple/in.lj", "crack/in.crack"]
    if job.short:
        inputs = ["melt/in.melt"]
    if job.full:
        inputs += ["peptide/in.peptide", "min/in.min", "friction/in.friction", "flow/in.flow.couette", "colloid/in.colloid",
                   "micelle/in.micelle", "obstacle/in.obstacle", "shear/in.shear", "indent/in.indent", "rigid/in.rigid"]
    results = {}
    for path in inputs:
        source = os.path.join(examples, path)
        if not os.path.isfile(source):
            continue
        folder = os.path.join(job.folder, path.replace("/", "_"))
        shutil.copytree(os.path.dirname(source), folder, ignore=shutil.ignore_patterns("log.*", "*.jpg", "*.mpg"))
        ranks = (job.ranks,) if not job.full else (2, job.ranks)
        for n in ranks:
            text, status = job.mpi([program, "-in", os.path.basename(path), "-log", "none"], ranks=n, folder=folder,
                                   limit=1200)
            numbers = thermo(text)
            results[f"{path}, {n} ranks"] = Case(status == 0 and "ERROR" not in text and len(numbers) > 5,
                                                 f"status {status}: {end(text)}", numbers)
    return results


# Name: function, and how far numbers may be apart between the pmls, relative.
PACKAGES = {"hpcc": (hpcc, 0), "netpipe": (netpipe, 0), "scalapack": (scalapack, 0), "mumps": (mumps, 0),
            "lammps": (lammps, 1e-6)}
