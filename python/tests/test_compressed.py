"""Checkpoints that a compressor of the host made smaller, and the second reader on their stores."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import first_store
import numpy as np
import pytest
import second_reader
from bits import random_array, same
from catalog import DIFFERENCE, DIFFERENCE_SECTIONS, ENCODED, ENCODED_SECTIONS, RAW, Key, Row
from second_decoder import CHUNKS, FRAMES, PLAIN, SECTION, SNAPPY, chunks, sections, version
from test_differences import STEPS, counters
from test_encoded import samples, stored

import velocpy
from velocpy import ondisk

pytest.importorskip("zstandard")

COMPRESSORS = ["zstd", "s2", "huff0"]
#: Every method of reduction, and with most of them one compressor.
METHODS = [("codec", compress) for compress in COMPRESSORS]
METHODS += [("full", "huff0"), ("basic", "s2"), ("list", "zstd"), ("tree", "huff0"), ("runs", "s2")]
DTYPES = ["<f2", "<f4", "<f8", "<c16", "<i2", "<u4", "<i8", "|u1", "|b1", ">f4", "|V7"]
SMALL = {"host": "32MiB", "disk": "128MiB"}

State = dict[str, np.ndarray[Any, Any]]


def state(step: int) -> State:
    """Arrays of every kind of which some become smaller and some do not, and a few bytes differ from step to step."""
    random = np.random.default_rng(1)
    arrays: State = {f"noise {dtype}": random_array(3_001, dtype, seed=i) for i, dtype in enumerate(DTYPES)}
    for i, dtype in enumerate(("<f2", "<f4", "<f8")):  # NaN payloads, denormals and -0 among few values
        word = np.dtype(dtype).itemsize
        values = random.integers(0, 256, (7, word), dtype=np.uint8)
        values[0], values[1] = [0] * (word - 1) + [128], [1] + [0] * (word - 1)
        values[2, -2:] = [0xF0 | i + 1, 0x7F]
        arrays[f"few {dtype}"] = values[random.integers(0, 7, 50_000 + i)].reshape(-1).view(dtype)
    words = random.integers(0, 256, 40_000, dtype=np.uint8)
    arrays |= {
        "empty": np.zeros((0, 3)),
        "scalar": np.array(2.5 + step),
        "odd": np.resize(words[:4099], SECTION + 1),
        "above a section": random.poisson(3, 40_001),
        "large": np.cumsum(random.integers(-2, 3, 300_000)).astype("<i4"),
        "larger": np.concatenate([random_array(1 << 17, "<f4", seed=5), np.resize(words, 1 << 20).view("<f4")]),
        "skewed": random.integers(0, 256, (5, 700_001)).min(axis=0).astype(np.uint8),
        "fortran": np.asfortranarray(np.resize(words, 60_200).view("<f4").reshape(50, 301)),
        "every second": np.resize(words, 180_001)[::2],
        "backwards": np.resize(words, 100_001)[::-1],
        "ramp": np.arange(70_000, dtype="<i8"),
    }
    arrays["large"][step * 100 : step * 100 + 50] += 1
    return arrays


def forms_of(path: Path, row: Row) -> Counter[int]:
    """How many sections of each form an encoded row has."""
    extents, at = stored(path, row), 0
    found: Counter[int] = Counter()
    for (_, plain), length in zip(row.parts(), row.containers, strict=True):
        container = extents[at : at + length]
        assert version(container) == 2
        found.update(form for form, _ in sections(container, plain))
        at += length
    return found


def rows(path: Path) -> dict[Key, Row]:
    return second_reader.histories(path).rows[b"h"]


def content(path: Path) -> dict[Key, int]:
    return {key: row.content for key, row in rows(path).items()}


def compare(found: Any, wanted: State) -> None:
    assert list(found) == list(wanted)
    assert all(same(found[name], array) for name, array in wanted.items())


@pytest.mark.parametrize(("method", "compress"), METHODS)
def test_everyone_reads_what_a_compressor_made(tmp_path: Path, method: Any, compress: Any) -> None:
    path, states = tmp_path / "store", [state(step) for step in range(3)]
    with velocpy.open(path, **SMALL) as store:
        history = store.history("h", reduce=method, compress=compress)
        for step, arrays in enumerate(states):
            history.checkpoint(step, arrays).wait("disk")
        figures = store.stats()["histories"]["h"]["reduction"]
        assert (figures["compressor"], figures["encoded"], figures["plain"]) == (compress, 3, 0)
    assert set(content(path).values()) == {ENCODED_SECTIONS if method == "codec" else DIFFERENCE_SECTIONS}
    for step, (regions, _) in second_reader.everything(path)["h"].items():
        compare({region.name: region.array for region in regions}, states[int(step)])
    if method == "codec":
        forms = forms_of(path, rows(path)[0])
        assert set(forms) == {PLAIN, CHUNKS, SNAPPY if compress == "s2" else FRAMES}
    report = ondisk.check(path, read_data=True)
    assert (report.checkpoints, report.faults) == (3, ())
    parts = {"larger": np.s_[100_000:-7:3], "odd": np.s_[-1:], "fortran": np.s_[3:40:5, ::-2]}
    with velocpy.open(path, mode="r", host="8MiB") as store:
        history = store.history("h")
        for step in (1, 2, 0):
            into = {name: np.zeros_like(states[step][name][index]) for name, index in parts.items()}
            history.restore(step, into=into, parts=parts)
            assert all(same(into[name], states[step][name][index]) for name, index in parts.items())
        for step in (2, 0, 1):
            with history.restore(step) as lease:
                compare(lease, states[step])


def test_a_compressor_comes_and_goes(tmp_path: Path) -> None:
    """Each checkpoint stays as it was written, whichever compressor its history has later."""
    path = tmp_path / "store"
    arrays = {name: array for name, array in state(0).items() if name in ("few <f4", "empty", "above a section", "odd")}
    wanted: dict[Key, int] = {}
    with velocpy.open(path, **SMALL) as store:
        for key, (method, compress, form) in enumerate([
            ("codec", None, ENCODED), ("codec", "zstd", ENCODED_SECTIONS), ("tree", "s2", DIFFERENCE_SECTIONS),
            ("tree", None, DIFFERENCE), ("codec", "huff0", ENCODED_SECTIONS), ("raw", None, RAW),
            ("tree", "s2", DIFFERENCE_SECTIONS), ("codec", None, ENCODED),
        ]):  # fmt: skip
            history = store.history("h", reduce=method, compress=compress)  # type: ignore[arg-type]
            history.checkpoint(key, arrays).wait("disk")
            wanted[key] = form
    assert content(path) == wanted
    for regions, _ in second_reader.everything(path)["h"].values():
        compare({region.name: region.array for region in regions}, arrays)
    with velocpy.open(path, mode="r", host="8MiB") as store:
        for key in reversed(range(len(wanted))):
            with store.history("h").restore(key) as lease:
                compare(lease, arrays)


def test_a_compressor_makes_no_checkpoint_larger(tmp_path: Path) -> None:
    used = {}
    arrays = state(0)
    for compress in (None, *COMPRESSORS):
        with velocpy.open(tmp_path / f"{compress}", **SMALL) as store:
            store.history("h", reduce="codec", compress=compress).checkpoint(0, arrays).wait("disk")
            used[compress] = store.stats()["histories"]["h"]["reduction"]["encoded_to"]
    assert used["zstd"] <= used["huff0"] < used[None]
    assert used["s2"] < used[None]


def test_the_second_reader_knows_what_stands_where(tmp_path: Path) -> None:
    """Containers of version 2 are refused in a row with content 1, which has none."""
    path = tmp_path / "store"
    with velocpy.open(path, **SMALL) as store:
        store.history("h", reduce="codec", compress="zstd").checkpoint(0, state(0)).wait("disk")
        store.history("h", reduce="codec").checkpoint(1, state(0)).wait("disk")
    compressed, encoded = rows(path)[0], rows(path)[1]
    second_reader.checkpoint(path, compressed)
    compressed.content = ENCODED
    with pytest.raises(ValueError, match="version that may stand here"):
        second_reader.checkpoint(path, compressed)
    encoded.content = ENCODED_SECTIONS  # it may have containers of either version
    second_reader.checkpoint(path, encoded)
    first = stored(path, encoded)[: encoded.containers[0]]
    assert (version(first), bool(list(chunks(first, encoded.parts()[0][1])))) == (1, True)


@pytest.mark.parametrize("compress", COMPRESSORS)
@pytest.mark.parametrize("method", ["codec", "tree"])
def test_a_flipped_bit_is_noticed_or_does_not_matter(tmp_path: Path, method: Any, compress: Any) -> None:
    """One bit of every seventh byte of a small store: a check tells of it where the second reader refuses a checkpoint.

    Of differences the second reader reads all parts of each source, and the core those that the checkpoint needs.
    """
    path = tmp_path / "store"
    random = np.random.default_rng(3)
    u = np.zeros(66_000, np.uint8)
    u[:900] = random.integers(0, 3, 900)
    u[-400:] = np.resize(random.integers(0, 256, 57), 400)
    with velocpy.open(path, **SMALL) as store:
        history = store.history("h", reduce=method, compress=compress)
        history.checkpoint(0, u=u).wait("disk")
        history.checkpoint(1, u=u[::-1]).wait("disk")
    wanted = {0: u.tobytes(), 1: u[::-1].tobytes()}
    all_rows = rows(path)
    refused = ignored = 0
    for row in (all_rows[0], all_rows[1]):
        (number, offset, _) = row.extents[0]
        length = sum(row.containers) if row.own is None else row.own.containers + row.own.metadata
        assert length < 3000
        file = path / f"data-{number:016x}"
        begin = second_reader.behind(second_reader.identity(path), offset)
        for at in range(0, length, 7):
            with file.open("r+b") as opened:
                opened.seek(begin + at)
                byte = opened.read(1)[0]
                opened.seek(begin + at)
                opened.write(bytes([byte ^ 1 << at % 8]))
            bad = set()
            for key, each in all_rows.items():
                try:
                    (region,), _ = second_reader.checkpoint(path, each)
                    assert region.array.tobytes() == wanted[int(key)]
                except ValueError:
                    bad.add(key)
            found = {fault.key for fault in ondisk.check(path, read_data=True).faults}
            assert found == bad if method == "codec" else found <= bad and bool(found) == bool(bad), at
            refused, ignored = refused + bool(bad), ignored + (not bad)
            with file.open("r+b") as opened:
                opened.seek(begin + at)
                opened.write(bytes([byte]))
    assert refused > 30
    assert ignored
    assert not ondisk.check(path, read_data=True).faults


#: Written by a test of package durable; it can be read for ever. Its "store" has the contents of the first store and a
#: history of counters by each compressor, and its "killed" is left by a writer that was killed.
FIXTURE = Path(__file__).parent / "data" / "store-compressed-1.tar.gz"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return first_store.unpack(FIXTURE, tmp_path)


def test_the_second_reader_reads_the_first_compressed_store(kept: Path) -> None:
    path = kept / "store"
    contents = Counter(row.content for held in second_reader.histories(path).rows.values() for row in held.values())
    assert contents[ENCODED] >= 5
    assert contents[ENCODED_SECTIONS] >= 15
    assert contents[DIFFERENCE_SECTIONS] == len(COMPRESSORS) * STEPS
    found = second_reader.everything(path)
    states = counters()
    for compress in COMPRESSORS:
        counted = found.pop(f"counters, {compress}")
        assert [counted[key][0][0].array.tobytes() for key in range(STEPS)] == states
    first_store.compare(found)


def test_every_form_of_a_section_is_kept(kept: Path) -> None:
    path = kept / "killed"
    found, forms = second_reader.everything(path)["modes"], Counter[int]()
    for key, row in second_reader.histories(path).rows[b"modes"].items():
        assert row.content == ENCODED_SECTIONS
        assert found[key][0][0].array.tobytes() == samples()[int(key)]
        forms += forms_of(path, row)
    assert len(found) == len(samples())
    for held in second_reader.histories(kept / "store").rows.values():
        forms += sum(
            (forms_of(kept / "store", row) for row in held.values() if row.content == ENCODED_SECTIONS), Counter()
        )
    assert set(forms) == {PLAIN, FRAMES, SNAPPY, CHUNKS}
