"""What lies on disk can be read by who knows nothing but docs/format.md."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from catalog import read

STORE = bytes([1, 2, 3]) + bytes(13)
VERSION_1 = Path(__file__).parents[2] / "gocore" / "journal" / "testdata" / "version-1"


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
