"""Errors of commands speak of commands, not of a library's calls and arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import velocpy
from velocpy import terms
from velocpy.cli import main
from velocpy.errors import REMEDIES, Status

#: Calls, arguments and classes.
PYTHON = re.compile(r"\w+=['\w]|\w\(|velocpy\.(?!store\b|copy\b)\w+|`\w+ in |\wError\b|None\b|True\b|False\b")


def told(*arguments: object) -> str:
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code not in (0, None)
    assert not result.stdout
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with velocpy.open(tmp_path / "store", host="1MiB", disk="64MiB") as store:
        store.history("h").checkpoint(1, u=np.zeros(3))
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    return tmp_path


CASES: dict[str, tuple[Callable[[Path], tuple[object, ...]], str]] = {
    "no directory": (lambda path: ("ls", path / "none"), "velocpy.store"),
    "no store": (lambda path: ("check", path), "velocpy.store"),
    "no history": (lambda path: ("ls", path / "store", "none"), "velocpy ls PATH"),
    "no checkpoint": (lambda path: ("show", path / "store", "h", "none"), "velocpy ls PATH HISTORY"),
    "nothing to export": (lambda path: ("export", path / "store", "h", "9", path / "o.npz"), "velocpy ls PATH"),
    "no such format": (lambda path: ("export", path / "store", "h", "1", path / "o.foo"), "safetensors or npz"),
    "a subset": (lambda path: ("check", path / "store", "--subset", "7/3"), "--subset"),
    "files of others": (lambda path: ("import", path / "arrays.npz", path, "h", "1"), "a directory of its own"),
    "a size": (lambda path: ("import", path / "arrays.npz", "64MiB", "h", "1"), "./64MiB"),
    "a backup in the way": (lambda path: ("backup", path / "store", path), "not an empty directory"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_goes_wrong(path: Path, case: str) -> None:
    arguments, expected = CASES[case]
    text = told(*arguments(path))
    assert expected in text
    assert not PYTHON.search(text.replace(str(path), "")), text


def test_locked_and_damaged(path: Path) -> None:
    with velocpy.open(path / "store", host="1MiB", disk="64MiB"):
        text = told("gc", path / "store")
        assert "show" in text
        assert not PYTHON.search(text.replace(str(path), ""))
    for name in ("velocpy.store", "velocpy.copy"):
        (path / "store" / name).write_bytes(b"x" * 100)
    text = told("ls", path / "store")
    assert "velocpy check PATH --repair" in text
    assert not PYTHON.search(text.replace(str(path), ""))


def test_every_remedy_for_stores_on_disk_has_a_command() -> None:
    """A remedy of the library that speaks of Python is replaced; those of devices and of leases meet no command."""
    elsewhere = {Status.READ_ONLY}
    for status, remedy in REMEDIES.items():
        if status not in elsewhere:
            assert not PYTHON.search(terms.in_terms_of_commands(remedy)), status
