"""Tables and figures of bench/coll.py: medians over the rounds, and how Strata's best form stands beside Open MPI's."""
import os
import shutil
import statistics
import subprocess

METRICS = {"after_last": "from the last arrival to the last exit", "in_call": "mean time in the call"}


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return str(size)


def median(rows, metric):
    samples = [v for row in rows for v in row[metric]["samples"]]
    return statistics.median(samples) if samples else None


def skew_text(of):
    """Planned and real skew of a line; the real one is the range over the systems."""
    rows = [row for rows in of.values() for row in rows]
    real = sorted(median(rows_of, "skew") for rows_of in of.values())
    planned = statistics.median(row["planned_skew"] for row in rows)
    short = sum(not row["resolved"] for row in rows)
    text = f"{planned:.0f}: {real[0]:.0f} to {real[-1]:.0f}"
    return text + (" (below the resolution)" if short * 2 > len(rows) else "")


def pattern_text(late, mif):
    if mif == 0:
        return "all arrive together"
    return f"{late} % late, MIF {mif}" if late else f"random arrival, MIF {mif}"


# Forms whose members wait for none that is late, and those of the same component that do.
AWARE = ("pap_direct", "pap_shm_direct", "auto", "pap_bruck", "pap_doubling")
UNAWARE = ("direct", "shm_direct", "bruck", "doubling", "basic", "default")
MOST = 1.02  # an aware form where all arrive together, to the best that is not
FLOOR = 1.3  # from the last arrival to the last exit, to the floor


def own(systems):
    return [s for s in systems if "/" not in s]


def to_floor(after, last_call):
    """Strata's best form beside the floor: the shortest call of a rank that arrives last, for which all others' data can be there.
    Both are dictionaries by system; None where one is missing."""
    after, calls = [after[s] for s in own(after)], [last_call[s] for s in own(last_call)]
    return min(after) / min(calls) if after and calls and min(calls) > 0 else None


def resolved(rows):
    return sum(not row["resolved"] for row in rows) * 2 <= len(rows)


def verdict(value):
    """The aware form that the choice takes, auto or the best, beside the best one that waits."""
    aware = value.get("auto", min((value[s] for s in AWARE if s in value), default=None))
    waits = [value[s] for s in UNAWARE if s in value]
    if aware is None or not waits or min(waits) <= 0:
        return ""
    ratio = aware / min(waits)
    return f"{ratio:.3f} {'met' if ratio <= MOST else 'missed'}"


def flat(about, cells):
    """What tables are made of, by operation, transport, ranks and pattern, for bench/coll_page.py."""
    return {"about": about, "cells": [
        {"ranks": ranks, "late": late, "mif": mif, "bytes": size, "system": system, "resolved": resolved(rows),
         **{metric: median(rows, metric) for metric in (*METRICS, "skew", "last_call")}}
        for (ranks, late, mif), of_size in sorted(cells.items()) for size, of in sorted(of_size.items())
        for system, rows in of.items()]}


def table(metric, of_size, systems, together):
    peers, mine_all = [s for s in systems if s.endswith("/ob1")], [s for s in systems if not s.endswith("/ob1")]
    judged = together and any(s in AWARE for s in systems) and any(s in UNAWARE for s in systems)
    floored = not together and metric == "after_last"
    heads = ["bytes", *systems, "best form, to best peer", *[f"aware, to best that waits (at most {MOST})"] * judged,
             *[f"best form, to the floor (at most {FLOOR})"] * floored, "skew, us"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for size in sorted(of_size):
        of = of_size[size]
        value = {s: median(of[s], metric) for s in systems if of.get(s)}
        mine = [value[s] for s in mine_all if s in value]
        theirs = [value[s] for s in peers if s in value]
        ratio = f"{min(mine) / min(theirs):.2f}" if mine and theirs and min(theirs) > 0 else ""
        cells = [f"{value[s]:.1f}" + "*" * (not resolved(of[s])) if s in value else "" for s in systems]
        last = to_floor(value, {s: median(of[s], "last_call") for s in value}) if floored else None
        cells = [size_text(size), *cells, ratio, *[verdict(value)] * judged, *[f"{last:.2f}" if last else ""] * floored, skew_text(of)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def tables(about, cells, systems):
    lines = [f"## {about['op']} over {about['transport']}", "",
             f"Machine: {about['machine']}. {about['date']}. `{about['command']}`", "",
             f"Times in us, medians of {about['rounds']} rounds of {about['batches']} batches, systems in random order. Skew: planned, and "
             "what came of it, the range over the systems. A figure with * is below the resolution: the planned skew is less than "
             "what the calls of that system have without any delay.", ""]
    if not about["whole"]:
        lines += ["**Not whole**: the run was ended by its limit of time, and the next one goes on.", ""]
    for ranks, late, mif in sorted(cells):
        for metric, text in METRICS.items():
            lines += [f"**{ranks} ranks, {pattern_text(late, mif)}: {text}**", ""]
            lines += table(metric, cells[ranks, late, mif], systems, mif == 0) + [""]
    return "\n".join(lines)


def lines_script(path, of_size, metric, systems):
    """Data and plot command of times by size."""
    rows = ["# bytes " + " ".join(systems)]
    for size in sorted(of_size):
        values = [median(of_size[size][s], metric) if of_size[size].get(s) else None for s in systems]
        rows.append(f"{size} " + " ".join("?" if v is None else f"{v:.3f}" for v in values))
    plots = ", ".join(f"'{path}.dat' using 1:{i + 2} with linespoints title '{s}'" for i, s in enumerate(systems))
    return rows, f"set logscale xy\nset key left top\nset xlabel 'bytes'\nplot {plots}\n"


def boxes_script(path, of, metric, systems):
    """Data and plot command of one size, as a barrier has: a box for each system. A logarithm of 0 bytes is no place."""
    rows = [f"{i} {s} {median(of[s], metric):.3f}" for i, s in enumerate(systems) if of.get(s)]
    return rows, ("set boxwidth 0.6\nset style fill solid 0.5\nset yrange [0:*]\nset xtics rotate by -30\n"
                  f"set xrange [-0.5:{len(systems) - 0.5}]\n"
                  f"plot '{path}.dat' using 1:3:xtic(2) with boxes notitle\n")


def figures(folder, about, cells, systems):
    """One figure for each pattern and metric: data, gnuplot script, and SVG where gnuplot is installed."""
    os.makedirs(folder, exist_ok=True)
    for (ranks, late, mif), of_size in sorted(cells.items()):
        for metric, text in METRICS.items():
            where = about["transport"].replace(", ", "-")
            name = f"{about['op']}-{where}-{ranks}-late{late}-mif{mif}-{metric.replace('_', '-')}"
            path = os.path.join(folder, name)
            if len(of_size) == 1:
                rows, plot = boxes_script(path, next(iter(of_size.values())), metric, systems)
            else:
                rows, plot = lines_script(path, of_size, metric, systems)
            with open(path + ".dat", "w", encoding="utf-8") as f:
                f.write("\n".join(rows) + "\n")
            with open(path + ".gp", "w", encoding="utf-8") as f:
                f.write("set terminal svg size 800,500 noenhanced\nset datafile missing '?'\n"
                        f"set output '{path}.svg'\nset ylabel 'us'\n"
                        f"set title '{about['op']} over {about['transport']}, {ranks} ranks, {pattern_text(late, mif)}: {text}'\n"
                        f"{plot}")
            if shutil.which("gnuplot"):
                subprocess.run(["gnuplot", path + ".gp"], check=False)
