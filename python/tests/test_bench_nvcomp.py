"""nvCOMP beside the codec's kernels, without a GPU: its calls on a library that stands for nvCOMP, and its rows."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import struct
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.device import codec, nvcomp
from benchmarks.device.encoded import Kind
from benchmarks.device.samples import BF16, FP32, Sample
from benchmarks.report import claims, page
from velocpy.bench.report import Report

SIZE = 2 * nvcomp.CHUNK


class Memory:
    """The driver's calls on this process's memory."""

    name, stream = "memory", ctypes.c_void_p(77)

    def __init__(self) -> None:
        self._owned: list[np.ndarray] = []
        self.broken = False

    def allocate(self, size: int) -> int:
        self._owned.append(np.zeros(size, np.uint8))
        return self._owned[-1].ctypes.data

    def pinned(self, size: int) -> np.ndarray:
        return np.zeros(size, np.uint8)

    def release(self) -> None:
        self._owned.clear()

    def upload(self, to: int, data: np.ndarray) -> None:
        ctypes.memmove(to, data.ctypes.data, data.nbytes)

    def download(self, at: int, size: int) -> np.ndarray:
        return np.frombuffer(ctypes.string_at(at, size), np.uint8)

    def copy(self, to: int, source: int, size: int) -> None:
        ctypes.memmove(to, source, size)

    def call(self, name: str, *arguments: Any) -> None:
        if name == "cuMemsetD8Async":
            ctypes.memset(arguments[0].value, arguments[1].value, arguments[2].value)
        elif name == "cuMemcpyDtoHAsync_v2":
            ctypes.memmove(arguments[0].value, arguments[1].value, arguments[2].value)
        else:
            assert name == "cuEventRecord"

    def synchronize(self) -> None:
        if self.broken:
            raise RuntimeError("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS")

    def event(self) -> None: ...

    def milliseconds(self, begin: object, end: object) -> float:
        return 1.0


class Functions:
    """The functions of libnvcomp, all by zlib. The arguments have the order of the headers of version 6.0."""

    def __init__(self, version: int = 6000) -> None:
        self.version = version
        self.seen: dict[str, bytes] = {}
        self.plans: dict[int, int] = {}
        self.refused = ""
        self.change: Callable[[bytes], bytes] = bytes
        self.temp = 1000

    def nvcompGetProperties(self, properties: Any) -> int:
        properties[0], properties[1] = self.version, 13000
        return 0

    def nvcompGetStatusString(self, status: int) -> bytes:
        return b"not supported"

    def __getattr__(self, name: str) -> Callable[..., int]:
        found = re.fullmatch(
            r"nvcompBatched[A-Z][A-Za-z0-9]*?((?:Comp|Decomp)ress(?:GetTempSize|Get\w+Size|Async))", name
        )
        if found is None:
            raise AttributeError(name)
        return partial(object.__getattribute__(self, f"_{found[1]}"), name)

    def _CompressGetTempSize(self, name: str, n: Any, most: Any, options: Any, to: Any, total: Any, stream: Any) -> int:
        assert (most.value, n.value * most.value) == (nvcomp.CHUNK, total.value)
        assert stream is Memory.stream
        to._obj.value = self.temp
        return 0

    _DecompressGetTempSize = _CompressGetTempSize

    def _CompressGetMaxOutputChunkSize(self, name: str, most: Any, options: Any, to: Any) -> int:
        to._obj.value = most.value + 1001
        return 0

    def _CompressAsync(self, name: str, *arguments: Any) -> int:
        sources, sizes, most, n, _temp, temp_size, targets, lengths, options, statuses, stream = arguments
        if self.refused and self.refused in name:
            return 11
        assert (most.value, temp_size.value, stream) == (nvcomp.CHUNK, self.temp, Memory.stream)
        self.seen[name] = bytes(options)
        table = _words(targets, n)
        for i, (at, size) in enumerate(zip(_words(sources, n), _words(sizes, n), strict=True)):
            made = zlib.compress(ctypes.string_at(at, size), 1)
            ctypes.memmove(table[i], made, len(made))
            ctypes.memmove(lengths.value + 8 * i, struct.pack("<Q", len(made)), 8)
        ctypes.memset(statuses.value, 0, 4 * n.value)
        return 0

    def _DecompressAsync(self, name: str, *arguments: Any) -> int:
        sources, lengths, room, restored, n, _temp, temp_size, targets, options, statuses, stream = arguments
        assert (temp_size.value, stream) == (self.temp, Memory.stream)
        self.seen[name] = bytes(options)
        table, rooms = _words(targets, n), _words(room, n)
        for i, (at, size) in enumerate(zip(_words(sources, n), _words(lengths, n), strict=True)):
            made = self.change(zlib.decompress(ctypes.string_at(at, size)))
            assert len(made) == rooms[i]
            ctypes.memmove(table[i], made, len(made))
            ctypes.memmove(restored.value + 8 * i, struct.pack("<Q", len(made)), 8)
        ctypes.memset(statuses.value, 0, 4 * n.value)
        return 0

    def bitcompMaxBuflen(self, size: Any) -> int:
        return int(size.value) + 1001

    def bitcompCreatePlan(self, plan: Any, size: Any, kind: int, mode: int, algorithm: int) -> int:
        assert kind in (2, 4)
        assert (mode, algorithm) in ((0, 0), (0, 1))
        plan._obj.value = len(self.plans) + 1
        self.plans[plan._obj.value] = size.value
        return 0

    def bitcompSetStream(self, plan: Any, stream: Any) -> int:
        return 0 if plan.value in self.plans and stream is Memory.stream else -1

    def bitcompCompressLossless(self, plan: Any, source: Any, to: Any) -> int:
        made = zlib.compress(ctypes.string_at(source.value, self.plans[plan.value]), 1)
        made = struct.pack("<Q", len(made)) + made
        ctypes.memmove(to.value, made, len(made))
        return 0

    def bitcompGetCompressedSize(self, at: Any, size: Any) -> int:
        size._obj.value = 8 + struct.unpack("<Q", ctypes.string_at(at.value, 8))[0]
        return 0

    def bitcompUncompress(self, plan: Any, source: Any, to: Any) -> int:
        (size,) = struct.unpack("<Q", ctypes.string_at(source.value, 8))
        made = zlib.decompress(ctypes.string_at(source.value + 8, size))
        ctypes.memmove(to.value, made, len(made))
        return 0

    def bitcompDestroyPlan(self, plan: Any) -> int:
        return 0 if self.plans.pop(plan.value) else -1


def _words(table: Any, n: Any) -> list[int]:
    return np.frombuffer(ctypes.string_at(table.value, 8 * n.value), np.uint64).tolist()


def known(size: int = nvcomp.CHUNK) -> list[Sample]:
    ramp = np.arange(size // 2, dtype=np.uint16).view(np.uint8)
    return [
        Sample("ramp", FP32, 1, ramp),
        Sample("step", BF16, 1, ramp ^ np.uint8(3), ramp),
    ]


def played(functions: Functions, driver: Memory | None = None, limit: float = 60) -> Report:
    report = codec.new_report({"rounds": 3})
    library = nvcomp.Library(functions)
    nvcomp.beside(report, driver or Memory(), library, (SIZE,), known(), limit)
    return report


def test_options_have_the_size_of_the_headers_structs() -> None:
    assert ctypes.sizeof(nvcomp.Options) == 64
    for word in (1, 2, 4, 8):
        for choice in nvcomp.choices(word):
            assert (len(choice.compress), len(choice.decompress)) == (64, 64), choice


def test_options_follow_the_words_of_the_data() -> None:
    two, four = ({(c.name, c.options): c for c in nvcomp.choices(word)} for word in (2, 4))
    assert set(four) - set(two) == {
        ("LZ4", "uint32"), ("LZ4", "uint32, bitshuffle"), ("ANS", "float32"), ("Cascaded", "uint32, asymmetric"),
        ("Cascaded", "uint32, symmetric"), ("Bitcomp", "uint32, default"), ("Bitcomp", "uint32, sparse"),
    }  # fmt: skip
    assert struct.unpack_from("<2i3B", two["ANS", "float16"].compress) == (0, 10, 0, 2, 0)
    assert struct.unpack_from("<4i", two["LZ4", "uint16, bitshuffle"].decompress) == (0, 0, 3, 1)
    assert struct.unpack_from("<2i3QB", four["Cascaded", "uint32, symmetric"].compress) == (5, 2, 1, 0, 7, 3)
    assert struct.unpack_from("<4i2Q", four["Cascaded", "uint32, symmetric"].decompress) == (0, 0, 5, 2, 1, 0)


def test_every_choice_makes_a_row_and_restores_its_bytes() -> None:
    functions = Functions()
    report = played(functions)
    wanted = [("ramp", c) for c in nvcomp.choices(4)] + [("step", c) for c in nvcomp.choices(2)]
    assert [(r["data"], r["codec"], r["modes"]) for r in report.rows] == [
        (data, f"nvCOMP {c.name}", c.options) for data, c in wanted
    ]
    assert all(row["ratio"] > 1 and row["wrong bytes"] == 0 for row in report.rows)
    assert {row["encode GB/s"] for row in report.rows} == {SIZE / 1e6}
    assert min(row["ratio"] for row in report.rows if row["data"] == "step") > 50  # the XOR is the same byte
    assert [(bar.value, bar.holds) for bar in report.bars] == [(0, True)]
    assert functions.plans == {}
    assert functions.seen["nvcompBatchedGdeflateCompressAsync"][:4] == struct.pack("<i", 1)
    assert report.settings["nvCOMP"] == "6.0.0"


def test_wrong_bytes_are_counted_and_no_bar_of_velocpy() -> None:
    functions = Functions()
    functions.change = lambda made: b"?" + made[1:]
    report = played(functions)
    assert {row["wrong bytes"] for row in report.rows if "Bitcomp" not in row["codec"]} == {SIZE // nvcomp.CHUNK}
    assert not report.bars[0].holds
    codec.judge(report)
    assert report.bars[1].value == 0


def test_what_fails_is_told_and_left_out() -> None:
    functions = Functions()
    functions.refused = "Snappy"
    report = played(functions)
    assert "nvCOMP Snappy" not in {row["codec"] for row in report.rows}
    told = [note for note in report.remarks if "Snappy" in note]
    assert len(told) == 2
    assert "nvcompBatchedSnappyCompressAsync returned 11 (not supported)" in told[0]


def test_nothing_goes_on_after_the_device_has_failed() -> None:
    functions, driver = Functions(), Memory()

    def fail(made: bytes) -> bytes:
        driver.broken = True
        return made

    functions.change = fail
    report = played(functions, driver)
    assert report.rows == []
    assert len(report.remarks) == 2
    assert "ended early: cuStreamSynchronize" in report.remarks[1]


def test_limit_and_temporary_memory_leave_out() -> None:
    report = played(Functions(), limit=-1)
    assert (report.rows, report.bars) == ([], [])
    assert "nothing new began; left out: LZ4 (uint32) of ramp" in report.remarks[0]
    functions = Functions()
    functions.temp = nvcomp.MOST + 1
    report = played(functions)
    assert {row["codec"] for row in report.rows} == {"nvCOMP Bitcomp"}
    assert any("asks for 32 GiB" in note for note in report.remarks)


def test_without_nvcomp_or_with_another_version_a_sentence_says_so() -> None:
    report = codec.new_report({})
    nvcomp.beside(report, Memory(), None, (SIZE,), (), 60)
    assert report.remarks == [nvcomp.MISSING]
    assert "pip install nvidia-nvcomp-cu13" in nvcomp.MISSING
    assert "it is 5.2.0, and the benchmark knows version 6" in played(Functions(5200)).remarks[0]


def row(codec_: str, modes: str, ratio: float, encode: float, decode: float, mib: int = 1024) -> dict[str, object]:
    rates = {"encode GB/s": encode, "decode GB/s": decode, "copy GB/s": 1500.0, "wrong bytes": 0}
    located = {"locate and decode GB/s": decode} if codec_ == codec.OURS else {}
    return {"data": "bf16 weights", "MiB": mib, "codec": codec_, "modes": modes, "ratio": ratio} | rates | located


MADE = [
    row("velocpy", "suited", 1.41, 1019.0, 1230.0),
    row("velocpy", "all", 1.41, 715.0, 1229.0),
    row("nvCOMP Zstd", "bytes", 1.43, 11.0, 99.0),
    row("nvCOMP ANS", "float16", 1.4, 444.0, 555.0),
    row("nvCOMP Snappy", "bytes", 1.001, 666.0, 888.0),
    row("nvCOMP Zstd", "bytes", 9.0, 9999.0, 9999.0, mib=256),
]


def test_the_summary_compares_in_the_largest_region() -> None:
    assert nvcomp.summary(MADE) == [
        "bf16 weights, 1024 MiB: velocpy ratio 1.41, 1019 and 1230 GB/s. nvCOMP: most compact Zstd (bytes) "
        "ratio 1.43, 11 and 99 GB/s; fastest to encode ANS (float16) ratio 1.4, 444 and 555 GB/s; fastest to decode "
        "ANS (float16) ratio 1.4, 444 and 555 GB/s."
    ]
    assert nvcomp.summary(MADE[:2]) == []
    cut = [row("velocpy", "suited", 1.4, 900.0, 1100.0, mib=256), *(made | {"MiB": 256} for made in MADE[2:])]
    assert nvcomp.summary([*MADE, *cut])[0].startswith("bf16 weights, 256 MiB: velocpy ratio 1.4, 900 and 1100 GB/s")
    assert nvcomp.summary([MADE[0], MADE[4]])[0].endswith("None makes it smaller by 3%.")


def test_pages_show_results_with_and_without_nvcomp(root: Path, tmp_path: Path) -> None:
    committed = root / "benchmarks" / "results" / "codec.json"
    shutil.copy(committed, tmp_path / "codec-1.json")
    before = page.page(tmp_path)
    facts = json.loads(committed.read_text(encoding="utf-8"))
    report = codec.new_report({"rounds": 9})
    report.never("bytes that differ after a round trip of nvCOMP", 0)
    made = {"rows": MADE, "notes": nvcomp.summary(MADE), "bars": facts["bars"] + report.facts({})["bars"]}
    (tmp_path / "codec-2.json").write_text(json.dumps(facts | made), encoding="utf-8")
    text = page.tables(tmp_path)
    assert "| bf16 weights | 1024 | nvCOMP ANS | float16 | 1.4 | 444 | 555 |" in text
    assert "most compact Zstd" in text
    # No claim of its own: the table of the page does not grow.
    assert page.page(tmp_path).count("\n| ") == before.count("\n| ")
    assert all(claim.holds for claim in claims.judge([report.facts({})]))


def test_the_installed_library_takes_the_options() -> None:
    """Calls of nvCOMP that need no GPU: the structs are passed as its functions expect them."""
    library = nvcomp.load()
    if library is None or library.major != nvcomp.MAJOR:
        pytest.skip("no nvCOMP 6")
    for choice in (c for word in (2, 4) for c in nvcomp.choices(word)):
        if choice.name == "Bitcomp":
            assert nvcomp.Bitcomp.needs(library, SIZE).room > SIZE
            continue
        for way, options in (("Compress", choice.compress), ("Decompress", choice.decompress)):
            found = (ctypes.c_size_t * 3)()
            name = f"nvcompBatched{choice.function}{way}GetRequiredAlignments"
            library.call(name, nvcomp.Options.from_buffer_copy(options), found)
            assert max(found) <= min(16, nvcomp.STRIDE), choice
        assert nvcomp.CHUNK < nvcomp._stride(library, choice) < 3 * nvcomp.CHUNK


def test_words_of_every_size_have_choices() -> None:
    assert {len(nvcomp.choices(Kind(word, 0).word)) for word in (1, 2, 4, 8)} == {10, 11, 12}
