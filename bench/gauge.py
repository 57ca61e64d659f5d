"""Whether two processors are as usual: on a virtual machine they are now neighbours, now far apart, and messages between them take up to
four times as long. The bare exchange of a cache line tells (exchange.c), for jobs that cannot read it around each sample
(exchange_states.py)."""
import statistics
import subprocess
import time

from exchange_states import commonest, like

TRIES, WAITS, READINGS = 6, 100, 31


class Gauge:
    """Runs jobs until the processors were as usual before and after; after a few tries as they come."""

    def __init__(self, program, places):
        self.command = [program, *map(str, places)] if program and len(places) == 2 else None
        self.seen, self.repeated, self.unlike = [], 0, 0
        for _ in range(READINGS if self.command else 0):
            self.as_usual()
            time.sleep(0.05)

    def as_usual(self):
        done = subprocess.run(self.command, stdout=subprocess.PIPE, check=False, text=True)
        if done.returncode:
            return True
        now = float(done.stdout)
        self.seen.append(now)
        usual, _ = commonest(sorted(self.seen[:READINGS]))  # later readings do not move it
        return like(now, usual)

    def run(self, job):
        """The result of job()."""
        if self.command is None:
            return job()
        for _ in range(TRIES):
            for _ in range(WAITS):
                if self.as_usual():
                    break
                time.sleep(0.05)
            result = job()
            if self.as_usual():
                return result
            self.repeated += 1
        self.unlike += 1
        return result

    def __str__(self):
        if not self.seen:
            return ""
        return (f"Bare exchange of a cache line, one way: {statistics.median(self.seen):.3f} us; jobs repeated because it had changed: "
                f"{self.repeated}, taken all the same: {self.unlike}.")
