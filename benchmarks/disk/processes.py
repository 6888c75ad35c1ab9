"""``python -m benchmarks.disk.processes``: a process that writes a durable store until it dies, one that opens it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import click

import velocpy
from benchmarks import ROOT
from velocpy.bench.stamped import Stamped
from velocpy.choices import Mode

HISTORY = "stream"
IN_FLIGHT = 4


def command(name: str, *arguments: object) -> list[str]:
    """The command line of one of them, to be run in the root of the checkout."""
    return [sys.executable, "-m", "benchmarks.disk.processes", name, *map(str, arguments)]


def opened(path: Path, size: int, expected: int, *, compare: int, mode: str = "a") -> dict[str, Any]:
    """What a new process sees of a store: the seconds it takes, what is missing, what differs of those compared."""
    look = command("look", path, size, expected, compare, mode)
    done = subprocess.run(look, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"opening {path.name}: {done.stderr[-2000:] or done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@click.group()
def main() -> None:
    """Do one thing to a store."""


@main.command()
@click.argument("path")
@click.argument("size", type=int)
@click.argument("expected", type=int)
@click.argument("compare", type=int)
@click.argument("mode", type=click.Choice(["a", "r"]))
def look(path: str, size: int, expected: int, compare: int, mode: Mode) -> None:
    """Open the store at PATH, miss what is not there of EXPECTED checkpoints, and compare COMPARE at random."""
    stamped = Stamped(size)
    velocpy.build_info()  # loads the core, which is not what is measured
    began = time.perf_counter()
    store = velocpy.open(path, host=max(64 << 20, 8 * size), mode=mode)
    opening = time.perf_counter() - began
    with store:
        history = store.history(HISTORY)
        began = time.perf_counter()
        keys = list(history)
        listing = time.perf_counter() - began
        restoring, different = [], 0
        for key in random.Random(size).sample(keys, min(compare, len(keys))):
            began = time.perf_counter()
            with history.restore(key) as state:
                restoring.append(time.perf_counter() - began)
                different += not stamped.same(int(key), state["u"])
    click.echo(
        json.dumps(
            {
                "open s": opening,
                "list s": listing,
                "first restore s": restoring[0] if restoring else 0.0,
                "peak MiB": _peak() / 2**20,
                "checkpoints": len(keys),
                "missing": len(set(range(expected)).difference(keys)),
                "different": different,
            }
        )
    )


@main.command()
@click.argument("path")
@click.argument("size", type=int)
@click.argument("total", type=int)
def write(path: str, size: int, total: int) -> None:
    """Write checkpoints of SIZE bytes to a store at PATH up to TOTAL, and print each key when it is acknowledged.

    Then it waits to be killed.
    """
    stamped, waiting = Stamped(size), deque[velocpy.Ticket]()
    with velocpy.open(
        path, host=8 * size + (64 << 20), disk=total * 3 // 2 + (1 << 30), tuning=velocpy.Tuning(flush="eager")
    ) as store:
        history = store.history(HISTORY)
        for key in range(total // size):
            waiting.append(history.checkpoint(key, u=stamped.of(key)))
            if len(waiting) >= IN_FLIGHT:
                _acknowledge(waiting.popleft())
        for ticket in waiting:
            _acknowledge(ticket)
        while True:
            time.sleep(1)


def _acknowledge(ticket: velocpy.Ticket) -> None:
    ticket.wait("disk")
    click.echo(ticket.key)


def _peak() -> int:
    """Bytes of memory that this process has had at most."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


if __name__ == "__main__":
    main()
