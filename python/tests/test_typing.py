"""What a type checker tells users of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import velocpy
from velocpy import figures

USE = """
from typing import Any, Literal

import numpy as np
from typing_extensions import assert_type

import velocpy

Array = np.ndarray[Any, np.dtype[np.float64]]


def use(store: velocpy.Store, u: Array) -> None:
    forward = store.history("forward")
    assert_type(forward.checkpoint(0, u=u, tier="host"), velocpy.Ticket).wait("disk")
    assert_type(forward.restore(0), velocpy.Lease)
    assert_type(forward.restore(0, into=u), Array)
    assert_type(forward.restore(0, into={"u": u}, last=True), dict[str, Array])
    for key, lease in forward.restore_iter(last=True):
        assert_type(key, int | str)
        assert_type(lease, velocpy.Lease)
    for _, filled in forward.restore_iter(into=[u]):
        assert_type(filled, list[Array])
    it = iter(forward.restore_iter())
    assert_type(next(it), tuple[int | str, velocpy.Lease])
    assert_type(next(forward.restore_iter(into=u)), tuple[int | str, Array])
    tree: dict[str, Any] = {"model": {"w": u}, "betas": (0.9, 0.99)}
    assert_type(forward.checkpoint(1, tree), velocpy.Ticket)
    assert_type(forward.checkpoint(1, model={"w": u}, step=3), velocpy.Ticket)
    assert_type(forward.checkpoint(1, {0: {"m": u}}), velocpy.Ticket)
    assert_type(forward.restore(1, into=tree), dict[str, Any])
    assert_type(forward.restore(1).tree, Any)
    assert_type(forward.tiers(1), tuple[Literal["device", "host", "disk", "archive"], ...])
    velocpy.open("run", mode="r", verify="off", device={0: "1GiB", 1: 0.5})
    velocpy.open("run", tuning=velocpy.Tuning(flush="lazy", policy="lru", pinning="off"))
    velocpy.open(flush="lazy", policy="lru", pinning="off", workers=2)
    by_number: dict[int, str] = {0: "25%"}
    by_name: dict[str, float] = {"cuda:1": 0.5}
    velocpy.open(device=by_number)
    velocpy.open(device=by_name)
    velocpy.open(device={0: 1 << 30, "cuda:1": "1GiB"}).resize(device=0)
    velocpy.open(device="4GiB").resize(device=0.25)


async def tasks(store: velocpy.Store, u: Array) -> None:
    forward = store.history("forward")
    assert_type(await forward.checkpoint(0, u=u), velocpy.Ticket)
    assert_type(await forward.checkpoint(0, u=u).until("disk", timeout=1), velocpy.Ticket)
    async for key, lease in forward.restore_iter(last=True):
        assert_type(key, int | str)
        assert_type(lease, velocpy.Lease)
    async for _, filled in forward.restore_iter(into={"u": u}):
        assert_type(filled, dict[str, Array])
"""


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mypy remembers of the package, which takes it half a minute to read."""
    return tmp_path_factory.mktemp("mypy")


def checked(cache: Path, tmp_path: Path, text: str) -> str:
    pytest.importorskip("mypy")
    program = tmp_path / "use.py"
    program.write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), "--no-error-summary", str(program)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path).stdout


def test_what_calls_return_is_known(cache: Path, tmp_path: Path) -> None:
    assert checked(cache, tmp_path, USE) == ""


SIMULATE = "velocpy.simulate([1], [0], interval=1, tiers=[(1, 1, 1)], copy_rate=1, "
MISSPELT = (
    'velocpy.open("run", mode="w")',
    'velocpy.open().wait("ram")',
    'velocpy.open(device=["1GiB"])',
    'velocpy.open(device={1.5: "1GiB"})',
    'velocpy.open(device={"cuda:0": None})',
    'velocpy.open().resize(device=b"1GiB")',
    'velocpy.Tuning(policy="lfu")',
    'velocpy.Tuning("lazy")',
    "velocpy.Tuning().workers = 2",
    'velocpy.open(policy="lfu")',
    "velocpy.open(tunning=velocpy.Tuning())",
    "velocpy.CheckpointNotfound",
    SIMULATE + 'hints="some")',
    SIMULATE + 'policy="lfu")',
    SIMULATE + 'flush="auto")',
)


def test_misspelt_choices_are_found(cache: Path, tmp_path: Path) -> None:
    right = f"{USE}{SIMULATE}hints='one', policy='fifo', flush='eager')\n"
    found = checked(cache, tmp_path, right + "\n".join(MISSPELT))
    first = len(right.splitlines()) + 1
    lines = [int(line.split(":")[1]) for line in found.splitlines() if "error" in line]
    assert lines == list(range(first, first + len(MISSPELT))), found


def test_figures_are_those_that_stores_give(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "store", host="1MiB", disk="1MiB") as store:
        store.history("h").checkpoint(0, u=np.zeros(3))
        store.history("reduced", reduce="codec").checkpoint(0, u=np.zeros(3))
        stats, costs = store.stats(), store.costs()
    agrees(stats, figures.Stats)
    for cost in costs.values():
        assert cost.keys() == get_type_hints(figures.Cost).keys()


def agrees(value: Any, kind: Any) -> None:
    """Compares names and types, at all depths; of a kind or None, the kind where there is a value."""
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (one for one in get_args(kind) if one is not type(None))
        if value is None:
            return
    if get_origin(kind) is dict:
        assert value
        for each in value.values():
            agrees(each, get_args(kind)[1])
    elif isinstance(value, dict):
        hints = get_type_hints(kind)
        assert value.keys() == hints.keys()
        for name, each in value.items():
            agrees(each, hints[name])
    else:
        assert type(value) is kind or (kind is float and type(value) is int), (value, kind)
