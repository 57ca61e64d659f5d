"""One rank of a run of mpi4py's own tests: python3 mpi4py_one.py TEST-FOLDER MODULE RESULTS [EXCLUDED-TEST...].

Writes a line "outcome name" per test to RESULTS.RANK; outcome is ok, skip, fail. The last line is "end".
"""
import os
import sys
import unittest


class Result(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def write(self, outcome, test, detail=""):
        self.out.write(f"{outcome} {test.id()} {detail.strip().splitlines()[-1] if detail.strip() else ''}\n")
        self.out.flush()

    def startTest(self, test):
        super().startTest(test)
        self.write("start", test)

    def addSuccess(self, test):
        self.write("ok", test)

    def addSkip(self, test, reason):
        self.write("skip", test, reason)

    def addError(self, test, err):
        self.write("fail", test, self._exc_info_to_string(err, test))

    addFailure = addError

    def addExpectedFailure(self, test, err):
        self.write("ok", test)

    def addUnexpectedSuccess(self, test):
        self.write("ok", test)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.write("fail", test, self._exc_info_to_string(err, test))


def main():
    folder, module, results = sys.argv[1:4]
    sys.path.insert(0, folder)
    os.chdir(folder)
    from mpi4py import MPI
    rank = MPI.COMM_WORLD.Get_rank()
    with open(f"{results}.{rank}", "w") as out:
        suite = unittest.defaultTestLoader.loadTestsFromName(module)
        suite.run(Result(out))
        out.write("end\n")


main()
