"""How many processes of a job share this node, and which one this is, as the launcher tells each of them.

Budgets may be given for a whole node (``host="64GiB/node"``), and "auto" always means the node's: every process takes
an equal share. Processes do not talk to each other: all divide by the same number, so that together they stay within
the budget.

===========================================  ======================================
``LOCAL_WORLD_SIZE``                         torchrun
``OMPI_COMM_WORLD_LOCAL_SIZE``               Open MPI, jsrun
``MPI_LOCALNRANKS``                          MPICH, Intel MPI
``PMI_LOCAL_SIZE``                           Cray MPICH
``MV2_COMM_WORLD_LOCAL_SIZE``                MVAPICH
``SLURM_STEP_TASKS_PER_NODE``                srun, with ``SLURM_NODEID``
===========================================  ======================================

Where several are set, because one launcher runs under another, the largest counts. Slurm's ``SLURM_NTASKS_PER_NODE``
does not: it also stands in the environment of a batch script, which is one process. A launcher that
sets none of these sets ``VELOCPY_NODE_PROCESSES``, which then counts alone: see `velocpy.knobs`.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path

LAUNCHERS = (
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "PMI_LOCAL_SIZE",
    "MV2_COMM_WORLD_LOCAL_SIZE",
)

#: Where launchers tell a process its rank among all processes of the job.
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")

_SLURM_RUN = re.compile(r"(\d+)(?:\(x(\d+)\))?", re.ASCII)


def processes(environment: Mapping[str, str]) -> int:
    """Processes on this node; 1 where no variable says so.

    Examples
    --------
    >>> from velocpy.node import processes
    >>> processes({"LOCAL_WORLD_SIZE": "8", "SLURM_STEP_TASKS_PER_NODE": "1(x16)"}), processes({})
    (8, 1)
    >>> processes({"SLURM_STEP_TASKS_PER_NODE": "4(x2),3", "SLURM_NODEID": "2"})
    3
    """
    told = [_count(environment.get(name, "")) for name in LAUNCHERS]
    return max(1, *told, _slurm(environment))


def name() -> str:
    """What this node is told from others by: the name of its host, and of its boot where the system has one.

    Containers on one machine may have the same.

    Examples
    --------
    >>> from velocpy import node
    >>> node.name() == node.name() != ""
    True
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}".strip()


def rank(environment: Mapping[str, str]) -> int:
    """The number of this process in its job, as the first launcher tells it that does; 0 where none does.

    Examples
    --------
    >>> from velocpy.node import rank
    >>> rank({"RANK": "3", "SLURM_PROCID": "0"}), rank({"SLURM_PROCID": "12"}), rank({})
    (3, 12, 0)
    """
    told = (environment.get(name, "") for name in RANKS)
    return next((_count(text) for text in told if text.isascii() and text.isdecimal()), 0)


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() else 0


def _slurm(environment: Mapping[str, str]) -> int:
    """The tasks of this node, out of a list of those of all nodes of the step: "2(x3),1" are four nodes."""
    runs = [_SLURM_RUN.fullmatch(run) for run in environment.get("SLURM_STEP_TASKS_PER_NODE", "").split(",")]
    node = environment.get("SLURM_NODEID", "")
    following = _count(node)
    most = 0
    for run in runs:
        if run is None:
            return 0
        tasks, nodes = int(run[1]), int(run[2] or 1)
        if node and 0 <= following < nodes:
            return tasks
        following -= nodes
        most = max(most, tasks)
    return most
