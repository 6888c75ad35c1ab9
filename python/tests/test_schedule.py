"""Schedules where there is no device: what they refuse, and the files of profiles.

What they do is tested in Go, and on a GPU.
"""

import json
import os
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

import velocpy
from velocpy import schedule
from velocpy.errors import InvalidArgument, InvalidType, TierIOError
from velocpy.schedule import Course, Schedule

PROFILE = {
    "observations": [{"size": 1 << 20, "encoded": 1 << 18, "interval": 0}, {"size": 5, "encoded": 5, "interval": 10}],
    "measurements": [{"bytes": 1 << 20, "seconds": 1e-4}],
}


@pytest.fixture
def store():
    with velocpy.open(host="16MiB", disk="16MiB") as opened:
        yield opened


@pytest.mark.parametrize(
    ("made", "error", "told"),
    [
        (lambda: Schedule(repeat="AB"), InvalidArgument, "'B' is no letter of a schedule"),
        (lambda: Schedule(profile="p.json", repeat="C"), InvalidArgument, "leave one of them out"),
        (lambda: Schedule(repeat=3), InvalidType, "a path and letters"),
        (lambda: Schedule(profile=3), InvalidType, "a path and letters"),
    ],
)
def test_schedules_that_are_none(made, error, told):
    with pytest.raises(error, match=told):
        made()


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"schedule": Schedule()}, InvalidArgument, "belong to a method of reduction"),
        ({"reduce": "tree", "schedule": Schedule()}, InvalidArgument, 'for reduce="codec" without compress'),
        ({"reduce": "auto", "schedule": "p.json"}, InvalidArgument, 'for reduce="codec" without compress'),
        ({"reduce": "codec", "compress": "zstd", "schedule": Schedule()}, InvalidArgument, "without compress"),
        ({"reduce": "codec", "schedule": 3}, InvalidType, "give a path or a velocpy.schedule.Schedule"),
        ({"reduce": "codec", "schedule": Schedule(repeat="AAXA")}, InvalidArgument, "it ends with an A"),
        ({"reduce": "codec", "schedule": Schedule(repeat="XC")}, InvalidArgument, "no A precedes it"),
        ({"reduce": "codec", "schedule": Schedule(repeat="C" * 4097)}, InvalidArgument, "4096 are allowed"),
    ],
)
def test_schedules_that_cannot_be(store, options, error, told):
    with pytest.raises(error, match=told):
        store.history("h", **options)
    assert store.history("h").course is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "no profile of a schedule"),
        ("[" * 100_000, "no profile of a schedule"),
        ("\xff", "cannot be read as a profile"),
        ("{}", "observations or measurements are missing"),
        (json.dumps(PROFILE | {"more": 1}), "unknown field"),
        (json.dumps(PROFILE).replace("262144", "-1"), "below zero"),
        (json.dumps(PROFILE).replace("262144", "1e400"), "no profile of a schedule"),
        ("null", "it says null"),
    ],
)
def test_files_that_are_no_profiles(store, tmp_path, text, told):
    file = tmp_path / "p.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidArgument, match=told):
        store.history("h", reduce="codec", schedule=file)
    assert file.read_bytes() == text.encode("latin-1")


def test_a_folder_is_no_profile(store, tmp_path):
    with pytest.raises(InvalidArgument, match="cannot be read as a profile"):
        store.history("h", reduce="codec", schedule=tmp_path)


def test_a_profile_is_read_and_kept(store, tmp_path):
    file = tmp_path / "p.json"
    file.write_text(json.dumps(PROFILE))
    history = store.history("h", reduce="codec", schedule=str(file))
    history.checkpoint(0, u=np.zeros(1 << 18))
    assert history.course == Course(letters="", plans=0, profile={"observations": [], "measurements": []})
    assert not history.restore(0)["u"].any()
    store.close()
    assert json.loads(file.read_text()) == PROFILE


def test_without_a_device_nothing_is_observed(tmp_path):
    with velocpy.open(host="16MiB", disk="16MiB") as store:
        history = store.history("h", reduce="codec", schedule=tmp_path / "p.json")
        history.checkpoint(0, u=np.zeros(1 << 18))
    assert not list(tmp_path.iterdir())


def test_the_schedule_ends_with_another_reduction(store):
    history = store.history("h", reduce="codec", schedule=Schedule())
    assert history.course is not None
    assert store.history("h").course is not None
    store.history("h", reduce="codec")
    assert history.course is None


def test_a_profile_is_written_once(tmp_path: Path):
    """Whoever comes first has written it, whole; nothing else is left."""
    file = tmp_path / "p.json"
    profiles = [
        {"observations": [{"size": i, "encoded": i, "interval": i}] * 500, "measurements": []} for i in range(8)
    ]
    threads = [threading.Thread(target=schedule.write, args=(file, each)) for each in profiles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert json.loads(file.read_text()) in profiles
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_system_without_links(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(1, "no links")))
    schedule.write(tmp_path / "p.json", PROFILE)
    assert json.loads((tmp_path / "p.json").read_text()) == PROFILE
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_is_missing_is_noticed_at_once(store, tmp_path):
    with pytest.raises(InvalidArgument, match="there is no folder"):
        store.history("h", reduce="codec", schedule=tmp_path / "none" / "p.json")


def test_what_was_observed_is_written_once_and_after_an_error(store, tmp_path):
    """As `close` does it, on what a device would have observed."""
    history = store.history("h", reduce="codec", schedule=tmp_path / "p.json")
    assert history.course is not None
    store._observed[tmp_path / "none" / "p.json"] = PROFILE
    store._observed[tmp_path / "p.json"] = PROFILE
    with pytest.raises(TierIOError, match="cannot be written"):
        store.close()
    assert json.loads((tmp_path / "p.json").read_text()) == PROFILE
    store.close()


def test_a_profile_that_cannot_be_written(tmp_path: Path):
    with pytest.raises(TierIOError, match=r"cannot be written: No such file or directory\. No checkpoint is affected"):
        schedule.write(tmp_path / "none" / "p.json", PROFILE)


def test_schedules_are_values():
    assert pickle.loads(pickle.dumps(Schedule(repeat="AX"))) == Schedule(repeat="AX")
    assert hash(Schedule(profile="p")) == hash(Schedule(profile="p"))
