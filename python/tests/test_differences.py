"""The first de-duplicated checkpoints can be read with nothing but the documents of the formats."""

from __future__ import annotations

import struct
from pathlib import Path

import first_store
import numpy as np
import pytest
import second_reader
from catalog import DIFFERENCE, Catalog, Fields, Row

pytest.importorskip("zstandard")

#: Written by the test of package durable of the same name; it can be read for ever. Its "store" has the contents of the
#: first store, de-duplicated, and a history of counters.
FIXTURE = Path(__file__).parent / "data" / "store-difference-1.tar.gz"
COUNTERS, STEPS = 8011, 9


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return first_store.unpack(FIXTURE, tmp_path) / "store"


def mixed(i: int) -> int:
    mask = (1 << 64) - 1
    i = i * 0x9E3779B97F4A7C15 & mask
    i = (i ^ i >> 32) * 0xD6E8FEB86659FD93 & mask
    return i ^ i >> 32


def counters() -> list[bytes]:
    """The states of the counters, one a checkpoint."""
    words = np.array([mixed(i) & 63 for i in range(COUNTERS)], "<u4")
    states = []
    for step in range(STEPS):
        states.append(words.tobytes())
        for i in range(100):
            words[mixed((step + 1 << 20) + i) % COUNTERS] += 1
    return states


def test_the_second_reader_reads_differences(store: Path) -> None:
    found = second_reader.everything(store)
    counted = found.pop("counters")
    first_store.compare(found)
    states = counters()
    assert sorted(counted) == list(range(1, STEPS))
    for key, (regions, _) in counted.items():
        assert [region.array.tobytes() for region in regions] == [states[key]]


def test_objects_outlive_their_checkpoints(store: Path) -> None:
    rows = second_reader.histories(store).rows
    assert {row.content for held in rows.values() for row in held.values()} == {DIFFERENCE}
    counted = rows[b"counters"]
    own = {row.own.number for row in counted.values() if row.own}
    needed = {source.number for row in counted.values() for source in row.sources}
    assert len(needed - own) == 1  # that of the checkpoint that was dropped
    assert len(needed & own) >= 3


def test_the_data_files_say_which_checkpoints_are_differences(store: Path) -> None:
    counted = 0
    for history, rows in second_reader.histories(store).rows.items():
        for key, row in rows.items():
            for number, _, _ in row.extents:
                said = second_reader.indexed(store, number)[history][key]
                assert (said.lineage, said.own, said.sources) == (row.lineage, row.own, row.sources)
                counted += 1
    assert counted >= 30


def test_damage_to_a_source_is_found(store: Path) -> None:
    rows = second_reader.histories(store).rows[b"counters"]
    (first, *_) = rows[STEPS - 1].sources
    (number, offset, _) = first.extents[0]
    with (store / f"data-{number:016x}").open("r+b") as file:
        file.seek(second_reader.behind(second_reader.identity(store), offset) + first.containers + 57)
        file.write(b"damage")
    with pytest.raises(ValueError, match="a damaged header or table"):
        second_reader.checkpoint(store, rows[STEPS - 1])


def row_of(number: int, sizes: tuple[int, int], sources: list[tuple[int, int, int, int]], extent: int = 4096) -> Row:
    """A row that a record puts; of each source number, sizes and bytes of its extent."""
    record = Catalog()
    record.history(Fields(struct.pack("<I", 1) + b"h"))
    record.layout(Fields(struct.pack("<IIQII2Q", 1, 0, 100, 1, 0, 0, 100)))
    body = struct.pack("<IIQBBBBqIIQQQ", 1, 1, 1, DIFFERENCE, 0, 0, 0, 5, 64, 1, 1, 0, extent)
    body += struct.pack("<QIQQI", 77, number, *sizes, len(sources))
    for each, containers, metadata, room in sources:
        body += struct.pack("<IQQIQQQ", each, containers, metadata, 1, 1, 4096, room)
    record.put(Fields(body + bytes(4)))
    return record.rows[b"h"][5]


def test_what_a_difference_may_say() -> None:
    row = row_of(3, (0, 100), [(1, 4096, 100, 8192), (2, 16, 4080, 4096)])
    assert (row.lineage, [source.number for source in row.sources]) == (77, [1, 2])
    for number, sizes, sources, extent in (
        (3, (0, 0), [], 4096),
        (3, (24, 100), [], 4096),
        (3, (1 << 61, 100), [], 4096),
        (3, (0, (1 << 31) + 1), [], (1 << 31) + 4096),
        (3, (0, 100), [], 8192),
        (3, (0, 100), [(1, 4096, 100, 4096)], 4096),
        (3, (0, 100), [(3, 0, 100, 4096)], 4096),
        (3, (0, 100), [(2, 0, 100, 4096), (1, 0, 100, 4096)], 4096),
        (3, (0, 100), [(1, 0, 100, 4096), (1, 0, 100, 4096)], 4096),
        (3, (0, 100), [(1, 8, 100, 4096)], 4096),
        (2000, (0, 100), [(each, 0, 100, 4096) for each in range(1025)], 4096),
    ):
        with pytest.raises(ValueError, match=r"object|source|extents"):
            row_of(number, sizes, sources, extent)
