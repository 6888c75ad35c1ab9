"""Two medians, and how far apart they are by noise alone."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from velocpy.bench.timing import median

DRAWS = 2000
#: Of so many of the ratios that were drawn the noise is the bound.
SHARE = 0.95
SEED = 18


class Compared(NamedTuple):
    """The medians of two cores; a ratio above 1 is a second core that is slower."""

    before: float
    after: float
    ratio: float
    spread_before: float
    spread_after: float
    noise: float


def compared(before: Sequence[float], after: Sequence[float], *, rate: bool) -> Compared:
    """Compares the rounds of two cores.

    >>> compared([1.0, 1.0, 1.0], [2.0, 2.0, 9.0], rate=False)[:3]
    (1.0, 2.0, 2.0)
    >>> compared([1.0, 1.0, 1.0], [2.0, 2.0, 9.0], rate=True).ratio
    0.5
    """
    first, second = median(list(before)), median(list(after))
    ratio = first / second if rate else second / first
    noise = max(noise_of(before), noise_of(after))
    return Compared(first, second, ratio, spread(before), spread(after), noise)


def spread(values: Sequence[float]) -> float:
    """The interquartile range, as a share of the median.

    >>> spread([1.0, 2.0, 3.0, 4.0, 5.0])
    0.6666666666666666
    """
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / median(list(values))


def noise_of(values: Sequence[float]) -> float:
    """By which share the median of a core's rounds exceeds another median of the same core's, for want of rounds.

    Two sets of as many rounds are drawn with replacement, again and again; most ratios of their medians are within it.
    """
    chance = random.Random(SEED)
    rounds = list(values)
    ratios = sorted(
        median(chance.choices(rounds, k=len(rounds))) / median(chance.choices(rounds, k=len(rounds)))
        for _ in range(DRAWS)
    )
    return ratios[int(SHARE * (DRAWS - 1))] - 1
