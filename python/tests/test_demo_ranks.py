"""The demo by several ranks: each computes a part of the earth, and the image is put together from an archive."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import mpi_launcher
from launching import OPEN_MPI, launch_ranks

import velocpy
from velocpy.archive import part
from velocpy.demo.backend import numpy_backend
from velocpy.demo.earth import layered_earth
from velocpy.demo.ranks import all_columns, columns_of, survey_of
from velocpy.demo.survey import survey_over
from velocpy.demo.wave import Wave

RANK = Path(__file__).with_name("demo_rank.py")
SMALL = ("--size", "24x40x24", "--steps", "40", "--shots", "2", "--every", "3")


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_each_cell_has_one_rank(size: int) -> None:
    survey = survey_over(layered_earth((24, 40, 24)), 3, 10, sponge=16)
    walled = [columns_of(40, 16, rank, size) for rank in range(size)]
    assert [column for columns in walled for column in columns] == list(range(72))
    assert [column for columns in all_columns(survey, size) for column in columns] == list(range(40))
    parts = [survey_of(survey, columns) for columns in walled]
    assert np.array_equal(np.concatenate([each.earth.speed for each in parts], axis=1), survey.earth.speed)
    for shot, source in enumerate(survey.sources):
        places = [each.sources[shot][1] for each in parts]
        (rank,) = [rank for rank, place in enumerate(places) if isinstance(place, int)]
        assert places[rank] + all_columns(survey, size)[rank].start == source[1]


def test_a_part_of_a_wave_has_the_cells_of_the_whole() -> None:
    survey = survey_over(layered_earth((24, 40, 24)), 1, 10, sponge=16)
    whole = Wave(numpy_backend(), survey.earth.speed, survey.earth.spacing, survey.dt, 8, 16)
    rng = np.random.default_rng(1)
    whole.current[...] = rng.random(whole.current.shape, np.float32)
    whole.previous[...] = rng.random(whole.previous.shape, np.float32)
    columns = range(20, 45)
    cut = Wave(numpy_backend(), survey.earth.speed, survey.earth.spacing, survey.dt, 8, 16, columns)
    for mine, its in ((cut.current, whole.current), (cut.previous, whole.previous)):
        mine[...] = its[:, columns.start : columns.stop + 8]  # the rims of both begin four cells before
    whole.step()
    cut.step()
    assert cut.earth.tobytes() == whole.earth[:, 4:29].tobytes()


def require_proven(folder: Path, count: int) -> None:
    """The archive has the image of each rank after each shot."""
    with velocpy.open(folder / "archive", mode="r") as archive:
        assert sorted(archive.history("image")) == [0, 1]
        assert archive.history("image").restore(1)["ranks"].tolist() == list(range(count))
        assert all(archive.history(part("image", rank)).restore(1)["cross"].any() for rank in range(count))


@pytest.mark.mpi
@pytest.mark.parametrize(("what", "code", "words"), [("whole", 0, "to the last bit"), ("deaf", 1, "DIFFERS")])
def test_ranks_of_mpi(what: str, code: int, words: str, tmp_path: Path) -> None:
    """Also that the proof can fail: ranks that do not hear of each other compute another image."""
    pytest.importorskip("mpi4py")
    launcher = mpi_launcher()
    assert launcher is not None
    done = subprocess.run(
        [launcher, "-n", "3", sys.executable, "-W", "ignore", str(RANK), what, *SMALL, "--out", str(tmp_path)],
        env={**os.environ, **OPEN_MPI, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout
    if what == "whole":
        require_proven(tmp_path, 3)


def test_ranks_of_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    launch_ranks(RANK, 2, "whole", "--by", "torch", *SMALL, "--out", tmp_path)
    require_proven(tmp_path, 2)
