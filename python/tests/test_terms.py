"""Errors of commands speak of commands, not of a library's calls and arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import velocpy
from velocpy.cli import diagnosis, main, terms
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
    "nothing to compare": (lambda path: ("diff", path / "store", path), "velocpy.store"),
    "no history to compare": (
        lambda path: ("diff", path / "store", path / "store", "--history", "x"),
        "velocpy ls PATH",
    ),
    "no checkpoint to compare": (
        lambda path: ("diff", path / "store", path / "store", "--history", "h", "--key", "9"),
        "velocpy ls PATH HISTORY",
    ),
    "nothing to export": (lambda path: ("export", path / "store", "h", "9", path / "o.npz"), "velocpy ls PATH"),
    "no such format": (lambda path: ("export", path / "store", "h", "1", path / "o.foo"), "safetensors or npz"),
    "a subset": (lambda path: ("check", path / "store", "--subset", "7/3"), "--subset"),
    "files of others": (lambda path: ("import", path / "arrays.npz", path, "h", "1"), "a directory of its own"),
    "a size": (lambda path: ("import", path / "arrays.npz", "64MiB", "h", "1"), "./64MiB"),
    "nothing to watch": (lambda path: ("top", path / "store"), "VELOCPY_WATCH=1"),
    "no process to watch": (lambda path: ("top", "1"), "VELOCPY_WATCH=1"),
    "a backup in the way": (lambda path: ("backup", path / "store", path), "not an empty directory"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_goes_wrong(path: Path, case: str) -> None:
    arguments, expected = CASES[case]
    text = told(*arguments(path))
    assert expected in text
    assert not PYTHON.search(plain(text).replace(str(path), "")), text


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


#: Commands whose error names its place and its reason once each.
ONCE: dict[str, tuple[Callable[[Path], tuple[object, ...]], str]] = {
    "no directory": (
        lambda path: ("ls", path / "none"),
        'there is no store in "{path}/none": no such file or directory.',
    ),
    "no store": (lambda path: ("ls", path), 'there is no store in "{path}": velocpy.store: no such file or directory.'),
    "no directory at all": (lambda path: ("ls", path / "arrays.npz"), '"{path}/arrays.npz": not a directory.'),
    "no history": (lambda path: ("ls", path / "store", "none"), 'velocpy: there is no history "none".'),
    "no checkpoint": (
        lambda path: ("show", path / "store", "h", "5"),
        'velocpy: there is no checkpoint 5 of history "h".',
    ),
}


@pytest.mark.parametrize("case", ONCE)
def test_each_thing_is_said_once(path: Path, case: str) -> None:
    arguments, expected = ONCE[case]
    assert expected.format(path=path) in told(*arguments(path))


def test_a_full_tier_is_said_once() -> None:
    with velocpy.open(host="1MiB") as store, pytest.raises(velocpy.errors.TierFull) as full:
        store.history("h").checkpoint(0, u=np.zeros(1 << 18))
    assert str(full.value).startswith("no room: the checkpoint has 2.0 MiB (2097152 bytes), the largest budget is")


def test_damage_and_locks_are_said_once(path: Path) -> None:
    with velocpy.open(path / "store", host="1MiB", disk="64MiB"):
        assert f'velocpy: the store in "{path}/store" is open for writing, here or in another process. One' in told(
            "gc", path / "store"
        )
    for name in ("velocpy.store", "velocpy.copy"):
        (path / "store" / name).write_bytes(b"x" * 100)
    text = told("ls", path / "store")
    assert f'the store in "{path}/store" is damaged: velocpy.store: not what' in text


def plain(text: str) -> str:
    """A text without the settings of the environment that it advises."""
    return re.sub(r"VELOCPY_\w+=\w+", "", text)


@pytest.mark.parametrize("place", ["empty", "store", "arrays.npz", "none"])
def test_the_doctor(path: Path, place: str) -> None:
    (path / "empty").mkdir()
    text = CliRunner().invoke(main, ["doctor", str(path / place), "--no-rates"]).stdout
    assert text
    assert not PYTHON.search(plain(text).replace(str(path), "")), text
    if place == "empty":
        assert "`velocpy import`" in text


def test_the_doctor_of_tiers_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**budgets: str) -> None:
        raise velocpy.errors.TierFull(f"no room. {REMEDIES[Status.TIER_FULL]}")

    monkeypatch.setattr(diagnosis, "open_store", fail)
    text = CliRunner().invoke(main, ["doctor", "--no-rates"]).stdout
    assert "velocpy gc PATH" in text
    assert REMEDIES[Status.TIER_FULL] not in text


WRONG = {
    "a size": ("bench", "disk", "--total", "x"),
    "no size at all": ("bench", "disk", "--total", "-1"),
    "a benchmark that moved": ("bench", "durable"),
    "no benchmark": ("bench", "nothing"),
    "an option that moved": ("bench", "disk", "--streams", "3"),
    "an earth": ("demo", "--size", "x"),
    "a backend": ("demo", "--backend", "cupy"),
    "pointers": ("demo", "--pointers"),
    "no device": ("demo", "--device", "tpu"),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_demo_and_the_benchmarks(case: str) -> None:
    text = told(*WRONG[case])
    assert not PYTHON.search(text), text


def texts(file: Path) -> Iterator[str]:
    """What a module may print: its texts, without docstrings, programs and patterns."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.FunctionDef, ast.ClassDef)
    docs = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and is_text(node.body[0])}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            program_or_pattern = node.value.startswith("\nimport ") or "[0-9]" in node.value
            yield from () if program_or_pattern else (node.value,)


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_every_text_of_the_doctor_and_the_demo(root: Path) -> None:
    package = root / "python" / "velocpy"
    for file in (package / "cli" / "diagnosis.py", *(package / "trial").glob("*.py"), *(package / "demo").glob("*.py")):
        for text in texts(file):
            assert not PYTHON.search(plain(text)), f"{file.name}: {text}"
    for file in (root / "gocore" / "doctor").glob("*.go"):
        if file.name.endswith("_test.go"):
            continue
        for text in re.findall(r'(?m)^[^/\n]*"((?:[^"\\\n]|\\.)+)"', file.read_text(encoding="utf-8")):
            assert not PYTHON.search(plain(text)), f"{file.name}: {text}"


def test_every_remedy_for_stores_on_disk_has_a_command() -> None:
    """A remedy of the library that speaks of Python is replaced; those of devices and of leases meet no command."""
    elsewhere = {Status.READ_ONLY}
    for status, remedy in REMEDIES.items():
        if status not in elsewhere:
            assert not PYTHON.search(terms.in_terms_of_commands(remedy)), status
