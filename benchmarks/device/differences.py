"""A checkpoint's regions on a CUDA device and the launches that find and gather their changed chunks.

They are defined by cuda/dedup_parameters.h. The results are those of gocore/reduction/dedup with the method Basic.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .encoded import fill
from .kernels import Driver

TILE, BLOCK = 16 << 10, 4 << 10
THREADS = 256
MARK_WORDS = 256
MOST = 64
"""Regions of a launch."""
DIGEST, TOTALS = 16, 24
"""Bytes of a digest, and of the totals of a launch: changed chunks, bytes that they are short of, where data begins."""
CHUNKS = tuple(1 << n for n in range(5, 13))
BLOCK_CHUNKS = CHUNKS[:5]
"""Chunk lengths, and those that may have digests of blocks too."""

SECRET = (
    *(0xBE4BA423396CFEB8, 0x1CAD21F72C81017C, 0xDB979083E96DD4DE, 0x1F67B3B7A4A44072),
    *(0x78E5C0CC4EE679CB, 0x2172FFCC7DD05A82, 0x8E2443F7744608B8, 0x4C263A81E69035E0),
    *(0xCB00C391BB52283C, 0xA32E531B8B65D088, 0x4EF90DA297486471, 0xD8ACDEA946EF1938),
    *(0x3F349CE33F76FAA8, 0x1D4F0BC7C7BBDCF9, 0x3159B4CD4BE0518A, 0x647378D9C97E9FC8),
)
"""The first words of the secret of XXH3."""
WORD = (1 << 64) - 1

_NUMBERS = ("count", "tiles", "shift", "blocks")
_SEEDS = ("leaf_seed", "sum_seed", "block_seed")
_RESULTS = ("marks", "list", "state", "totals", "before", "lost", "changed", "data")
_REGION = (
    "from",
    "bytes",
    "leaves",
    "comparable",
    "sums",
    "digests",
    "old_digests",
    "position",
    "tail_seed",
    "end_seed",
)
REGIONS = np.dtype(
    [
        *((n, "<u4") for n in _NUMBERS),
        *((n, "<u8") for n in (*_SEEDS, *_RESULTS)),
        ("key", "<u8", len(SECRET)),
        *((n, "<u8", MOST) for n in _REGION),
        ("first", "<u4", MOST),
    ]
)

Numbers = npt.NDArray[np.uint32]
Allocate = Callable[[int], int]


def role(seed: int, number: int) -> int:
    """The seed of a role, as docs/deduplication-format.md defines it."""
    z = (seed + number * 0x9E3779B97F4A7C15) & WORD
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & WORD
    return z ^ z >> 31


@dataclasses.dataclass(frozen=True)
class Form:
    """A chunk length, and whether blocks of 4 KiB have digests too."""

    chunk: int
    blocks: bool

    def __str__(self) -> str:
        return f"{self.chunk} B, digests of blocks" if self.blocks else f"{self.chunk} B"

    @property
    def shift(self) -> int:
        """The chunk length's binary logarithm."""
        return self.chunk.bit_length() - 1

    @property
    def kernel(self) -> str:
        """The kernel that scans."""
        return f"velocpy_dedup_scan_{'blocks_' if self.blocks else ''}{self.chunk}"

    @property
    def words(self) -> int:
        """Words of marks that a tile has."""
        return max(1, TILE // self.chunk // 32)

    def marks(self, chunks: Numbers) -> Numbers:
        """The marks of chunks that are counted from the beginning of a tile."""
        each = TILE // self.chunk
        return chunks if each >= 32 else chunks // np.uint32(each) * np.uint32(32) + chunks % np.uint32(each)


FORMS = tuple(
    Form(chunk, blocks) for chunk in CHUNKS for blocks in (False, True) if not blocks or chunk in BLOCK_CHUNKS
)


@dataclasses.dataclass
class Region:
    """Addresses of a region and of what a lineage keeps of it, and how many of the digests are comparable."""

    at: int
    size: int
    leaves: int
    digests: int
    sums: int
    comparable: int = 0
    old_digests: int = 0


class Part:
    """The regions of one launch, and the memory of its results."""

    def __init__(self, driver: Driver, form: Form, seed: int, regions: Sequence[Region], allocate: Allocate) -> None:
        self.driver, self.form, self.regions = driver, form, regions
        chunks = [-(-r.size // form.chunk) for r in regions]
        tiles = [-(-r.size // TILE) for r in regions]
        self.chunks, self.tiles = sum(chunks), sum(tiles)
        self.words = self.tiles * form.words
        self.list_blocks = -(-self.words // MARK_WORDS)
        self.marks, self.list = allocate(4 * self.words), allocate(4 * self.chunks)
        self.totals, self.lost = allocate(TOTALS), allocate(4 * len(regions))
        p = self.parameter = np.zeros(1, REGIONS)
        leaf, block = role(seed, 1), role(seed, 4)
        seeds = {"leaf_seed": leaf, "sum_seed": role(seed, 5), "block_seed": role(block, BLOCK)}
        places = {"marks": self.marks, "list": self.list, "totals": self.totals, "lost": self.lost}
        numbers = {"count": len(regions), "tiles": self.tiles, "shift": form.shift}
        for name, value in (seeds | places | numbers).items():
            p[name] = value
        p["key"][0] = [(word + (-leaf if i % 2 else leaf)) & WORD for i, word in enumerate(SECRET)]
        kept = ("leaves", "comparable", "sums", "digests", "old_digests")
        columns: dict[str, list[int]] = {name: [getattr(r, name) for r in regions] for name in kept}
        columns |= {"from": [r.at for r in regions], "bytes": [r.size for r in regions], "first": _before(tiles)}
        columns["tail_seed"] = [role(role(seed, 2), r.size % form.chunk) for r in regions]
        columns["end_seed"] = [role(block, r.size % BLOCK) for r in regions]
        for name, column in columns.items():
            p[name][0, : len(regions)] = column
        self._chunks_before = _before(chunks)

    def place(self, position: int, state: int, changed: int, data: int, before: int, gatherers: int) -> None:
        """Tells the launch its part of the checkpoint: its first position, and where state and common results lie."""
        p = self.parameter
        p["position"][0, : len(self.regions)] = [position + n for n in self._chunks_before]
        places = {"state": state, "changed": changed, "data": data, "before": before, "blocks": gatherers}
        for name, value in places.items():
            p[name] = value

    def scan(self, stream: object = None) -> None:
        """Queues the kernel that hashes and compares."""
        self.driver.launch(self.form.kernel, self.tiles, THREADS, self.parameter, stream)

    def list_changed(self, stream: object = None) -> None:
        """Queues the kernel that lists what has changed."""
        self.driver.launch("velocpy_dedup_list", self.list_blocks, THREADS, self.parameter, stream)

    def gather(self, stream: object = None) -> None:
        """Queues the kernel that copies what has changed to one place."""
        blocks = int(self.parameter["blocks"][0])
        self.driver.launch("velocpy_dedup_gather", blocks, THREADS, self.parameter, stream)


class Difference:
    """All regions of a checkpoint, in one launch or several. Its data goes to an address that the caller gives."""

    def __init__(
        self,
        driver: Driver,
        form: Form,
        seed: int,
        launches: Sequence[Sequence[Region]],
        data: int,
        gatherers: int,
        allocate: Allocate | None = None,
    ) -> None:
        allocate = allocate or driver.allocate
        self.driver, self.form, self.data = driver, form, data
        self.parts = [Part(driver, form, seed, regions, allocate) for regions in launches]
        self.chunks = sum(part.chunks for part in self.parts)
        states = _before([8 * part.list_blocks for part in self.parts])
        state_bytes = sum(8 * part.list_blocks for part in self.parts)
        self.map_bytes = (self.chunks + 31) // 32 * 4
        self._cleared_bytes = state_bytes + self.map_bytes
        self._cleared = allocate(self._cleared_bytes)
        self.changed = self._cleared + state_bytes
        position, before = 0, 0
        for part, state in zip(self.parts, states, strict=True):
            part.place(position, self._cleared + state, self.changed, data, before, gatherers)
            position, before = position + part.chunks, part.totals

    def clear(self, stream: object = None) -> None:
        """Queues the clearing of the launches' states and of the bitmap, which lie side by side."""
        fill(self.driver, self._cleared, 0, self._cleared_bytes, stream)

    def queue(self) -> None:
        """Queues everything on the driver's own stream."""
        self.clear()
        for part in self.parts:
            part.scan()
            part.list_changed()
            part.gather()


def _before(sizes: Sequence[int]) -> list[int]:
    """The sum of all sizes before each."""
    return [sum(sizes[:i]) for i in range(len(sizes))]
