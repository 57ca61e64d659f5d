"""Judges what regret.py has measured: how much the default costs more than the best way that a user could have forced.

The best of several noisy ways looks better than it is. So the best way of a row is chosen by the median of one half of the rounds and
judged on the other half, then the halves change places. The regret of a round is default / chosen - 1; of all judged rounds the median
and its confidence interval (of order statistics, without an assumption on the distribution) make the row's regret.
"""
import math
import statistics

DEFAULT = "default"


def interval(values, confidence=0.95):
    """The median of values with an interval that holds it with this confidence; infinite where they are too few (95 %: six)."""
    ordered = sorted(values)
    n = len(ordered)
    low, outside = -1, 0.0
    for k in range((n + 1) // 2):
        outside += 2 * math.comb(n, k) / 2**n  # the median lies outside of the interval that leaves out k values at each end
        if outside > 1 - confidence:
            break
        low = k
    if low < 0:
        return statistics.median(ordered), -math.inf, math.inf
    return statistics.median(ordered), ordered[low], ordered[n - 1 - low]


def choose(costs, rounds):
    """The way with the least median over these rounds; the default where nothing is better."""
    medians = {}
    for way, values in costs.items():
        known = [values[r] for r in rounds if values[r] is not None]
        if known:
            medians[way] = statistics.median(known)
    return min(medians, key=lambda way: (medians[way], way != DEFAULT), default=DEFAULT)


def both(costs, way, turn):
    return costs[DEFAULT][turn] is not None and costs[way][turn] is not None


def judge(costs):
    """costs: way -> one cost for each round, or None; all of the same length, DEFAULT among them.

    Returns the chosen ways of both halves and the regret as (median, low, high), or None where no judged round has both costs.
    """
    n = len(costs[DEFAULT])
    halves = [list(range(0, n, 2)), list(range(1, n, 2))]
    if not halves[1]:
        halves[1] = halves[0]
    ways, regrets = [], []
    for chosen_on, judged_on in (halves, halves[::-1]):
        way = choose(costs, chosen_on)
        ways.append(way)
        regrets += [costs[DEFAULT][r] / costs[way][r] - 1 for r in judged_on if both(costs, way, r)]
    return ways, interval(regrets) if regrets else None


def beside(costs, peer):
    """How many times the default costs what a peer does: the median of the rounds' ratios, or NaN."""
    ratios = [mine / theirs for mine, theirs in zip(costs[DEFAULT], peer) if mine is not None and theirs is not None]
    return statistics.median(ratios) if ratios else math.nan
