"""Parts of a tier's budget, by what may happen to the bytes next; tables and pictures show them."""

from __future__ import annotations

from typing import NamedTuple

from .figures import TierStats


class Part(NamedTuple):
    """Bytes of a tier that are in the same state."""

    name: str
    nbytes: int
    #: As CSS and matplotlib read it; it can be told from white and from black.
    colour: str


#: Name in `TierStats`, words for people, colour. The states exclude each other.
STATES = (
    ("held", "shown by leases", "#8e63ce"),
    ("promised", "prefetched", "#2f9e6e"),
    ("dirty", "in no lower tier", "#d9822b"),
    ("flushing", "being flushed", "#c9a227"),
    ("evictable", "evictable", "#4f8fd0"),
)
REST = ("in use", "#8a949e")


def parts(tier: TierStats) -> list[Part]:
    """The parts of what is used, those without a byte left out.

    Examples
    --------
    >>> import numpy, velocpy
    >>> from velocpy.occupancy import parts
    >>> with velocpy.open(host="1MiB") as store:
    ...     _ = store.history("run").checkpoint(0, u=numpy.zeros(100))
    ...     [(part.name, part.nbytes > 0) for part in parts(store.stats()["tiers"]["host"])]
    [('in no lower tier', True)]
    """
    left, found = tier["used"], []
    for key, name, colour in STATES:
        nbytes = min(left, int(tier[key]))  # type: ignore[literal-required]
        left -= nbytes
        found.append(Part(name, nbytes, colour))
    return [part for part in (*found, Part(REST[0], left, REST[1])) if part.nbytes]
