"""Several processes as ranks of one run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from conftest import mpi_launcher

#: Open MPI is careful with the superuser and with few processors; containers and small machines have these.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def launch_ranks(script: Path, count: int, *arguments: object, killed: int | None = None) -> None:
    """Runs a script as so many ranks of torch.distributed, and waits until all have ended well, but one that kills
    itself.
    """
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port()), "WORLD_SIZE": str(count)}
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(script), *map(str, arguments)],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]
    said = [each.communicate(timeout=120)[0] for each in running]
    ended = [-signal.SIGKILL if rank == killed else 0 for rank in range(count)]
    assert [each.returncode for each in running] == ended, "\n".join(said)


def launch_by_mpi(script: Path, count: int, *arguments: object, **environment: str) -> None:
    """Runs a script as so many ranks of MPI, and waits until all have ended well."""
    launcher = mpi_launcher()
    assert launcher is not None
    command = [launcher, "-n", str(count), sys.executable, "-W", "ignore", str(script), *map(str, arguments)]
    run_well(command, 120, **environment)


def run_well(command: list[str], timeout: float, cwd: Path | None = None, **environment: str) -> None:
    """Runs the launcher of ranks, whose environment suits Open MPI, and waits until it has ended well."""
    done = subprocess.run(
        command,
        env={**os.environ, **OPEN_MPI, **environment},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])
