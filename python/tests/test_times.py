"""When checkpoints were captured: in the store, on disk, in listings, and behind a backup and a rebuild."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import first_store
import numpy as np
import pytest
from click.testing import CliRunner, Result
from second_reader import histories

import velocpy
from velocpy import ondisk
from velocpy.backup import backup
from velocpy.cli import main
from velocpy.times import for_json, from_json


def written(path: Path, *keys: int | str) -> dict[int | str, datetime]:
    """The times that the store says while it is open, for checkpoints that were captured one after the other."""
    times = {}
    with velocpy.open(path, host="16MiB", disk="64MiB") as store:
        run = store.history("run")
        for key in keys:
            before = datetime.now(timezone.utc) - timedelta(microseconds=1)  # times are cut to whole ones
            run.checkpoint(key, u=np.arange(10)).wait("disk")
            captured = run.captured(key)
            assert captured is not None
            assert before <= captured <= datetime.now(timezone.utc)
            times[key] = captured
            time.sleep(0.001)  # the next one is captured a microsecond later at least
    return times


def listed(path: Path) -> dict[int | str, datetime | None]:
    return {entry.key: entry.captured for entry in ondisk.checkpoints(path, "run")}


def velocpy_(*arguments: str) -> Result:
    found = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found


def test_a_store_without_a_directory_says_when():
    with velocpy.open(host="16MiB") as store:
        run = store.history("run")
        run.checkpoint(0, u=np.zeros(1))
        first = run.captured(0)
        time.sleep(0.001)
        run.checkpoint(0, u=np.ones(1))
        assert first < run.captured(0)  # of the version that is there now
        with pytest.raises(velocpy.errors.CheckpointNotFound):
            run.captured(1)


def test_times_stay_when_the_store_is_closed(tmp_path):
    times = written(tmp_path, 3, "text", -1)
    assert listed(tmp_path) == times
    with velocpy.open(tmp_path, host="16MiB", disk="64MiB") as store:
        assert {key: store.history("run").captured(key) for key in times} == times
    assert ondisk.describe(tmp_path, "run", "text").captured == times["text"]
    assert ondisk.contents(tmp_path).histories[0].latest == times[-1]


def test_the_second_reader_finds_the_same(tmp_path):
    times = written(tmp_path, 1, 2)
    rows = histories(tmp_path).rows[b"run"]
    since = {key: row.time for key, row in rows.items()}
    for key, nanoseconds in since.items():
        assert (times[key] - datetime(1970, 1, 1, tzinfo=timezone.utc)) == timedelta(microseconds=nanoseconds // 1000)


def test_a_backup_and_a_rebuild_keep_them(tmp_path):
    times = written(tmp_path / "store", *range(5))
    backup(tmp_path / "store", tmp_path / "copy")
    assert listed(tmp_path / "copy") == times
    for part in (tmp_path / "store").glob("catalog-*"):
        part.unlink()
    ondisk.repair(tmp_path / "store", rebuild=True)
    assert listed(tmp_path / "store") == times


def test_listings_show_and_sort_them(tmp_path):
    times = written(tmp_path, 2, 1, 3)
    shown = {key: at.strftime("%Y-%m-%d %H:%M:%S") for key, at in times.items()}
    heading, *lines = velocpy_("ls", str(tmp_path), "run").output.splitlines()
    assert heading.split()[-3:] == ["captured", "(UTC)", "key"]
    assert [line.split("  ")[-2:] for line in lines] == [[shown[key], str(key)] for key in times]
    assert heading.index("captured") == lines[0].index(shown[2])
    ordered = velocpy_("ls", str(tmp_path), "run", "--sort", "captured", "--reverse", "--json").output.splitlines()
    found = [json.loads(line) for line in ordered]
    assert [(facts["key"], facts["captured"]) for facts in found] == [(key, for_json(times[key])) for key in (3, 1, 2)]
    heading, line = velocpy_("ls", str(tmp_path)).output.splitlines()
    assert heading.split()[-3:] == ["latest", "(UTC)", "history"]
    assert line.endswith(f'  {shown[3]}  "run"')
    (facts,) = velocpy_("ls", str(tmp_path), "--json", "--sort", "latest").output.splitlines()
    assert from_json(json.loads(facts)["latest"]) == times[3]
    assert f"captured  {shown[1]} UTC\n" in velocpy_("show", str(tmp_path), "run", "1").output
    assert json.loads(velocpy_("show", str(tmp_path), "run", "1", "--json").output)["captured"] == for_json(times[1])


def test_stores_that_kept_no_times_say_none(tmp_path):
    path = first_store.unpack(first_store.FIXTURE, tmp_path) / "store"
    assert {entry.captured for entry in ondisk.checkpoints(path, "forward")} == {None}
    assert ondisk.describe(path, "forward", 3).captured is None
    assert "captured  -\n" in velocpy_("show", str(path), "forward", "3").output
    assert json.loads(velocpy_("show", str(path), "forward", "3", "--json").output)["captured"] is None
    with velocpy.open(path, host="16MiB", disk="64MiB") as store:
        forward = store.history("forward")
        assert forward.captured(3) is None
        forward.checkpoint(3, u=np.zeros(3)).wait("disk")
        assert forward.captured(3) is not None
    lines = velocpy_("ls", str(path), "forward", "--sort", "captured").output.splitlines()
    assert [line.split()[-1] for line in lines[1:]][-1] == "3"  # those without a time come first
    assert lines[1].split()[-2] == "-"
