"""What the benchmarks of the durable store measure with: bytes that know their place, syncs, and what others do."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main
from benchmarks.disk import durable, opening, processes, savers, synced
from benchmarks.report import plots
from velocpy.bench import rawdisk
from velocpy.bench.report import Report
from velocpy.bench.stamped import BLOCK, Stamped

SIZE = 5 * BLOCK


@pytest.fixture
def calls(monkeypatch):
    """The system calls that make something durable, in their order."""
    seen = []

    def watch(name):
        real = getattr(os, name)

        def call(fd):
            seen.append((name, Path(f"/proc/self/fd/{fd}").readlink().name))
            real(fd)

        monkeypatch.setattr(os, name, call)

    watch("fsync")
    watch("fdatasync")
    rename = Path.rename
    monkeypatch.setattr(Path, "rename", lambda self, to: seen.append(("rename", to.name)) or rename(self, to))
    return seen


@pytest.mark.parametrize("at", [0, BLOCK - 1, 2 * BLOCK + 7, SIZE - 1])
def test_a_stamped_checkpoint_differs_in_any_byte(at):
    stamped = Stamped(SIZE)
    copy = stamped.of(3).copy()
    assert stamped.same(3, copy)
    copy[at] ^= 1
    assert not stamped.same(3, copy)


def test_a_block_of_another_checkpoint_or_place_is_found():
    stamped = Stamped(SIZE)
    three, four = stamped.of(3).copy(), stamped.of(4).copy()
    mixed = three.copy()
    mixed[2 * BLOCK : 3 * BLOCK] = four[2 * BLOCK : 3 * BLOCK]
    assert not stamped.same(3, mixed)
    mixed[2 * BLOCK : 3 * BLOCK] = three[BLOCK : 2 * BLOCK]
    assert not stamped.same(3, mixed)


def test_stamps_need_whole_blocks():
    with pytest.raises(ValueError, match="4097"):
        Stamped(4097)


@pytest.mark.parametrize(
    ("total", "piece", "syncs"), [(SIZE, BLOCK, 5), (SIZE, 2 * BLOCK, 3), (3 * rawdisk.BLOCK, 2 * rawdisk.BLOCK, 2)]
)
def test_the_raw_ceiling_writes_everything_and_syncs_each_piece(tmp_path, calls, monkeypatch, total, piece, syncs):
    written = []
    real = os.pwrite

    def pwrite(fd, buffer, at):
        written.append((at, len(buffer), len(calls)))
        return real(fd, buffer, at)

    monkeypatch.setattr(os, "pwrite", pwrite)
    assert synced.raw(tmp_path, total, piece) > 0
    assert [name for name, _ in calls] == ["fdatasync"] * syncs
    ends = np.cumsum([length for _, length, _ in sorted(written)])
    assert [at for at, _, _ in sorted(written)] == [0, *ends[:-1]]
    assert ends[-1] == total
    assert all(at // piece == synced_before for at, _, synced_before in written)


@pytest.mark.skipif(not synced.has_fio(), reason="fio is not installed")
@pytest.mark.parametrize("group", [1, 4])
def test_fio_writes_as_much(tmp_path, group):
    assert synced.fio(tmp_path, 16 * BLOCK, BLOCK, group) > 0
    assert not list(tmp_path.iterdir())


def test_fio_that_fails_says_why(tmp_path, monkeypatch):
    tool = tmp_path / "fio"
    tool.write_text("#!/bin/sh\necho 'no such engine' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="no such engine"):
        synced.fio(tmp_path, BLOCK, BLOCK, 1)


@pytest.mark.parametrize("name", ["torch.save", "DCP", "safetensors", "HDF5"])
def test_what_others_keep_is_durable_and_comes_back(tmp_path, calls, name):
    there, absent = savers.available()
    if name not in there:
        assert any(name in sentence for sentence in absent)
        pytest.skip(f"{name} is not installed")
    save, load = there[name]
    stamped = Stamped(SIZE)
    save(tmp_path / "7", stamped.of(7))
    if name == "DCP":
        assert any(call == "fsync" for call, _ in calls)
    else:
        assert calls == [("fsync", "7.new"), ("rename", "7"), ("fsync", tmp_path.name)]
        assert [path.name for path in tmp_path.iterdir()] == ["7"]
    assert stamped.same(7, load(tmp_path / "7"))
    assert not stamped.same(8, load(tmp_path / "7"))


def test_a_saver_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(savers._MAKERS, "nobody", ("velocpy_has_no_such_module", lambda: pytest.fail("it was made")))
    there, absent = savers.available()
    assert "nobody" not in there
    assert "Left out: nobody, velocpy_has_no_such_module is not installed." in absent


def test_what_does_not_come_back_right_is_counted(tmp_path):
    stream = durable.Stream(BLOCK, 4 * BLOCK)

    def save(path, array):
        array.tofile(path)

    def load(path):
        return np.fromfile(path.with_name("2") if path.name == "3" else path, np.uint8)

    seconds, differences = durable._saved(tmp_path, stream, save, load, Stamped(BLOCK))
    assert seconds > 0
    assert differences == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text", ["64KiB", "64KiB:", "100:1MiB", "64KiB:4KiB", "x:1MiB", "64KiB:1MiB,", "0:0", "-4096:4096"]
)
def test_streams_that_are_none_are_refused(text):
    refused = CliRunner().invoke(main, ["durable", "--streams", text])
    assert refused.exit_code == 2
    assert "--streams" in refused.stderr


def test_streams_by_name():
    large, small = durable.Stream.of("128MiB:4GiB"), durable.Stream.of("64KiB:128MiB")
    assert (large.count, large.window) == (32, 4)
    assert (small.count, small.window) == (2048, 64)
    assert str(small) == "2048 × 64 KiB"


def test_a_writer_dies_when_half_is_acknowledged(tmp_path):
    part, total = 64 << 10, 4 << 20
    acknowledged = opening._kill_halfway(tmp_path / "killed", part, total)
    assert total // part // 2 <= acknowledged <= total // part


def test_a_writer_that_ends_by_itself_is_no_kill(tmp_path):
    (tmp_path / "killed").write_text("not a directory")
    with pytest.raises(RuntimeError, match="ended by itself"):
        opening._kill_halfway(tmp_path / "killed", 64 << 10, 4 << 20)


def test_what_is_missing_or_differs_misses_a_bar():
    report = Report("x", {})
    opening._nothing_lost(report, "of some", [{"missing": 0, "different": 0}, {"missing": 2, "different": 1}])
    assert [(bar.value, bar.holds) for bar in report.bars] == [(2, False), (1, False)]


def test_a_store_that_cannot_be_opened_is_an_error(tmp_path):
    (tmp_path / "store").write_text("not a directory")
    with pytest.raises(RuntimeError, match="opening store"):
        processes.opened(tmp_path / "store", BLOCK, 1, compare=1)


def test_durable_streams_have_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        {"who": who, "GB/s": rate, "about": [{"stream": stream}]}
        for stream in ("4 × 1 MiB", "8 × 4 KiB")
        for who, rate in (("velocpy", 2.0), ("fio", 2.1))
    ]
    (tmp_path / "durable.json").write_text(json.dumps({"benchmark": "durable", "rows": rows}))
    assert [picture.name for picture in plots.draw(tmp_path)] == ["durable.svg"]
    drawn = (tmp_path / "durable.svg").read_text()
    assert "<svg" in drawn
