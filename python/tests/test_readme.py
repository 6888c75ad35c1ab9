"""The README: its example runs, and what it points at exists."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import velocpy


def test_example_runs(root: Path, run_python: Callable[..., CompletedProcess[str]]) -> None:
    examples = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), flags=re.DOTALL)
    assert len(examples) == 3
    done = run_python("".join(examples) + "\nassert store.closed and u[0] != 0")
    assert done.returncode == 0, done.stderr
    *lines, reopened, names, values = done.stdout.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(reversed(range(24)))
    assert len({line.split()[1] for line in lines}) > 20, "states that differ"
    assert reopened == lines[0].split()[1], "the last state, from the store on disk"
    assert names == "['model.layer.weight', 'optim.state.0.exp_avg']"
    assert values == "[{'lr': 0.1, 'betas': (0.9, 0.999)}] 3"


def test_links_lead_somewhere(root: Path) -> None:
    links = re.findall(r"\]\(((?!http)[^)#]+)\)", (root / "README.md").read_text())
    assert links
    assert [link for link in links if not (root / link).exists()] == []


def test_the_page_of_questions_names_what_exists(root: Path) -> None:
    text = (root / "docs" / "questions.md").read_text()
    errors = set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+|TierIOError)`", text))
    assert len(errors) > 12
    assert [name for name in errors if not issubclass(getattr(velocpy, name), velocpy.VelocError)] == []
    for method in re.findall(r"`(?:\w+\.)*(\w+)\(", text):
        places = (velocpy, velocpy.Store, velocpy.History, velocpy.Lease)
        assert method in ("checkpoint", "restore", "copy") or any(hasattr(place, method) for place in places), method


def test_commands_are_targets(root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), flags=re.MULTILINE))
    commands = set(re.findall(r"(?:`|^)make ([a-z-]+)", (root / "README.md").read_text(), flags=re.MULTILINE))
    assert {"demo", "test", "wheel"} <= commands
    assert commands <= targets


def test_every_dependency_is_explained(root: Path) -> None:
    explained = set(re.findall(r"`([\w./-]+)`", (root / "docs" / "dependencies.md").read_text()))
    wanted = {re.split(r"[^\w.-]", text)[0] for text in importlib.metadata.requires("velocpy") or ()}
    wanted |= set(re.findall(r"^\s+([a-z.]+\.[a-z]+/\S+) v", (root / "go.mod").read_text(), flags=re.MULTILINE))
    assert {"numpy", "torch", "go.uber.org/atomic"} <= wanted
    assert sorted(wanted - explained) == []


def test_what_users_install_fits_beside_other_versions(root: Path) -> None:
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = {name: wanted for name, wanted in project["optional-dependencies"].items() if name != "dev"}
    assert {"torch", "demo", "adjoint"} <= set(extras)
    for wanted in (project["dependencies"], *extras.values()):
        assert all(">=" in text and "==" not in text for text in wanted), wanted
    # What the tests run with is pinned.
    pins = (root / "requirements" / "test.txt").read_text().lower()
    for text in (*project["dependencies"], *(each for wanted in extras.values() for each in wanted)):
        assert f"{re.split('[^A-Za-z0-9_.-]', text)[0].lower()}==" in pins, text
