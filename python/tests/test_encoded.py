"""The first encoded checkpoints can be read with nothing but docs/format.md and docs/reduction-format.md."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import first_store
import numpy as np
import pytest
import second_reader
from catalog import ENCODED, RAW, Catalog, Fields, Row
from second_decoder import chunks

#: Written by the test of package durable of the same name; it can be read for ever. Its "store" has the contents of the
#: first store, three of four checkpoints encoded. Its "killed" is left by a writer that was killed.
FIXTURE = Path(__file__).parent / "data" / "store-encoded-1.tar.gz"


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    return first_store.unpack(FIXTURE, tmp_path)


def samples() -> list[bytes]:
    """The regions of the checkpoints in "killed"."""
    i = np.arange(20_001, dtype=np.uint64)
    mixed = i * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(32)) * np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)

    def words(size: int, values: Any, length: int = 5001) -> bytes:
        return np.asarray(values, np.uint64).astype(f"<u{size}").tobytes()[:length]

    return [
        words(4, 0 * i + 0x01020304),
        words(4, i * i, 20_001),
        words(4, 0x3F800000 + (mixed & 0x81FFFFFF)),
        words(8, (0x3FF0 << 48) + (mixed & (1 << 63) + (1 << 54) - 1)),
        words(2, 0x3C00 + (mixed & 0x8FFF)),
        words(2, 0x3F80 + (mixed & 0x81FF)),
        words(1, i * i >> np.uint64(3)),
        words(8, 3 * i + (i // np.uint64(100) << np.uint64(40))),
        words(2, mixed),
        bytes(600_001),
    ]


def stored(path: Path, row: Row) -> bytes:
    """The bytes of its extents."""
    found = second_reader.identity(path)
    parts = []
    for number, offset, size in row.extents:
        with (path / f"data-{number:016x}").open("rb") as file:
            file.seek(second_reader.behind(found, offset))
            parts.append(file.read(size))
    return b"".join(parts)


def test_the_second_reader_reads_encoded_checkpoints(stores: Path) -> None:
    path = stores / "store"
    forms = {RAW: 0, ENCODED: 0}
    for rows in second_reader.histories(path).rows.values():
        for row in rows.values():
            forms[row.content] += 1
    assert forms[RAW] >= 5
    assert forms[ENCODED] >= 15
    found = second_reader.everything(path)
    first_store.compare(found)
    assert second_reader.histories(path).retention == {"ü".encode(): (True, 2, 5, [3, b"text"])}


def test_the_data_files_say_which_checkpoints_are_encoded(stores: Path) -> None:
    path = stores / "store"
    counted = 0
    for history, rows in second_reader.histories(path).rows.items():
        for key, row in rows.items():
            for number, _, _ in row.extents:
                said = second_reader.indexed(path, number)[history][key]
                assert (said.content, said.part, said.containers) == (row.content, row.part, row.containers)
                counted += row.content == ENCODED
    assert counted >= 15


def test_every_mode_is_read(stores: Path) -> None:
    path = stores / "killed"
    found = second_reader.everything(path)["modes"]
    modes = set()
    for key, sample in enumerate(samples()):
        row = second_reader.histories(path).rows[b"modes"][key]
        assert row.content == ENCODED
        assert found[key][0][0].array.tobytes() == sample
        extents, at = stored(path, row), 0
        for (_, plain), length in zip(row.parts(), row.containers, strict=True):
            modes |= {mode for mode, _ in chunks(extents[at : at + length], plain)}
            at += length
    assert len(found) == len(samples())
    assert modes == {0, 1, 2, 3}


def damage(path: Path, row: Row, at: int) -> None:
    (number, offset, _) = row.extents[0]
    with (path / f"data-{number:016x}").open("r+b") as file:
        file.seek(second_reader.behind(second_reader.identity(path), offset) + at)
        file.write(b"damage")


def test_a_damaged_container_is_found(stores: Path) -> None:
    path = stores / "killed"
    rows = second_reader.histories(path).rows[b"modes"]
    damage(path, rows[3], 3000)
    with pytest.raises(ValueError, match="chunk 0 is not what was encoded"):
        second_reader.everything(path)
    damage(path, rows[4], 70)
    with pytest.raises(ValueError, match="damaged tables"):
        second_reader.checkpoint(path, rows[4])


def test_the_last_commit_counts_with_its_bytes_alone(stores: Path) -> None:
    path = stores / "killed"
    rows = second_reader.histories(path).rows[b"modes"]
    damage(path, rows[9], 70)
    assert list(second_reader.everything(path)["modes"]) == list(range(9))


def row_of(part: int, lengths: list[int], bytes_of_extents: int) -> Row:
    """A row that a record puts, of a region with two leaves and of an empty one."""
    record = Catalog()
    record.history(Fields(struct.pack("<I", 1) + b"h"))
    record.layout(Fields(struct.pack("<IIQII4Q", 1, 0, 300_000, 2, 0, 0, 300_000, 300_000, 0)))
    body = struct.pack("<IIQBBBBqIIQQQ", 1, 1, 1, ENCODED, 0, 0, 0, 5, 64, 1, 1, 0, bytes_of_extents)
    body += struct.pack(f"<QI{len(lengths)}II", part, len(lengths), *lengths, 0)
    record.put(Fields(body))
    return record.rows[b"h"][5]


def test_what_an_encoded_row_may_say() -> None:
    row = row_of(262_144, [4096, 16], 8192)
    assert (row.containers, row.parts()) == ((4096, 16), [(0, 262_144), (262_144, 37_856)])
    assert row_of(1 << 30, [4096], 4096).parts() == [(0, 300_000)]
    for part, lengths, bytes_of_extents in (
        (0, [16, 16], 4096),
        (262_145, [16, 16], 4096),
        ((1 << 30) + 262_144, [16], 4096),
        (262_144, [16], 4096),
        (262_144, [16] * 3, 4096),
        (524_288, [16, 16], 4096),
        (262_144, [0, 16], 4096),
        (262_144, [16, 24], 4096),
        (262_144, [262_400, 16], 266_240),
        (262_144, [16, 37_984], 40_960),
        (262_144, [4096, 16], 4096),
        (262_144, [4096, 16], 303_104),
    ):
        with pytest.raises(ValueError, match=r"container|extents|argument"):
            row_of(part, lengths, bytes_of_extents)
