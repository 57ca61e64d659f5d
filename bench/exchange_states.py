"""Where two processors are: on a virtual machine they are now neighbours, now far apart, and messages between them then take up to five
times as long, for a tenth of a second or for minutes. `strata-perf --exchange` times the bare exchange of a cache line before and after
each batch. Each usual time is a state of the machine, and figures are compared within a state only."""
import statistics

FACTOR = 1.4  # readings within this factor are of one state
SHARE = 0.15  # of the samples with readings: below, what was measured in a state is left out


def like(one, other):
    return one < FACTOR * other and other < FACTOR * one


def samples_of(row):
    """The samples of a row of strata-perf's JSON: [value, exchange before, exchange after], 0 where it was not read."""
    readings = row.get("exchange", [0] * (len(row["samples"]) + 1))
    return [[value, readings[i], readings[i + 1]] for i, value in enumerate(row["samples"])]


def commonest(readings):
    """The reading that most of them, in ascending order, are like; and how many those are."""
    best, most, low, high = 0, 0, 0, 0
    for value in readings:
        while not like(readings[low], value):
            low += 1
        while high < len(readings) and like(readings[high], value):
            high += 1
        if high - low > most:
            best, most = value, high - low
    return best, most


def states(samples):
    """The usual exchanges, us, in ascending order; [0] where there are no readings."""
    left = sorted((before + after) / 2 for _, before, after in samples if before > 0 and after > 0 and like(before, after))
    least, found = SHARE * sum(before > 0 for _, before, _ in samples), []
    while left:
        usual, count = commonest(left)
        if count < least:
            break
        found.append(usual)
        left = [reading for reading in left if not like(reading, usual)]
    return sorted(found) or [0]


def within(samples, state):
    """The median of the samples taken in a state; None without any."""
    values = [value for value, before, after in samples if state == 0 or (before > 0 and like(before, state) and like(after, state))]
    return statistics.median(values) if values else None
