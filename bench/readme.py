#!/usr/bin/env python3
"""Measures the two tables of README.md anew and writes them there, with the machine, between the marks of each.

`strata-perf compare` and `strata-perf compare --embed`, some 25 minutes with 7 rounds. A measurement is kept in --state until its
table is written. Exit status 0, 1 when a measurement or a row of a table is missing, 2 for wrong usage.
"""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys

from machine import processor

# label, test, what selects its row; unit of the table and factor to it
COMPARE = [
    *((f"latency {label}, us one way", "latency", {"bytes": size}, 1) for label, size in
      (("8 B", 8), ("512 B", 512), ("1 KiB", 1 << 10), ("4 KiB", 4 << 10), ("8 KiB", 8 << 10), ("16 KiB", 16 << 10), ("64 KiB", 64 << 10),
       ("1 MiB", 1 << 20), ("4 MiB", 4 << 20))),
    ("messages of 8 B, millions a second", "bw", {"bytes": 8}, 1 / 8),
    *((f"bandwidth {label}, MB/s", "bw", {"bytes": size}, 1) for label, size in (("4 KiB", 4 << 10), ("64 KiB", 64 << 10), ("1 MiB", 1 << 20))),
    *((f"both directions {label}, MB/s", "bibw", {"bytes": size}, 1) for label, size in
      (("4 KiB", 4 << 10), ("8 KiB", 8 << 10), ("64 KiB", 64 << 10), ("1 MiB", 1 << 20))),
    ("8 B with 10,000 receives posted, us", "match", {"kind": "posted", "depth": 10000}, 1),
    ("8 B with 10,000 messages unexpected, us", "match", {"kind": "unexpected", "depth": 10000}, 1),
    ("ring of 1 KiB, 8 ranks on 2 processors, us a step", "ring", {"ranks": 8}, 1),
    ("the same, 16 ranks", "ring", {"ranks": 16}, 1),
    ("64 ranks start and all talk to all, slowest, s", "start", {}, 1),
    ("private memory of each of them then, MB", "memory", {"kind": "after talking to all"}, 1e-3),
]
EMBED = [
    *((f"latency {label}, us", "latency", {"bytes": size}, 1) for label, size in
      (("8 B", 8), ("4 KiB", 4 << 10), ("64 KiB", 64 << 10), ("1 MiB", 1 << 20))),
    ("bandwidth 8 B, MB/s", "bw", {"bytes": 8}, 1),
    ("bandwidth 1 MiB, MB/s", "bw", {"bytes": 1 << 20}, 1),
    ("exchange with 10,000 messages unexpected, us", "match", {"kind": "unexpected", "depth": 10000}, 1),
    ("ring of 8 ranks on 2 processors, us a step", "ring", {"ranks": 8}, 1),
    ("private memory a rank, 64 ranks that all talk to all, MB", "memory", {"kind": "after talking to all"}, 1e-3),
]
TABLES = {
    "compare": ([], COMPARE, {"strata": "Strata", "openmpi": "Open MPI", "mpich": "MPICH", "bare": "bare copies"}),
    "embed": (["--embed"], EMBED, {"strata": "Strata", "openmpi": "ob1, vader", "bare": "bare copies"}),
}


def options(words):
    parser = argparse.ArgumentParser(prog="bench-readme", description=__doc__.splitlines()[0])
    parser.add_argument("readme", help="the file with the marks")
    parser.add_argument("--rounds", type=int, default=7, help="of each comparison (%(default)s)")
    parser.add_argument("--only", metavar="TABLE", choices=sorted(TABLES), help="this table alone")
    parser.add_argument("--state", metavar="FOLDER", default="bench", help="measurements whose table is not written yet (%(default)s)")
    chosen = parser.parse_args(words)
    if chosen.rounds < 1:
        parser.error("--rounds: at least 1")
    return chosen


def measure(name, chosen):
    """The comparison, as strata-perf writes it: of the state, or measured now."""
    path = os.path.join(chosen.state, f"readme-{name}.json")
    if not os.path.exists(path):
        options, lines, _ = TABLES[name]
        tests = ",".join(dict.fromkeys(line[1] for line in lines))
        command = ["strata-perf", "compare", *options, "--only", tests, "--rounds", str(chosen.rounds), "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
        # Status 1 says that a target is missed, which the table shows.
        if done.returncode not in (0, 1) or not done.stdout:
            sys.exit(f"bench-readme: status {done.returncode}: {' '.join(command)}")
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(done.stdout)
        os.rename(path + ".new", path)
    with open(path, encoding="utf-8") as file:
        return json.load(file), path


def find(rows, test, want):
    for row in rows:
        if row["test"] == test and all(row.get(key) == value for key, value in want.items()):
            return row
    return None


def number(value):
    """Three digits that count; thousands with commas."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(value):
    return f"{value:.2f}" if value >= 0.095 else f"{value:.1g}"


def table(name, raw):
    """The paragraph and the table; raises LookupError with the label of a row that was not measured."""
    _, lines, libraries = TABLES[name]
    present = {key: title for key, title in libraries.items() if any(key in row for row in raw["rows"])}
    kernel, cpus = ".".join(platform.release().split(".")[:2]), len(os.sched_getaffinity(0))
    out = [f"{processor()}, {cpus} processors, Linux {kernel}, {datetime.date.today()}, medians of {raw['rounds']} rounds in turn "
           f"(`make bench-readme`):", "",
           "| | " + " | ".join(present.values()) + " | ratio |", "|---|" + "---|" * (len(present) + 1)]
    for label, test, want, factor in lines:
        row = find(raw["rows"], test, want)
        if row is None or "strata" not in row:
            raise LookupError(label)
        cells = [number(row[key]["median"] * factor) if key in row else "" for key in present]
        out.append(f"| {label} | " + " | ".join(cells) + f" | {ratio(row['ratio'])} |")
    if "exchange_us" in raw:
        out += ["", f"The bare exchange of a cache line between the two processors took {raw['exchange_us']:.3f} us. Bare copies "
                    "([docs/measuring.md](docs/measuring.md)) are the bound."]
    return "\n".join(out)


def between(text, name, body):
    begin, end = f"<!-- {name}: made by make bench-readme -->\n", f"<!-- end of {name} -->\n"
    first, last = text.find(begin), text.find(end)
    if first < 0 or last < first:
        raise LookupError(f"the marks {begin.strip()} and {end.strip()}")
    return text[:first + len(begin)] + body + "\n" + text[last:]


def main(words):
    chosen = options(words)
    for name in [chosen.only] if chosen.only else TABLES:
        raw, path = measure(name, chosen)
        try:
            with open(chosen.readme, encoding="utf-8") as file:
                text = between(file.read(), name, table(name, raw))
        except LookupError as missing:
            print(f"bench-readme: table {name}: missing: {missing.args[0]}; the measurement is in {path}", file=sys.stderr)
            return 1
        with open(chosen.readme + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(chosen.readme + ".new", chosen.readme)
        os.remove(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
