"""The figures of a store at one moment, in a form that another process can read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from velocpy.figures import Stats
from velocpy.interfaces import StoreState

#: Histories that a sample names: those with the most checkpoints.
NAMED = 8


class Sample(NamedTuple):
    """What a store has, and has done so far."""

    #: What tells the store from the others of its process.
    number: int
    #: The directory of its disk tier, or None.
    path: str | None
    durable: bool
    read_only: bool
    #: Seconds of a clock of the machine that never goes back.
    at: float
    #: As of `velocpy.Store.stats`, but for ``histories``, which is empty.
    stats: Stats
    #: How many histories there are, and how many checkpoints in all of them.
    histories: int
    checkpoints: int
    #: Names of histories with the numbers of their checkpoints.
    most: tuple[tuple[str, int], ...]


def sample_of(store: StoreState) -> Sample:
    """Reads a store now.

    Raises
    ------
    velocpy.errors.VelocError
        The store is closed, or has failed.

    Examples
    --------
    >>> import numpy, velocpy
    >>> from velocpy.live.sample import sample_of
    >>> with velocpy.open(host="1MiB") as store:
    ...     _ = store.history("run").checkpoint(0, u=numpy.zeros(100))
    ...     sample = sample_of(store)
    >>> sample.checkpoints, sample.most
    (1, (('run', 1),))
    """
    stats = store.stats()
    counts = {name: history["checkpoints"] for name, history in stats["histories"].items()}
    most = sorted(counts.items(), key=lambda item: -item[1])[:NAMED]
    stats["histories"] = {}
    path = None if store.path is None else str(store.path)
    read_only = bool(store._config["read_only"])
    total = sum(counts.values())
    return Sample(store._turn, path, store.durable, read_only, time.monotonic(), stats, len(counts), total, tuple(most))


def to_json(sample: Sample) -> dict[str, Any]:
    """What `from_json` reads."""
    return sample._asdict()


def from_json(facts: Mapping[str, Any]) -> Sample:
    """A sample of another process that runs the same version of velocpy.

    Raises
    ------
    KeyError, TypeError
        The other one has sent something else.
    """
    most = tuple((str(name), int(count)) for name, count in facts["most"])
    known = {name: facts[name] for name in Sample._fields if name != "most"}
    return Sample(**known, most=most)
