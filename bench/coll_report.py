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


def table(metric, of_size, systems):
    peers, own = [s for s in systems if s.endswith("/ob1")], [s for s in systems if not s.endswith("/ob1")]
    lines = ["| bytes | " + " | ".join(systems) + " | best form, to best peer | skew, us |",
             "|---|" + "---|" * (len(systems) + 2)]
    for size in sorted(of_size):
        of = of_size[size]
        value = {s: median(of[s], metric) for s in systems if of.get(s)}
        mine = [value[s] for s in own if s in value]
        theirs = [value[s] for s in peers if s in value]
        ratio = f"{min(mine) / min(theirs):.2f}" if mine and theirs and min(theirs) > 0 else ""
        cells = [f"{value[s]:.1f}" if s in value else "" for s in systems]
        lines.append(f"| {size_text(size)} | " + " | ".join(cells) + f" | {ratio} | {skew_text(of)} |")
    return lines


def tables(about, cells, systems):
    lines = [f"## {about['op']} over {about['transport']}", "",
             f"Machine: {about['machine']}. {about['date']}. `{about['command']}`", "",
             f"Times in us, medians of {about['rounds']} rounds of {about['batches']} batches, systems in random order. Skew: planned, and "
             "what came of it, the range over the systems; below the resolution is what the machine has without any delay.", ""]
    for ranks, late, mif in sorted(cells):
        for metric, text in METRICS.items():
            lines += [f"**{ranks} ranks, {pattern_text(late, mif)}: {text}**", ""]
            lines += table(metric, cells[ranks, late, mif], systems) + [""]
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
            name = f"{about['op']}-{about['transport']}-{ranks}-late{late}-mif{mif}-{metric.replace('_', '-')}"
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
