"""Pages for users: their code and commands run, and what they point at exists."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import mpi_launcher
from launching import OPEN_MPI

import velocpy

PAGES = [
    "archive.md",
    "budgets.md",
    "clusters.md",
    "jax.md",
    "notebooks.md",
    "observing.md",
    "solvers.md",
    "training.md",
    "wheels.md",
]


def blocks(root: Path, page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (root / "docs" / page).read_text(), flags=re.DOTALL)


#: How many programs are in them.
PROGRAMS = [
    ("archive.md", 3),
    ("budgets.md", 2),
    ("clusters.md", 1),
    ("jax.md", 1),
    ("observing.md", 5),
    ("training.md", 8),
]


@pytest.mark.parametrize(("page", "count"), PROGRAMS)
def test_code_runs(root: Path, run_python: Callable[..., CompletedProcess[str]], page: str, count: int) -> None:
    found = blocks(root, page, "python")
    assert len(found) == count
    for code in found:
        done = run_python(code)
        assert done.returncode == 0, done.stderr


def test_the_commands_of_archives(shell: Callable[[str], CompletedProcess[str]], tmp_path: Path, root: Path) -> None:
    for rank in range(4):
        with velocpy.open(tmp_path / "run" / f"rank-{rank:05d}", host="16MiB", disk="64MiB") as store:
            store.history("forward").checkpoint(0, u=np.array([rank]))
    text, _ = blocks(root, "archive.md", "sh")
    done = shell(f"cd {tmp_path}\n{text}")
    assert done.returncode == 0, done.stderr
    assert "rank 3/forward" in done.stdout
    with velocpy.open(tmp_path / "run" / "again", host="1MiB", mode="r") as store:
        assert list(store.history("forward").restore(0)["u"]) == [3]


@pytest.mark.mpi
def test_one_machine_plays_several_nodes(shell: Callable[[str], CompletedProcess[str]], root: Path) -> None:
    pytest.importorskip("mpi4py")
    launcher = mpi_launcher()
    assert launcher is not None
    settings = "\n".join(f"export {name}={value}" for name, value in OPEN_MPI.items())
    _, text = blocks(root, "archive.md", "sh")
    done = shell(f"{settings}\nPATH=$PATH:{Path(launcher).parent}\n{text}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "4 parts in 1 file"


#: In the order of the page: the packages that each program needs.
SOLVERS = [("torchdiffeq",), ("deepwave",), ("devito", "pyrevolve"), ("pyadjoint", "checkpoint_schedules")]


@pytest.mark.parametrize("packages", SOLVERS, ids=[packages[0] for packages in SOLVERS])
def test_a_program_with_a_solver_prints_its_output(
    root: Path, run_python: Callable[..., CompletedProcess[str]], packages: tuple[str, ...]
) -> None:
    text = (root / "docs" / "solvers.md").read_text()
    programs = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, flags=re.DOTALL)
    assert len(programs) == len(SOLVERS) == text.count("```python")
    code, output = programs[SOLVERS.index(packages)]
    for package in packages:
        assert re.search(rf"^(import|from) {package}\b", code, flags=re.MULTILINE)
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    # The tensors are small. Several threads of PyTorch may spin while other tests have the processors.
    done = run_python(code, env={"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout == output
    assert done.stderr == ""


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str], CompletedProcess[str]]:
    """Runs lines of a page in a shell that finds this velocpy and this Python."""
    place = tmp_path / "bin"
    place.mkdir()
    for name, module in (("velocpy", "-m velocpy"), ("python", "")):
        command = place / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        command.chmod(0o755)
    package = str(Path(velocpy.__file__).parents[1])
    hidden = ("TMPDIR", "SLURM_TMPDIR", "LOCAL_SCRATCH")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    environment |= {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": package}

    def run(text: str) -> CompletedProcess[str]:
        command = ["bash", "-ec", text]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_commands_for_clusters_run(root: Path, shell: Callable[[str], CompletedProcess[str]]) -> None:
    found = blocks(root, "clusters.md", "sh")
    assert len(found) >= 5
    outputs = []
    for text in found:
        done = shell(text)
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        outputs.append(done.stdout)
    written = "".join(outputs)
    assert "RLIMIT_AS leaves" in written, "the limit that the page sets was met"
    assert "exit code 1" in written
    assert "host 64.0 MiB" in written, "a fourth of the node's budget"


def test_another_process_is_watched(shell: Callable[[str], CompletedProcess[str]], root: Path) -> None:
    (text,) = blocks(root, "observing.md", "sh")
    done = shell(text)
    assert done.returncode == 0, done.stderr
    assert "Store: 0 checkpoints in 0 histories" in done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(root: Path, page: str) -> None:
    links = re.findall(r"\]\(((?!http)[^)#]+)\)", (root / "docs" / page).read_text())
    assert [link for link in links if not (root / "docs" / link).exists()] == []
    readme = (root / "README.md").read_text()
    assert f"docs/{page}" in readme


@pytest.mark.parametrize("page", PAGES)
def test_targets_and_names_exist(root: Path, page: str) -> None:
    text = (root / "docs" / page).read_text()
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, flags=re.MULTILINE)) <= targets
    of_others = {"TasksMax", "KillWait", "FileSystemWriter", "FileSystemReader", "ModelCheckpoint", "ModelParallel"}
    of_others |= {"DevitoCheckpoint", "CheckpointOperator", "MemoryRevolver", "VelocStorage"}
    for name in set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+)`", text)) - of_others:
        assert issubclass(getattr(velocpy.errors, name), velocpy.errors.VelocError), name


def test_forms_of_budgets_are_taken(root: Path) -> None:
    text = (root / "docs" / "budgets.md").read_text()
    for form in ('"4GiB"', '"1.5G"', "0.25", '"25%"', '"64GiB/node"', '"auto"', "None"):
        assert f"`{form}`" in text
    for host in ("64MiB", "0.1G", 64 << 20, 0.01, "1%", "64MiB/node", "auto"):
        with velocpy.open(host=host) as store:
            assert store.history("h") is not None


def test_the_picture_of_the_tiers_is_what_its_command_writes(root: Path) -> None:
    command = [sys.executable, "-m", "build_support.tiers"]
    written = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    assert written == (root / "docs" / "tiers.svg").read_bytes(), "make generate writes it anew"
    drawn = {element.text for element in ElementTree.fromstring(written).iter("{http://www.w3.org/2000/svg}text")}
    assert {"device", "host", "disk", "flush", "prefetch"} <= drawn
    assert "docs/tiers.svg" in (root / "README.md").read_text()
