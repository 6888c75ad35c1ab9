"""Values that arguments take, as types: a type checker finds one that is misspelt before anything runs.

Examples
--------
>>> from typing import get_args
>>> from velocpy import choices
>>> get_args(choices.Mode)
('a', 'r')
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

__all__ = [
    "BestOrder",
    "DeviceBudgets",
    "DeviceName",
    "DeviceSizes",
    "Compressor",
    "Digest",
    "Flush",
    "FlushRule",
    "Hints",
    "Mode",
    "Picture",
    "Pinning",
    "Policy",
    "Reduction",
    "Size",
    "TierName",
    "Verification",
]

#: A tier, from the fastest to the slowest.
TierName = Literal["device", "host", "disk", "archive"]

#: A budget: bytes as an int (or ``4e9``), a text like ``"4GiB"``, ``"1.5G"`` or ``"25%"``, or a fraction of what is
#: free (a float up to 1.0). `velocpy.open` says which texts a tier takes.
Size = int | float | str

#: A CUDA device: its number, or a text like ``"cuda:0"``.
DeviceName = int | str


class DeviceSizes(Protocol):
    """A mapping of devices to their budgets: ``{0: "4GiB"}``, ``{"cuda:0": 0.25, "cuda:1": 0.5}``.

    A protocol, as a type checker takes no dict of ints to texts for a Mapping whose keys may be texts, too.
    """

    def items(self) -> Iterable[tuple[DeviceName, Size]]: ...


#: Budgets of CUDA devices: one size, for the device that is current in torch or CuPy, or a size for each device named.
DeviceBudgets = Size | DeviceSizes

#: How a store may be used: to write to it too, or to read it.
Mode = Literal["a", "r"]

#: How memory of the host is made ready for transfers to devices: Maurya et al., HiPC'22, and docs/device.md.
Pinning = Literal["auto", "pipeline", "concurrent", "sequential", "direct", "off"]

#: When checkpoints go to the tier below: when room is needed, or as soon as it is possible.
FlushRule = Literal["auto", "lazy", "eager"]

#: The same where there is no store from which "auto" could be decided: in `velocpy.simulate`.
Flush = Literal["lazy", "eager"]

#: How much of the order of restores is told in `velocpy.simulate`: nothing, the next restore, or all of it.
Hints = Literal["none", "one", "all"]

#: Which checkpoints give up their room first.
Policy = Literal["score", "lru", "fifo"]

#: How the checkpoints of a history are reduced on their way down: not at all; by the codec, if they become smaller;
#: by it or by de-duplication, unless that takes longer than moving them as they are; by de-duplication, with the
#: metadata of Tan et al., ICPP'23, section 3.2 ("full", "basic", "list", "tree"), or one entry a run ("runs"); or by
#: the codec, with an earlier checkpoint as the reference.
Reduction = Literal["raw", "codec", "auto", "full", "basic", "list", "tree", "runs", "reference"]

#: The hash function of de-duplication: XXH3-128, or MurmurHash3 with 128 bits, for comparison.
Digest = Literal["xxh3", "murmur3"]

#: Which compressor of the host makes smaller what is encoded on the way to the disk: Zstandard, S2 in Snappy's format,
#: or the Huffman coder of Zstandard alone.
Compressor = Literal["zstd", "s2", "huff0"]

#: Which numbers of a meta are the best: the smallest, as of a loss, or the largest, as of an accuracy.
BestOrder = Literal["min", "max"]

#: Which restores compare checksums: those of bytes that were moved, the first of a checkpoint in a tier, each, or none.
Verification = Literal["moved", "first", "always", "off"]

#: What `Store.plot` draws: where the checkpoints lie now, or the events that brought them there.
Picture = Literal["tiers", "timeline"]
