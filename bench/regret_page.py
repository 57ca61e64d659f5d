"""The tables of regret.py, as Markdown, and their verdict."""
import math
import statistics

from exchange_states import states, within
from regret_judge import DEFAULT, beside, judge

BOUND_ROW, BOUND_MEDIAN = 0.10, 0.02
MARK = "**What it says.**"  # from here on a page is written by hand


def all_samples(patterns):
    return [sample for costs in patterns for by_size in costs.values() for rounds in by_size.values() for samples in rounds for sample in samples]


def states_by_pattern(costs):
    """The states of each transport's patterns, us: {(transport, pattern): [...]}. All but `siblings` run on the same processors."""
    found = {}
    for on_siblings in (False, True):
        keys = [(transport, pattern) for transport, patterns in costs.items() for pattern in patterns if (pattern == "siblings") == on_siblings]
        usual = states(all_samples(costs[transport][pattern] for transport, pattern in keys))
        for transport, pattern in keys:
            read = any(sample[1] > 0 for sample in all_samples([costs[transport][pattern]]))
            found[transport, pattern] = usual if read else [0]
    return found


def in_state(costs, state):
    """Medians of one state: {way: {bytes: [us or None, one for each round]}}."""
    return {way: {size: [within(samples, state) for samples in rounds] for size, rounds in by_size.items()}
            for way, by_size in costs.items()}


def ratio(value):
    return "" if math.isnan(value) else f"{value:.2f}"


def table(heading, costs, out):
    """Prints the rows of one pattern, if there are any; returns (median, low) of each that could be judged."""
    peers = sorted(way for way in costs if way.startswith("peer "))
    sizes = [size for size in costs[DEFAULT] if any(us is not None for us in costs[DEFAULT][size])]
    if not sizes:
        return []
    print(f"\n## {heading}\n", file=out)
    print("| bytes | default, us | best way | regret, % | interval, % |" + "".join(f" x of {peer[5:]} |" for peer in peers) + " |", file=out)
    print("|" + "---|" * (6 + len(peers)), file=out)
    found = []
    for size in sizes:
        own = statistics.median(us for us in costs[DEFAULT][size] if us is not None)
        ways, regret = judge({way: by_size[size] for way, by_size in costs.items() if way not in peers})
        against = "".join(f" {ratio(beside({DEFAULT: costs[DEFAULT][size]}, costs[peer][size]))} |" for peer in peers)
        if regret is None:
            print(f"| {size} | {own:.3f} | | not judged | |{against} |", file=out)
            continue
        median, low, high = regret
        best = ways[0] if ways[0] == ways[1] else " or ".join(ways)
        verdict = "short" if low > BOUND_ROW else ""
        print(f"| {size} | {own:.3f} | {best} | {100 * median:.1f} | {100 * low:.1f} to {100 * high:.1f} |{against} {verdict} |", file=out)
        found.append((median, low))
    return found


def report(raw, out):
    """Prints all tables and the verdict; returns the exit status."""
    command = f"; `make bench-regret REGRET=\"{raw['command']}\"`" if raw.get("command") else ""
    print(f"# Regret of the default protocols\n\n{raw['machine']}; {raw['date']}; {raw['rounds']} rounds{command}.", file=out)
    usual = states_by_pattern(raw["costs"])
    if any(len(of) > 1 for of in usual.values()):
        print("\nThe two processors were at several distances, told by the bare exchange of a cache line around each sample; each distance "
              "has its tables.", file=out)
    rows = []
    for (transport, pattern), of in usual.items():
        for state in of:
            distance = f", exchange of a cache line {state:.3f} us" if state else ""
            rows += table(f"{transport}, {pattern}{distance}", in_state(raw["costs"][transport][pattern], state), out)
    median = statistics.median([row[0] for row in rows] or [0])
    short = sum(row[1] > BOUND_ROW for row in rows)
    print(f"\nRegret of {len(rows)} rows: {100 * median:.1f} % in the median (at most 2 wanted); "
          f"{short} rows certainly above 10 % (none wanted).", file=out)
    return 1 if short or median > BOUND_MEDIAN else 0
