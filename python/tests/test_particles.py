"""A miniature of HACC-IO: particles of four ranks in an archive, from which two ranks go on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from launching import launch_by_mpi

import velocpy
from benchmarks.data.particles import LOADED, PARTICLE, State, differing, joined, loads, move, particles, same
from velocpy import ondisk
from velocpy.archive import part

ROOT = Path(__file__).resolve().parents[2]
RANK = Path(__file__).with_name("particle_rank.py")


def test_a_particle_has_the_variables_of_hacc() -> None:
    state = particles(2, 1000)
    assert [(name, array.dtype.name) for name, array in state.items()] == [
        *((name, "float32") for name in ("xx", "yy", "zz", "vx", "vy", "vz", "phi")),
        ("pid", "int64"),
        ("mask", "uint16"),
    ]
    assert sum(array.nbytes for array in state.values()) == 1000 * PARTICLE == 38_000
    assert not np.intersect1d(state["pid"], particles(1, 1000)["pid"]).size


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
def test_uneven_loads_have_the_same_sum(ranks: int) -> None:
    assert loads(ranks, uneven=False) == [1.0] * ranks
    each = loads(ranks, uneven=True)
    assert sum(each) == pytest.approx(ranks)
    if ranks >= 4:
        assert max(each) == each[LOADED] > 2.1 * sorted(each)[-2]
        assert len(set(each)) > 2


def test_any_cut_of_the_particles_moves_to_the_same_bits() -> None:
    whole, cuts = particles(0, 1001), [particles(0, 1001) for _ in range(3)]
    parts = [
        {name: array[at * 333 : (at + 1) * 333 + 2 * (at == 2)].copy() for name, array in cut.items()}
        for at, cut in enumerate(cuts)
    ]
    for state in (whole, *parts):
        for _ in range(5):
            move(state)
    assert same(joined(parts), whole)
    assert whole["phi"].any()
    whole["mask"][7] ^= 1
    assert differing(joined(parts), whole) == 1
    assert differing({}, whole) == 1001 * PARTICLE


def under_mpi(count: int, *arguments: object) -> None:
    launch_by_mpi(RANK, count, *arguments, PYTHONPATH=os.pathsep.join([str(ROOT), *sys.path]))


@pytest.mark.mpi
def test_two_ranks_go_on_from_four(tmp_path: Path) -> None:
    """Every byte of the archive, before and after, is that of particles that one process has moved."""
    pytest.importorskip("mpi4py")
    from particle_rank import FIRST, first

    under_mpi(FIRST, tmp_path, "one", 0, 3)
    under_mpi(FIRST // 2, tmp_path, "two", 3, 5)
    expected = [first(rank) for rank in range(FIRST)]
    with velocpy.open(tmp_path / "archive", host="16MiB", mode="r") as archive:
        assert sorted(archive.history("particles")) == [1, 2, 3, 4, 5]
        for step in range(1, 6):
            for state in expected:
                move(state)
            ranks = archive.history("particles").restore(step)["ranks"]
            assert ranks.tolist() == list(range(FIRST if step <= 3 else FIRST // 2))
            found: list[State] = [dict(archive.history(part("particles", rank)).restore(step)) for rank in ranks]
            assert same(joined(found), joined(expected))
    assert len(list((tmp_path / "archive").glob("data-*"))) == 2
    assert ondisk.check(tmp_path / "archive", read_data=True).sound
