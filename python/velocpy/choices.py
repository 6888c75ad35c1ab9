"""Values that arguments take, as types: a type checker finds one that is misspelt before anything runs.

Examples
--------
>>> from typing import get_args
>>> from velocpy import choices
>>> get_args(choices.Mode)
('a', 'r')
"""

from __future__ import annotations

from typing import Literal

__all__ = [
    "BestOrder",
    "Flush",
    "FlushRule",
    "Hints",
    "Mode",
    "Picture",
    "Pinning",
    "Policy",
    "TierName",
    "Verification",
]

#: A tier, from the fastest to the slowest.
TierName = Literal["device", "host", "disk", "archive"]

#: How a store may be used: to write to it too, or to read it.
Mode = Literal["a", "r"]

#: How memory of the host is made ready for transfers to devices: seed 004 and docs/device.md.
Pinning = Literal["auto", "pipeline", "concurrent", "sequential", "direct", "off"]

#: When checkpoints go to the tier below: when room is needed, or as soon as it is possible.
FlushRule = Literal["auto", "lazy", "eager"]

#: The same where there is no store from which "auto" could be decided: in `velocpy.simulate`.
Flush = Literal["lazy", "eager"]

#: How much of the order of restores is told in `velocpy.simulate`: nothing, the next restore, or all of it.
Hints = Literal["none", "one", "all"]

#: Which checkpoints give up their room first.
Policy = Literal["score", "lru", "fifo"]

#: Which numbers of a meta are the best: the smallest, as of a loss, or the largest, as of an accuracy.
BestOrder = Literal["min", "max"]

#: Which restores compare checksums: those of bytes that were moved, the first of a checkpoint in a tier, each, or none.
Verification = Literal["moved", "first", "always", "off"]

#: What `Store.plot` draws: where the checkpoints lie now, or the events that brought them there.
Picture = Literal["tiers", "timeline"]
