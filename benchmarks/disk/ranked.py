"""Programs whose ranks MPI starts on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

#: Open MPI is careful with the superuser and with few processors; containers and small machines have these.
ALLOWED = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    # It cannot be used on one node, and tells so for each window of memory.
    "OMPI_MCA_osc": "^ucx",
}


def launcher() -> str | None:
    """The path of mpiexec, of this environment or else of the machine; None without it, or without mpi4py."""
    with suppress(ImportError):
        import mpi4py  # noqa: F401 only whether it is there

        return shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    return None


def said_by_ranks(mpiexec: str, ranks: int, script: Path, *arguments: object) -> str:
    """What so many ranks of a program write to standard output."""
    done = subprocess.run(
        [mpiexec, "-n", str(ranks), sys.executable, str(script), *map(str, arguments)],
        env={"OMP_NUM_THREADS": "1", **os.environ, **ALLOWED, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the ranks of {script.name} failed: {done.stderr[-2000:]}")
    return done.stdout
