"""``python -m benchmarks.adjoint.limited``: one storage under a memory limit, in a process of its own.

The limit is a control group's: it counts the pages of files that the process reads and writes, too, as the limit of a
job on a shared node does.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchmarks import ROOT

GROUPS = Path("/sys/fs/cgroup/memory")  # version 1
MARGIN = 192 << 20  # beside the checkpoints: temporaries of a storage, buffers, the interpreter's own growth


def possible() -> bool:
    """Whether this process may make control groups that limit memory."""
    return os.access(GROUPS, os.W_OK) and (GROUPS / "memory.limit_in_bytes").exists()


def run(name: str, folder: Path, edge: int, steps: int, slots: int, rounds: int, budget: int) -> dict[str, Any]:
    """Gradients with the storage ``name`` and ``budget`` bytes of memory for what it keeps."""
    with _group(budget + MARGIN) as group:
        sizes = [str(n) for n in (edge, steps, slots, rounds, budget)]
        command = [sys.executable, "-m", "benchmarks.adjoint.limited", str(group), name, str(folder), *sizes]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{name} under a limit of {budget + MARGIN} bytes: {done.stderr[-2000:] or done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@contextlib.contextmanager
def _group(limit: int) -> Iterator[Path]:
    group = GROUPS / f"velocpy-bench-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit))
        yield group
    finally:
        with contextlib.suppress(OSError):
            (group / "memory.force_empty").write_text("0")
        group.rmdir()


@click.command()
@click.argument("group", type=click.Path(path_type=Path))
@click.argument("name")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("sizes", type=int, nargs=5)
def main(group: Path, name: str, folder: Path, sizes: tuple[int, int, int, int, int]) -> None:
    """Join GROUP and print as JSON how long the storage NAME takes."""
    from . import adjoints, storages

    edge, steps, slots, rounds, budget = sizes
    adjoint = adjoints.Toy(edge)
    adjoint.begin()  # its fields exist before the limit holds: they are not what is limited
    (group / "cgroup.procs").write_text(str(os.getpid()))
    with storages.opened(name, folder, budget, adjoint.entries * 4 * slots) as store:
        runs = [storages.once(name, adjoint, folder, steps, slots, store) for _ in range(rounds + 1)][1:]
    digests = {digest for _, _, digest in runs}
    assert len(digests) == 1, "gradients differ"
    seconds = [s for s, _, _ in runs]
    click.echo(json.dumps({"seconds": seconds, "calls": runs[0][1], "gradient": digests.pop()}))


if __name__ == "__main__":
    main()
