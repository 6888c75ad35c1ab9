"""What lies on disk can be read by who knows nothing but docs/format.md."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from catalog import Layout, Row, catalog, read, records

STORE = bytes([1, 2, 3]) + bytes(13)
CORE = Path(__file__).parents[2] / "gocore"
VERSION_1 = CORE / "journal" / "testdata" / "version-1"
ROWS_1 = CORE / "catalog" / "testdata" / "version-1"


def test_the_first_version_of_the_log():
    records, last, closed = read(VERSION_1, STORE)
    assert records == [b"one", b"two", b"three", b"four" * 9, b"five", b"", b"seven"]
    assert (last, closed) == (7, True)


def test_another_stores_log_is_none():
    assert read(VERSION_1, bytes(16)) == ([], 0, False)


def test_a_torn_end_is_none_and_what_is_missing_before_is_told(tmp_path):
    shutil.copytree(VERSION_1, tmp_path, dirs_exist_ok=True)
    first, second = sorted(tmp_path.iterdir())
    second.write_bytes(second.read_bytes()[:-41])  # the last frame, and a byte of the last batch
    records, last, closed = read(tmp_path, STORE)
    assert (records[-1], last, closed) == (b"", 6, False)
    first.unlink()
    with pytest.raises(ValueError, match="batches 1 to 4 are missing"):
        read(tmp_path, STORE)


def test_the_first_version_of_the_catalog():
    found = catalog(records(ROWS_1.read_bytes()))
    first = Layout(10000, [(0, 1000), (1000, 0), (4096, 5904)], b"velocity pressure")
    leafy = Layout(786432, [(0, 524289), (524289, 1)], b"")
    assert found.rows == {
        b"": {},
        b"old": {},
        b"wave": {
            -7: Row(4, Layout(4096, [(0, 4096)], b"u"), 0, 1 << 20, [(4, 4096, 4096)], None, ()),
            b"best \xff": Row(2, leafy, 0, 4096, [(2, 1 << 40, 786432)], (5, 6), (7, 8, 9)),
            b"codec": Row(6, first, 200),
        },
    }
    assert found.retention == {b"wave": (True, 3, 100, [5, b"best"])}
    assert found.serial == 6


def test_the_first_put_of_the_catalog():
    found = catalog([next(records(ROWS_1.read_bytes()))])
    layout = Layout(10000, [(0, 1000), (1000, 0), (4096, 5904)], b"velocity pressure")
    extents = [(1, 8192, 8192), (3, 0, 4096)]
    assert found.rows == {b"wave": {-7: Row(1, layout, 0, 64, extents, (1, 2, 2**64 - 1), None, b'{"t": 0.5}')}}


def test_what_the_catalog_of_a_later_version_says_is_refused_or_skipped():
    assert catalog([bytes([128, 0, 0, 0, 1, 0, 0, 0, 7])]) == catalog([])
    with pytest.raises(ValueError, match="of a later version"):
        catalog([bytes([127, 0, 0, 0, 1, 0, 0, 0, 7])])
    with pytest.raises(ValueError, match="too short"):
        catalog(record[:-1] for record in records(ROWS_1.read_bytes()))
