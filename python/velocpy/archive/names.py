"""The names of the histories with the parts of ranks."""

from __future__ import annotations

import re

from velocpy.checks import require_whole

__all__ = ["part", "split_part"]

_PART = re.compile(r"rank (0|[1-9][0-9]*)/(.*)", re.DOTALL)


def part(history: str, rank: int) -> str:
    """The name, in an archive, of the history with the checkpoints of one rank.

    Parameters
    ----------
    history
        The name that it has in the rank's own store.
    rank
        Number of the rank, from 0 on.

    Raises
    ------
    InvalidArgument
        ``rank`` is no whole number from 0 on.

    Examples
    --------
    >>> from velocpy.archive import part
    >>> part("forward", 3)
    'rank 3/forward'
    """
    return f"rank {require_whole('rank', rank, 0)}/{history}"


def split_part(name: str) -> tuple[str, int] | None:
    """The history and the rank that a name of `part` tells; None for every other name.

    Examples
    --------
    >>> from velocpy.archive import split_part
    >>> split_part("rank 3/forward"), split_part("forward")
    (('forward', 3), None)
    """
    found = _PART.fullmatch(name)
    return (found[2], int(found[1])) if found else None
