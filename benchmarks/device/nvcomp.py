"""NVIDIA's nvCOMP beside the codec's kernels: the same bytes, on the same device, stream and clock.

Its batched C API, which NVIDIA's own benchmarks time, compresses chunks of 64 KiB, the length that its headers
recommend, and gets all memory beforehand. Bitcomp is called by its native API, over the whole region: decompression by
the batched API waits for the stream in the middle. These calls only queue work, so CUDA events time the same part of it
as for the codec's own kernels.
"""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import statistics
import struct
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from .encoded import UNTOUCHED, fill, tile
from .kernels import Bytes, Driver, Work, timed
from .samples import Sample

if TYPE_CHECKING:
    from velocpy.bench.report import Report

MISSING = "nvCOMP was not run beside: pip install nvidia-nvcomp-cu13, version 6, brings it."
NAME = "nvCOMP "
"""How the codec's name in a row begins."""
CHUNK = 64 << 10
ROUNDS = 5
MAJOR = 6
"""The version whose structs of options are written here; other versions have other fields."""
MOST = 32 << 30
"""Bytes of temporary memory that an algorithm may ask for: a device of 80 GB has room for them and the regions."""
STRIDE = 256
"""Alignment of compressed chunks. Every algorithm asks for 16 at most."""
SMALLER = 1.03
"""The least ratio of a compressor that counts as the fastest: that of a sample which the planner encodes."""

UCHAR, USHORT, UINT, ULONGLONG, FLOAT16, FLOAT32 = 1, 3, 5, 7, 10, 11  # nvcompType_t
BITSHUFFLE = 1  # with the most significant bits first
ASYMMETRIC, SYMMETRIC = 1, 2  # nvcompCascadedMode_t
BITPACK, ALL_ENCODINGS, LEVEL = 1, 7, 3  # Cascaded's default terminal codec, encodings and level
STATES = 2  # rANS states per lane: ANS's default, named so that decompression launches the kernel made for it
TYPES = {1: UCHAR, 2: USHORT, 4: UINT, 8: ULONGLONG}

NOTES = (
    f"nvCOMP: medians of {ROUNDS} rounds, in turns with the copy, by CUDA events; all memory is allocated before. LZ4, "
    f"Snappy, GDeflate, Zstd, Cascaded and ANS by the batched C API in chunks of {CHUNK >> 10} KiB, as its headers "
    "recommend, with the type of the data's words where they take one, and else with default options; Bitcomp by its "
    "native API over the whole region.",
    "Of nvCOMP only payloads count as compressed bytes, and its chunks lie apart; a container of velocpy is contiguous "
    "and counts with its header, tables and hashes, which velocpy also computes and verifies. Where the data have a "
    "reference, nvCOMP gets the XOR with it, made before. Rates in the notes are those of encoding and of decoding, "
    f"velocpy's with locate; the fastest is that among ratios of {SMALLER} and more.",
)


class Options(ctypes.Structure):
    """The options of an algorithm: 64 bytes, passed by value, for compression and for decompression."""

    _fields_ = (("bytes", ctypes.c_ubyte * 64),)


@dataclasses.dataclass(frozen=True)
class Choice:
    """An algorithm with options. `compress` and `decompress` are the bytes of the structs in nvCOMP's headers."""

    name: str
    #: The options in words.
    options: str
    compress: bytes = bytes(64)
    decompress: bytes = bytes(64)

    @property
    def function(self) -> str:
        """The algorithm's part of the functions' names."""
        return "Gdeflate" if self.name == "GDeflate" else self.name


def choices(word: int) -> list[Choice]:
    """What is measured of data whose words have so many bytes."""
    kind, bits = TYPES[word], f"uint{8 * word}"
    floats = {2: FLOAT16, 4: FLOAT32}.get(word)
    found = [
        Choice("LZ4", bits, _lz4(kind, 0), bytes(64)),
        Choice("LZ4", f"{bits}, bitshuffle", _lz4(kind, BITSHUFFLE), struct.pack("<4i48x", 0, 0, kind, BITSHUFFLE)),
        Choice("Snappy", "bytes"),
        *(Choice("GDeflate", f"algorithm {number}", struct.pack("<i60x", number)) for number in (0, 1)),
        Choice("Zstd", "bytes"),
        _cascaded(bits, kind, ASYMMETRIC),
        *([_cascaded(bits, kind, SYMMETRIC)] if word >= 4 else []),
        _ans("bytes", UCHAR),
        *([_ans(f"float{8 * word}", floats)] if floats else []),
    ]
    natives = {1: 0, 2: 2, 4: 4, 8: 6}  # bitcompDataType_t of unsigned integers
    for number, name in enumerate(("default", "sparse")):
        found.append(Choice("Bitcomp", f"{bits}, {name}", struct.pack("<2i56x", natives[word], number)))
    return found


def _lz4(kind: int, shuffle: int) -> bytes:
    return struct.pack("<2i56x", kind, shuffle)


def _cascaded(bits: str, kind: int, mode: int) -> Choice:
    common = struct.pack("<2i2Q", kind, mode, BITPACK, 0)
    words = f"{bits}, {'symmetric' if mode == SYMMETRIC else 'asymmetric'}"
    compress = common + struct.pack("<QB31x", ALL_ENCODINGS, LEVEL)
    return Choice("Cascaded", words, compress, struct.pack("<i4x", 0) + common + bytes(32))


def _ans(words: str, kind: int) -> Choice:
    both = struct.pack("<2i3B53x", 0, kind, 0, STATES, 0)  # the same bytes for decompression: backend 0, validated
    return Choice("ANS", words, both, both)


class Library:
    """The functions of nvCOMP; one that fails raises an error with its name."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions
        properties = (ctypes.c_uint32 * 2)()
        self.call("nvcompGetProperties", properties)
        number = int(properties[0])
        self.major, self.version = number // 1000, f"{number // 1000}.{number % 1000 // 100}.{number % 100}"

    def call(self, name: str, *arguments: object) -> None:
        """One function that returns a status."""
        status = getattr(self._functions, name)(*arguments)
        if status:
            text = self._functions.nvcompGetStatusString(status) if name.startswith("nvcomp") else b""
            raise RuntimeError(f"{name} returned {status}{f' ({text.decode()})' if text else ''}")

    def bitcomp_bound(self, size: int) -> int:
        """Bytes that Bitcomp makes of so many at most."""
        return int(self._functions.bitcompMaxBuflen(ctypes.c_size_t(size)))


def load() -> Library | None:
    """The library of the installed wheel; None without one."""
    try:
        functions = importlib.import_module("nvidia.libnvcomp").load_library()
    except ModuleNotFoundError:
        return None
    if functions is None:
        return None
    functions.nvcompGetStatusString.restype = ctypes.c_char_p
    functions.bitcompMaxBuflen.restype = ctypes.c_size_t
    return Library(functions)


@dataclasses.dataclass(frozen=True)
class Needs:
    """Bytes of the device that a choice needs for a region."""

    room: int
    temp: int


class Area:
    """Memory of the device for regions of one size, until the driver's release; every choice uses the same."""

    def __init__(self, driver: Driver, size: int, needs: Sequence[Needs]) -> None:
        self.driver, self.size = driver, size
        self.chunks = size // CHUNK
        self.plain, self.back = driver.allocate(size), driver.allocate(size)
        self.room = driver.allocate(max(need.room for need in needs))
        self.temp_size = max(need.temp for need in needs)
        self.temp = driver.allocate(max(self.temp_size, STRIDE))
        names = ("from", "sizes", "to", "lengths", "back", "restored")
        self.tables = {name: driver.allocate(8 * self.chunks) for name in names}
        self.statuses = driver.allocate(4 * self.chunks)
        self._write("sizes", np.full(self.chunks, CHUNK, np.uint64))
        self._write("from", _places(self.plain, CHUNK, self.chunks))
        self._write("back", _places(self.back, CHUNK, self.chunks))

    def lay_out(self, stride: int) -> None:
        """Tells the device where the compressed chunks begin."""
        self._write("to", _places(self.room, stride, self.chunks))

    def read(self, name: str) -> npt.NDArray[np.uint64]:
        """A table, from the device."""
        return self.driver.download(self.tables[name], 8 * self.chunks).view("<u8")

    def forget_statuses(self) -> None:
        """Queues a fill, so that a status that is not written is no success."""
        fill(self.driver, self.statuses, UNTOUCHED, 4 * self.chunks)

    def failures(self) -> int:
        """Chunks whose status is not success."""
        return int(np.count_nonzero(self.driver.download(self.statuses, 4 * self.chunks).view("<i4")))

    def _write(self, name: str, values: npt.NDArray[np.uint64]) -> None:
        self.driver.upload(self.tables[name], values.view(np.uint8))


def _places(at: int, stride: int, count: int) -> npt.NDArray[np.uint64]:
    return np.uint64(at) + np.arange(count, dtype=np.uint64) * np.uint64(stride)


class Compressor(Protocol):
    """A choice on an area."""

    def compress(self) -> None:
        """Queues the compression of the plain bytes."""

    def decompress(self) -> None:
        """Queues the decompression of what was compressed."""

    def check(self) -> None:
        """Waits, and raises an error where the last call has failed for a chunk."""

    def length(self) -> int:
        """Compressed bytes."""

    def close(self) -> None:
        """Frees what the library has allocated."""


class Batched:
    """An algorithm of the batched API."""

    def __init__(self, library: Library, area: Area, choice: Choice) -> None:
        self._library, self._area = library, area
        self._begin = f"nvcompBatched{choice.function}"
        self._compress = Options.from_buffer_copy(choice.compress)
        self._decompress = Options.from_buffer_copy(choice.decompress)
        area.lay_out(_stride(library, choice))

    @staticmethod
    def needs(library: Library, driver: Driver, choice: Choice, size: int) -> Needs:
        """Room for the compressed chunks, and temporary memory for the way that needs more."""
        chunks, temp = size // CHUNK, []
        for way, options in (("Compress", choice.compress), ("Decompress", choice.decompress)):
            found = ctypes.c_size_t()
            shape = ctypes.c_size_t(chunks), ctypes.c_size_t(CHUNK), Options.from_buffer_copy(options)
            rest = ctypes.byref(found), ctypes.c_size_t(size), driver.stream
            library.call(f"nvcompBatched{choice.function}{way}GetTempSize", *shape, *rest)
            temp.append(found.value)
        return Needs(chunks * _stride(library, choice), max(temp))

    def compress(self) -> None:
        area, tables = self._area, self._tables()
        plain = tables["from"], tables["sizes"], ctypes.c_size_t(CHUNK), ctypes.c_size_t(area.chunks)
        rest = tables["to"], tables["lengths"], self._compress, *self._statuses_and_stream()
        self._library.call(f"{self._begin}CompressAsync", *plain, *self._temp(), *rest)

    def decompress(self) -> None:
        area, tables = self._area, self._tables()
        compressed = tables["to"], tables["lengths"], tables["sizes"], tables["restored"], ctypes.c_size_t(area.chunks)
        rest = tables["back"], self._decompress, *self._statuses_and_stream()
        self._library.call(f"{self._begin}DecompressAsync", *compressed, *self._temp(), *rest)

    def check(self) -> None:
        if failures := self._area.failures():
            raise RuntimeError(f"{failures} of {self._area.chunks} chunks failed")

    def length(self) -> int:
        return int(self._area.read("lengths").sum())

    def close(self) -> None: ...

    def _tables(self) -> dict[str, ctypes.c_void_p]:
        return {name: ctypes.c_void_p(at) for name, at in self._area.tables.items()}

    def _temp(self) -> tuple[ctypes.c_void_p, ctypes.c_size_t]:
        return ctypes.c_void_p(self._area.temp), ctypes.c_size_t(self._area.temp_size)

    def _statuses_and_stream(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        return ctypes.c_void_p(self._area.statuses), self._area.driver.stream


def _stride(library: Library, choice: Choice) -> int:
    found = ctypes.c_size_t()
    arguments = ctypes.c_size_t(CHUNK), Options.from_buffer_copy(choice.compress), ctypes.byref(found)
    library.call(f"nvcompBatched{choice.function}CompressGetMaxOutputChunkSize", *arguments)
    return -(-found.value // STRIDE) * STRIDE


class Bitcomp:
    """Bitcomp by its native API: one plan for the region, whose compressed bytes are contiguous."""

    def __init__(self, library: Library, area: Area, choice: Choice) -> None:
        self._library, self._area = library, area
        self._plan = ctypes.c_void_p()
        kind, algorithm = struct.unpack_from("<2i", choice.compress)
        library.call("bitcompCreatePlan", ctypes.byref(self._plan), ctypes.c_size_t(area.size), kind, 0, algorithm)
        library.call("bitcompSetStream", self._plan, area.driver.stream)

    @staticmethod
    def needs(library: Library, size: int) -> Needs:
        """Room for the compressed bytes."""
        return Needs(library.bitcomp_bound(size), 0)

    def compress(self) -> None:
        self._run("bitcompCompressLossless", self._area.plain, self._area.room)

    def decompress(self) -> None:
        self._run("bitcompUncompress", self._area.room, self._area.back)

    def check(self) -> None:
        self._area.driver.synchronize()

    def length(self) -> int:
        self._area.driver.synchronize()
        size = ctypes.c_size_t()
        self._library.call("bitcompGetCompressedSize", ctypes.c_void_p(self._area.room), ctypes.byref(size))
        return size.value

    def close(self) -> None:
        self._library.call("bitcompDestroyPlan", self._plan)

    def _run(self, name: str, source: int, to: int) -> None:
        self._library.call(name, self._plan, ctypes.c_void_p(source), ctypes.c_void_p(to))


def needs_of(library: Library, driver: Driver, choice: Choice, size: int) -> Needs:
    """What a choice needs for so many bytes."""
    if choice.name == "Bitcomp":
        return Bitcomp.needs(library, size)
    return Batched.needs(library, driver, choice, size)


def opened(library: Library, area: Area, choice: Choice) -> Compressor:
    """A choice, ready to work on an area."""
    return Bitcomp(library, area, choice) if choice.name == "Bitcomp" else Batched(library, area, choice)


def measure(library: Library, area: Area, choice: Choice, block: Bytes, host: Bytes) -> dict[str, Any]:
    """The ratio, the rates and the wrong bytes of a choice; the area holds copies of the block.

    Raises
    ------
    RuntimeError
        A call, or the work on a chunk, has failed.
    """
    driver = area.driver
    compressor = opened(library, area, choice)
    try:
        area.forget_statuses()
        compressor.compress()
        compressor.check()
        length = compressor.length()

        def copy() -> None:
            driver.copy(area.back, area.plain, area.size)

        works: dict[str, Work] = {"encode": compressor.compress, "decode": compressor.decompress, "copy": copy}
        times = timed(driver, works, ROUNDS, copy)
        fill(driver, area.back, UNTOUCHED, area.size)
        area.forget_statuses()
        compressor.decompress()
        compressor.check()
        wrong = _wrong_bytes(area, block, host)
    finally:
        compressor.close()
    rates = {f"{name} GB/s": area.size / statistics.median(took) / 1e6 for name, took in times.items()}
    return {"ratio": area.size / length} | rates | {"wrong bytes": wrong}


def _wrong_bytes(area: Area, block: Bytes, host: Bytes) -> int:
    """Restored bytes that differ from copies of the block. Pinned memory makes the transfers short."""
    wrong = 0
    for offset in range(0, area.size, block.size):
        to, source = ctypes.c_void_p(host.ctypes.data), ctypes.c_uint64(area.back + offset)
        area.driver.call("cuMemcpyDtoHAsync_v2", to, source, ctypes.c_size_t(block.size), area.driver.stream)
        area.driver.synchronize()
        if not np.array_equal(host.view(np.uint64), block.view(np.uint64)):
            wrong += int(np.count_nonzero(host != block))
    return wrong


def given(sample: Sample) -> Bytes:
    """What nvCOMP compresses of a sample: the XOR with the reference, where there is one."""
    return sample.plain if sample.reference is None else sample.plain ^ sample.reference


def beside(
    report: Report, driver: Driver, library: Library | None, sizes: Sequence[int], known: Sequence[Sample], limit: float
) -> None:
    """Adds the rows of nvCOMP to a report, and says what was left out, and why.

    After `limit` seconds nothing new begins. Choices that fail are left out, and remarks tell their errors.
    """
    if library is None:
        report.remark(MISSING)
        return
    report.settings["nvCOMP"] = library.version
    if library.major != MAJOR:
        report.remark(f"nvCOMP was not run beside: it is {library.version}, and the benchmark knows version {MAJOR}.")
        return
    began, rows, left = time.monotonic(), [], []
    host = driver.pinned(known[0].plain.size)
    try:
        for size in sizes:
            for each in _of_size(report, driver, library, size, known, host):
                if time.monotonic() - began > limit:
                    left.append(each.label)
                else:
                    rows += each.rows()
            driver.release()
    except RuntimeError as error:  # of the driver: after a fault of a kernel every call fails
        report.remark(f"nvCOMP ended early: {error}.")
    if left:
        report.remark(f"nvCOMP: after {limit:g} s nothing new began; left out: {left[0]}, and {len(left) - 1} more.")
    if rows:
        report.rows += rows
        report.never("bytes that differ after a round trip of nvCOMP", sum(row["wrong bytes"] for row in rows))
        report.notes += (*NOTES, *summary(report.rows))


@dataclasses.dataclass(frozen=True)
class _Measurement:
    """One choice on one sample, not yet run."""

    report: Report
    library: Library
    area: Area
    sample: Sample
    choice: Choice
    host: Bytes

    @property
    def label(self) -> str:
        return f"{self.choice.name} ({self.choice.options}) of {self.sample.name}, {self.area.size >> 20} MiB"

    def rows(self) -> list[dict[str, Any]]:
        """The row; none where the choice fails, which the report then tells."""
        head = {"data": self.sample.name, "MiB": self.area.size >> 20, "codec": NAME + self.choice.name}
        try:
            found = measure(self.library, self.area, self.choice, given(self.sample), self.host)
        except RuntimeError as error:
            self.report.remark(f"{NAME}{self.label}: {error}.")
            self.area.driver.synchronize()  # raises where no later call can succeed either
            return []
        return [head | {"modes": self.choice.options} | found]


def _of_size(
    report: Report, driver: Driver, library: Library, size: int, known: Sequence[Sample], host: Bytes
) -> Iterator[_Measurement]:
    """The measurements of regions of a size; the bytes of a sample are in place when its first one is given."""
    needs: dict[Choice, Needs] = {}
    for choice in dict.fromkeys(choice for sample in known for choice in choices(sample.kind.word)):
        try:
            needed = needs_of(library, driver, choice, size)
            if needed.temp > MOST:
                raise RuntimeError(f"it asks for {needed.temp >> 30} GiB of temporary memory")
            needs[choice] = needed
        except RuntimeError as error:
            report.remark(f"{NAME}{choice.name} ({choice.options}), {size >> 20} MiB: {error}.")
    if not needs:
        return
    area = Area(driver, size, list(needs.values()))
    for sample in known:
        tile(driver, area.plain, given(sample), size)
        for choice in choices(sample.kind.word):
            if choice in needs:
                yield _Measurement(report, library, area, sample, choice, host)


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """For each kind of data velocpy and the best of nvCOMP, in the largest region that most of its choices ran on."""
    texts = []
    for data in dict.fromkeys(row["data"] for row in rows):
        theirs = [row for row in rows if row["data"] == data and row["codec"].startswith(NAME)]
        counts = Counter(row["MiB"] for row in theirs)
        most = max(counts, key=lambda size: (counts[size], size), default=0)
        theirs = [row for row in theirs if row["MiB"] == most]
        ours = [row for row in rows if (row["data"], row["MiB"]) == (data, most) and row.get("modes") == "suited"]
        if not theirs or not ours:
            continue
        best = [("most compact", max(theirs, key=lambda row: float(row["ratio"])))]
        smaller = [row for row in theirs if row["ratio"] >= SMALLER]
        for what in ("encode", "decode") if smaller else ():
            best.append((f"fastest to {what}", max(smaller, key=lambda row: float(row[f"{what} GB/s"]))))
        ended = "" if smaller else f" None makes it smaller by {SMALLER - 1:.0%}."
        texts.append(
            f"{data}, {most} MiB: velocpy {_told(ours[0], 'locate and decode')}. nvCOMP: "
            + "; ".join(f"{what} {row['codec'].removeprefix(NAME)} ({row['modes']}) {_told(row)}" for what, row in best)
            + f".{ended}"
        )
    return texts


def _told(row: dict[str, Any], decode: str = "decode") -> str:
    return f"ratio {row['ratio']:.4g}, {row['encode GB/s']:.4g} and {row[f'{decode} GB/s']:.4g} GB/s"
