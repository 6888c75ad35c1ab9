"""A data file of another store in the place of one is refused, also where no checksum would tell."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import second_reader
from click.testing import CliRunner

import velocpy
from velocpy import ondisk
from velocpy.backup import backup
from velocpy.cli import main

SIZES = {"host": "8MiB", "disk": "64MiB"}
FILE = "data-0000000000000001"
KEYS = range(8)


def content(seed: int, key: int) -> bytes:
    return np.random.default_rng(1000 * seed + key).bytes(5000 + key)


def make(path: Path, seed: int) -> None:
    with velocpy.open(path, **SIZES, tuning=velocpy.Tuning(checksum=False)) as store:
        for key in KEYS:
            store.history("h").checkpoint(key, u=content(seed, key)).wait("disk")


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Path, Path]:
    """Two stores with the same keys and other bytes, and no checksums."""
    one, other = tmp_path / "one", tmp_path / "other"
    make(one, 1)
    make(other, 2)
    return one, other


@pytest.mark.parametrize("verify", ["moved", "first", "always", "off"])
@pytest.mark.parametrize("how", ["copied", "renamed"])
def test_bytes_of_another_store_are_never_given_out(stores: tuple[Path, Path], how: str, verify: str) -> None:
    one, other = stores
    if how == "copied":
        shutil.copyfile(other / FILE, one / FILE)
    else:
        (one / FILE).rename(one.parent / "aside")
        (other / FILE).rename(one / FILE)
        (one.parent / "aside").rename(other / FILE)
    for path in (one, other) if how == "renamed" else (one,):
        with velocpy.open(path, mode="r", verify=verify, host="8MiB") as store:
            for key in KEYS:
                with pytest.raises(velocpy.errors.CorruptCheckpoint, match="belongs elsewhere"):
                    store.history("h").restore(key)
        with pytest.raises(ValueError, match="is another's"):
            second_reader.everything(path)


def test_files_that_change_places_within_a_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    size = 200 << 20  # two data files
    with velocpy.open(path, host="512MiB", disk="1GiB", tuning=velocpy.Tuning(checksum=False)) as store:
        for key in range(2):
            store.history("h").checkpoint(key, u=np.full(size, key + 1, np.uint8)).wait("disk")
    second = path / "data-0000000000000002"
    (path / FILE).rename(tmp_path / "aside")
    second.rename(path / FILE)
    (tmp_path / "aside").rename(second)
    with velocpy.open(path, mode="r", host="512MiB") as store, pytest.raises(velocpy.errors.CorruptCheckpoint):
        store.history("h").restore(0)


def test_a_writer_leaves_the_file_alone(stores: tuple[Path, Path]) -> None:
    one, other = stores
    shutil.copyfile(other / FILE, one / "data-0000000000000007")
    before = (one / "data-0000000000000007").read_bytes()
    with pytest.raises(velocpy.errors.DamagedStore, match="move data-0000000000000007 out of this directory"):
        velocpy.open(one, **SIZES)
    assert (one / "data-0000000000000007").read_bytes() == before
    (one / "data-0000000000000007").unlink()
    with velocpy.open(one, **SIZES) as store:
        assert bytes(store.history("h").restore(3)["u"]) == content(1, 3)


def test_a_check_names_the_file(stores: tuple[Path, Path]) -> None:
    one, other = stores
    shutil.copyfile(other / FILE, one / FILE)
    report = ondisk.check(one)
    assert (report.faults[0].kind, report.faults[0].file, report.faults[0].harmless) == ("foreign", FILE, False)
    assert {fault.kind for fault in report.faults[1:]} == {"missing"}
    assert report.damaged == len(KEYS)
    with pytest.raises(velocpy.errors.DamagedStore, match=FILE):
        ondisk.collect(one)


def test_a_damaged_head_is_repaired(stores: tuple[Path, Path]) -> None:
    one, _ = stores
    with (one / FILE).open("r+b") as file:
        file.write(b"damage")
    (fault,) = ondisk.check(one).faults
    assert (fault.kind, fault.file, fault.harmless) == ("head", FILE, True)
    unproved = pytest.raises(velocpy.errors.CorruptCheckpoint, match="velocpy check")
    with velocpy.open(one, mode="r", host="8MiB") as store, unproved:  # nothing says whose bytes these are
        store.history("h").restore(3)
    done = CliRunner().invoke(main, ["check", str(one), "--repair"])
    assert "1 head of a data file was written again" in done.output
    assert ondisk.check(one).sound
    with velocpy.open(one, mode="r", host="8MiB") as store:
        assert [bytes(store.history("h").restore(key)["u"]) for key in KEYS] == [content(1, key) for key in KEYS]


def test_a_damaged_head_costs_nothing_where_checksums_prove_the_bytes(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "store", **SIZES) as store:
        store.history("h").checkpoint(0, u=content(1, 0)).wait("disk")
    with (tmp_path / "store" / FILE).open("r+b") as file:
        file.write(bytes(4096))
    for mode in ("r", "a"):
        with velocpy.open(tmp_path / "store", mode=mode, host="8MiB") as store:
            assert bytes(store.history("h").restore(0)["u"]) == content(1, 0)


def test_a_backup_has_an_identity_of_its_own(stores: tuple[Path, Path], tmp_path: Path) -> None:
    one, _ = stores
    backup(one, tmp_path / "backup")
    assert second_reader.identity(tmp_path / "backup").store != second_reader.identity(one).store
    assert ondisk.check(tmp_path / "backup").sound
    assert second_reader.everything(tmp_path / "backup").keys() == second_reader.everything(one).keys()
    shutil.copyfile(tmp_path / "backup" / FILE, one / FILE)
    with velocpy.open(one, mode="r", host="8MiB") as store, pytest.raises(velocpy.errors.CorruptCheckpoint):
        store.history("h").restore(0)
