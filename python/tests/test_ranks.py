"""Several processes on one node: the launchers, the shares of budgets, and work in one folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import mpi_launcher
from launching import run_well
from rank import COUNT

import velocpy
from velocpy import budget, knobs, node
from velocpy.budget import available_memory, disk_budget, host_budget

RANK = Path(__file__).with_name("rank.py")
MIB = 1 << 20
HOST, DISK = "32MiB/node", "512MiB/node"
RANKS = 2


# --- who shares the node
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({}, 1),
        ({"LOCAL_WORLD_SIZE": "8"}, 8),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "4", "OMPI_COMM_WORLD_SIZE": "64"}, 4),
        ({"MPI_LOCALNRANKS": "6"}, 6),
        ({"PMI_LOCAL_SIZE": "12", "PMI_SIZE": "24"}, 12),
        ({"MV2_COMM_WORLD_LOCAL_SIZE": "2"}, 2),
        # torchrun under srun, one task for each node; and a torchrun of one worker under mpirun
        ({"LOCAL_WORLD_SIZE": "8", "SLURM_STEP_TASKS_PER_NODE": "1(x4)", "SLURM_NODEID": "3"}, 8),
        ({"LOCAL_WORLD_SIZE": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, 4),
        ({"SLURM_STEP_TASKS_PER_NODE": "4"}, 4),
        ({"SLURM_STEP_TASKS_PER_NODE": "2(x3),1", "SLURM_NODEID": "2"}, 2),
        ({"SLURM_STEP_TASKS_PER_NODE": "2(x3),1", "SLURM_NODEID": "3"}, 1),
        ({"SLURM_STEP_TASKS_PER_NODE": "1,5,2", "SLURM_NODEID": "1"}, 5),
        ({"SLURM_STEP_TASKS_PER_NODE": "1,5,2"}, 5),
        ({"SLURM_STEP_TASKS_PER_NODE": "1,5,2", "SLURM_NODEID": "9"}, 5),
        # a batch script before its srun
        ({"SLURM_NTASKS_PER_NODE": "8", "SLURM_TASKS_PER_NODE": "8(x2)", "SLURM_NODEID": "0"}, 1),
        ({"LOCAL_WORLD_SIZE": "", "MPI_LOCALNRANKS": "many", "PMI_LOCAL_SIZE": "-3"}, 1),
        ({"LOCAL_WORLD_SIZE": "0", "SLURM_STEP_TASKS_PER_NODE": "two"}, 1),
        ({"LOCAL_WORLD_SIZE": "٣", "SLURM_STEP_TASKS_PER_NODE": "3(x"}, 1),
    ],
)
def test_launchers(environment: dict[str, str], count: int) -> None:
    assert node.processes(environment) == count


def test_the_knob_counts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    assert knobs.node_processes() == 8
    monkeypatch.setenv("VELOCPY_NODE_PROCESSES", "2")
    assert knobs.node_processes() == 2
    for wrong in ("0", "-1", "two", "1.5"):
        with (
            knobs.override(node_processes=wrong),
            pytest.raises(velocpy.errors.InvalidArgument, match="NODE_PROCESSES"),
        ):
            velocpy.open(host="1MiB")


# --- shares
# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["64MiB/node", "64 MiB / node", " 64m/NODE ", "67108864/node"])
def test_budgets_of_a_node(text: str, tmp_path: Path) -> None:
    assert host_budget(text) == disk_budget(text, tmp_path) == 64 * MIB
    assert host_budget(text, 4) == disk_budget(text, tmp_path, 4) == 16 * MIB
    assert host_budget(text, 3) == 64 * MIB // 3
    assert host_budget("64MiB", 4) == host_budget(64 * MIB, 4) == 64 * MIB  # this process's own


def test_auto_is_shared(tmp_path: Path) -> None:
    many = 1000
    host, disk = host_budget("auto", many), disk_budget("auto", tmp_path, many)
    alone = disk_budget("auto", tmp_path)
    assert host is not None
    assert disk is not None
    assert alone is not None
    assert host == max(64 * MIB, min(32 << 30, available_memory() // 4 // many))
    assert disk <= max(64 * MIB, alone // many * 1.1)
    assert disk_budget("auto", None, many) is None


def test_fractions_are_of_what_is_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(budget, "available_memory", lambda: 1000 * MIB)
    monkeypatch.setattr(budget.shutil, "disk_usage", lambda path: SimpleNamespace(free=8000 * MIB))
    for quarter in (0.25, "25%", " 25 %", np.float32(0.25)):
        assert host_budget(quarter) == 250 * MIB
        assert host_budget(quarter, 5) == 50 * MIB
        assert disk_budget(quarter, tmp_path, 4) == disk_budget(quarter, None, 4) == 500 * MIB
    assert host_budget("100%") == host_budget(1.0) == 1000 * MIB
    assert host_budget(1) == 1  # a byte
    with velocpy.open(host="1%", disk="1%") as store:
        tiers = store.stats()["tiers"]
        assert (tiers["host"]["capacity"], tiers["disk"]["capacity"]) == (10 * MIB, 80 * MIB)


@pytest.mark.parametrize("size", ["0%", "101%", "-1%", "nan%", "inf%", "%", "x%", "25%/node", 0.0, -0.5, 1.5])
@pytest.mark.parametrize("tier", ["host", "disk"])
def test_hostile_fractions(size: str | float, tier: str) -> None:
    with pytest.raises(velocpy.errors.InvalidBudget, match=f"^{tier} is"):
        velocpy.open(**{tier: size})


@pytest.mark.parametrize("size", ["3/node", "/node", "auto/node", "1GiB/rank", "1GiB/node/node", "-1/node", "0/node"])
@pytest.mark.parametrize("tier", ["host", "disk"])
def test_hostile_budgets_of_a_node(size: str, tier: str) -> None:
    with knobs.override(node_processes=4), pytest.raises(velocpy.errors.InvalidBudget, match=tier):
        velocpy.open(**{tier: size})


def test_devices_have_budgets_of_processes() -> None:
    with pytest.raises(velocpy.errors.InvalidBudget, match="each process"):
        velocpy.open(device="1GiB/node")


# --- launched
# ----------------------------------------------------------------------------------------------------------


def launch(launcher: list[str], folder: Path, kind: str, *more: str) -> list[dict[str, Any]]:
    """Lets the ranks work in one folder, and checks what holds for all kinds of them."""
    tier, results = folder / "tier", folder / "results"
    results.mkdir()
    command = [*launcher, str(RANK), kind, str(tier), str(results), HOST, DISK, *more]
    run_well(command, 200, folder, OMP_NUM_THREADS="1")
    seen = [json.loads(file.read_text()) for file in sorted(results.glob("rank-*.json"))]
    assert [s["rank"] for s in seen] == list(range(RANKS))
    for s in seen:
        assert s["processes"] == s["size"] == RANKS
        assert s["restores"] == COUNT
        assert s["tiers"]["disk"]["read_bytes"] > 0
    for name, most in (("host", 32 * MIB), ("disk", 512 * MIB)):
        tiers = [s["tiers"][name] for s in seen]
        assert {t["capacity"] for t in tiers} == {most // RANKS}
        assert 0 < sum(t["high_water"] for t in tiers) <= most
    assert list(tier.iterdir()) == []
    return seen


def torchrun() -> list[str]:
    pytest.importorskip("torch")
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}"]


def mpiexec() -> list[str]:
    pytest.importorskip("mpi4py")
    found = mpi_launcher()
    assert found is not None
    return [found, "-n", str(RANKS), sys.executable]


def test_torchrun(tmp_path: Path) -> None:
    launch(torchrun(), tmp_path, "numpy")


@pytest.mark.mpi
def test_mpi(tmp_path: Path) -> None:
    launch(mpiexec(), tmp_path, "numpy", "mpi4py")


def require_devices(seen: list[dict[str, Any]]) -> None:
    """Each rank on its own GPU, as far as there are that many."""
    import torch

    assert [s["device"] for s in seen] == [rank % torch.cuda.device_count() for rank in range(RANKS)]
    for s in seen:
        assert 0 < s["tiers"]["device"]["high_water"] <= s["tiers"]["device"]["capacity"] <= 32 * MIB


@pytest.mark.gpu
def test_torchrun_on_devices(tmp_path: Path) -> None:
    require_devices(launch(torchrun(), tmp_path, "torch"))


@pytest.mark.gpu
@pytest.mark.mpi
def test_mpi_on_devices(tmp_path: Path) -> None:
    require_devices(launch(mpiexec(), tmp_path, "torch", "mpi4py"))
