"""What lies on disk can be read by who knows nothing but docs/format.md."""

from __future__ import annotations

import os
import shutil
import signal
from collections import OrderedDict
from pathlib import Path
from typing import Any

import first_store
import numpy as np
import pytest
import second_reader
from bits import same
from catalog import Layout, Row, catalog, read, records
from conftest import RunPython

import velocpy
from velocpy import ondisk

STORE = bytes([1, 2, 3]) + bytes(13)
CORE = Path(__file__).parents[2] / "gocore" / "tier" / "disk"
VERSION_1 = CORE / "journal" / "testdata" / "version-1"
TWICE = CORE / "journal" / "testdata" / "version-1-twice"
ROWS_1 = CORE / "catalog" / "testdata" / "version-1"


LOGGED = [b"one", b"two", b"three", b"four" * 9, b"five", b"", b"seven"]


def test_the_first_version_of_the_log():
    records, last, closed = read(VERSION_1, STORE)
    assert records == LOGGED
    assert (last, closed) == (7, True)


@pytest.mark.parametrize("lost", [None, 56, 4096])
def test_a_log_that_says_twice_that_its_snapshot_is_complete(tmp_path, lost):
    shutil.copytree(TWICE, tmp_path, dirs_exist_ok=True)
    first = sorted(tmp_path.iterdir())[0]
    if lost == 56:  # it was not written when the writer died
        raw = first.read_bytes()
        first.write_bytes(raw[:lost] + bytes(48) + raw[lost + 48 :])
    if lost == 4096:  # nor was the other one, nor anything behind it
        os.truncate(first, lost)
        sorted(tmp_path.iterdir())[1].unlink()
    records, last, closed = read(tmp_path, STORE)
    assert records == (LOGGED[:2] if lost == 4096 else LOGGED)
    assert (last, closed) == ((2, False) if lost == 4096 else (7, True))


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


# --- whole stores ---


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    return first_store.unpack(first_store.FIXTURE, tmp_path) / "store"


def agrees(found: Any, meta: Any, wanted: tuple[first_store.Regions, Any]) -> None:
    regions, wanted_meta = wanted
    named = regions if isinstance(regions, dict) else dict(enumerate(regions))
    assert list(found) == list(named)
    for name, array in named.items():
        assert found[name].dtype == array.dtype
        assert same(found[name], array), name
    assert meta == wanted_meta


def test_a_store_of_the_first_version_opens_for_ever(version_1: Path) -> None:
    for mode in ("r", "a", "r"):
        with velocpy.open(version_1, mode=mode, host="16MiB") as store:
            assert {history.name for history in store.histories} == set(first_store.contents())
            for name, held in first_store.contents().items():
                history = store.history(name)
                assert set(history) == set(held)
                for key, wanted in held.items():
                    with history.restore(key) as lease:
                        names = list(lease) if isinstance(wanted[0], dict) else range(len(lease))
                        agrees({each: np.asarray(lease[each]) for each in names}, lease.meta, wanted)
    with velocpy.open(version_1, host="16MiB") as store:  # its rule still holds
        for key in (6, 7, 8):
            store.history("ü").checkpoint(key, u=np.zeros(1)).wait("disk")
        assert set(store.history("ü")) == {"", 0, 7, 8}


def test_stores_of_the_first_version_stay_without_heads(version_1: Path, tmp_path: Path) -> None:
    first_store.write(tmp_path / "now")
    assert second_reader.identity(tmp_path / "now").heads
    with velocpy.open(version_1, host="16MiB") as store:
        store.history("new").checkpoint(0, u=np.arange(1000)).wait("disk")
    assert not second_reader.identity(version_1).heads
    row = second_reader.histories(version_1).rows[b"new"][0]
    assert np.array_equal(second_reader.checkpoint(version_1, row)[0][0].array, np.arange(1000))


def both_read(path: Path, anew: bool = False) -> None:
    """The second reader has what the first one has. A catalog that was written anew has no histories without rows."""
    for name, held in second_reader.everything(path).items():
        for key, (regions, meta) in held.items():
            label = key.decode("utf-8", "surrogatepass") if isinstance(key, bytes) else key
            wanted = first_store.contents()[name][label]
            agrees({region.name: region.array for region in regions}, meta, wanted)
    assert {name: len(held) for name, held in second_reader.everything(path).items()} == {
        name: len(held) for name, held in first_store.contents().items() if held or not anew
    }


def test_the_data_files_say_what_lies_in_them(tmp_path: Path) -> None:
    path = tmp_path / "now"
    first_store.write(path)
    found = second_reader.identity(path)
    assert found.index == 2 * (256 << 20) // 32
    counted = 0
    for history, rows in second_reader.histories(path).rows.items():
        for key, row in rows.items():
            for number, _, _ in row.extents:
                said = second_reader.indexed(path, number)[history][key]
                told = (said.serial, said.extents, said.sums, said.meta, said.layout.regions, said.layout.text)
                assert told == (row.serial, row.extents, row.sums, row.meta, row.layout.regions, row.layout.text)
                assert said.leaves == (row.leaves if number == row.extents[0][0] else None)
                counted += 1
    assert counted > 10
    with (path / "data-0000000000000001").open("r+b") as file:
        file.seek(4096 + 70)
        file.write(b"damage")
    with pytest.raises(ValueError, match="a damaged frame at 0"):
        second_reader.indexed(path, 1)


def test_the_second_reader_reads_whole_stores(version_1: Path, tmp_path: Path) -> None:
    both_read(version_1)
    assert second_reader.histories(version_1).retention == {"ü".encode(): (True, 2, 5, [3, b"text"])}
    first_store.write(tmp_path / "now")
    both_read(tmp_path / "now")
    ondisk.collect(tmp_path / "now")  # which writes the catalog anew
    both_read(tmp_path / "now", anew=True)
    os.truncate(tmp_path / "now" / "velocpy.store", 0)
    both_read(tmp_path / "now", anew=True)
    data = tmp_path / "now" / "data-0000000000000001"
    row = second_reader.histories(tmp_path / "now").rows[b"forward"][-7]
    with data.open("r+b") as file:
        file.seek(second_reader.behind(second_reader.identity(tmp_path / "now"), row.extents[0][1]) + 300_000)
        file.write(b"damage")
    with pytest.raises(ValueError, match="region 0 is not what was captured"):
        second_reader.everything(tmp_path / "now")


def test_the_second_reader_reads_trees(tmp_path: Path) -> None:
    whole = {"m": OrderedDict([("w", np.arange(3)), (-1, (np.eye(2), 0.5, None))]), "l": [[], {}, "text"], "step": 3}
    with velocpy.open(tmp_path / "now", host="16MiB", disk="4MiB") as store:
        store.history("h").checkpoint(0, whole, meta={"t": 1})
    row = second_reader.histories(tmp_path / "now").rows[b"h"][0]
    regions, beside = second_reader.checkpoint(tmp_path / "now", row)
    assert [region.name for region in regions] == ["m.w", "m.-1.0"]
    assert beside == [[0.5, None, "text", 3], {"t": 1}]
    assert repr(second_reader.tree(tmp_path / "now", row)) == repr(whole)


def test_a_log_is_read_while_it_is_taken_up_again(tmp_path: Path, run_python: RunPython) -> None:
    """Who opens a log that was not closed writes its last batch into a new file, and then that file's begin."""
    path = tmp_path / "store"
    for write in ("write", ""):
        done = run_python(
            """
            import os, sys
            path, tests, write = sys.argv[1:]
            sys.path.append(tests)
            import first_store, velocpy

            store = velocpy.open(path, host="16MiB", disk="8MiB")
            if write:
                regions, meta = first_store.contents()["forward"][0]
                store.history("forward").checkpoint(0, regions, meta=meta).wait("disk")
            os._exit(0)
            """,
            *(str(path), str(Path(__file__).parent), write),
        )
        assert done.returncode == 0, done.stderr
    newest = sorted(path.glob("catalog-*"))[-1]
    raw = newest.read_bytes()
    assert len(sorted(path.glob("catalog-*"))) == 2
    for taken in (raw, bytes(56) + raw[56:], b""):
        newest.write_bytes(taken)
        found = second_reader.everything(path)["forward"]
        agrees({each.name: each.array for each in found[0][0]}, found[0][1], first_store.contents()["forward"][0])
        with velocpy.open(path, mode="r", host="16MiB") as store, store.history("forward").restore(0) as lease:
            agrees(lease, lease.meta, first_store.contents()["forward"][0])


@pytest.mark.parametrize("damage", [False, True])
def test_what_was_committed_before_a_kill_is_read(tmp_path: Path, run_python: RunPython, damage: bool) -> None:
    """Commits of little stand in a data file before the catalog has them; the last one counts with its bytes alone."""
    path = tmp_path / "store"
    done = run_python(
        """
        import os, signal, sys
        import numpy as np, velocpy

        store = velocpy.open(sys.argv[1], host="16MiB", disk="8MiB")
        for key in range(20):
            store.history("h").checkpoint(key, u=np.full(1000, key)).wait("disk")
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        str(path),
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (path / "velocpy.store").read_bytes()[40] == 7
    keys = list(range(20))
    if damage:
        row = second_reader.histories(path).rows[b"h"][19]
        (number, offset, _) = row.extents[0]
        assert second_reader.committed(path, number, second_reader.read(path, second_reader.identity(path).store)[1])[0]
        with (path / f"data-{number:016x}").open("r+b") as file:
            file.seek(second_reader.behind(second_reader.identity(path), offset))
            file.write(b"damage")
        keys.remove(19)
    assert list(second_reader.everything(path)["h"]) == keys
    for mode in ("r", "a", "r"):
        with velocpy.open(path, mode=mode, host="16MiB", disk=None if mode == "r" else "8MiB") as store:
            assert list(store.history("h")) == keys
            for key in keys:
                with store.history("h").restore(key) as lease:
                    assert (np.asarray(lease["u"]) == key).all()
    assert list(second_reader.everything(path)["h"]) == keys
