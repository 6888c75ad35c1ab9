"""The README and the guide: their examples run, and what they point at exists."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import velocpy


def test_example_runs(root: Path, run_python: Callable[..., CompletedProcess[str]]) -> None:
    pages = ((root / name).read_text() for name in ("README.md", "docs/guide.md"))
    examples = [code for page in pages for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)]
    assert len(examples) == 12
    done = run_python("".join(examples) + "\nassert store.closed and u[0] != 0")
    assert done.returncode == 0, done.stderr
    *printed, cost, older, newer, before_last, last = done.stdout.splitlines()
    *lines, reopened, names, values, part, differ, where, read, many, swept, reduced, letters = printed
    assert letters == "", "of a schedule without a device"
    assert [int(line.split()[0]) for line in lines] == list(reversed(range(24)))
    assert len({line.split()[1] for line in lines}) > 20, "states that differ"
    assert reopened == lines[0].split()[1], "the last state, from the store on disk"
    assert names == "['model.layer.weight', 'optim.state.0.exp_avg']"
    assert values == "[{'lr': 0.1, 'betas': (0.9, 0.999)}] 3"
    assert part == "512 KiB of 2048 were read"
    assert differ == "checkpoint 12 of history 'first run' and of history 'second run': 1 of 1 regions differ"
    assert where.startswith("region 'w': 2 of 524288 elements differ, within [700, 3:5]")
    assert read == "256 KiB of each run were read"
    assert many == "1000 captured, the last of 999"
    assert swept == "swept 19 18 17"
    encoded, before, after = map(int, re.findall(r"\d+", reduced.replace("of 4", "")))
    assert 1 <= encoded <= 4
    assert before == encoded << 20 > 2 * after
    mib, kib = map(int, re.findall(r"\d+", cost))
    assert mib << 10 == 20 * 2048 > 15 * kib
    for step, found in ((18, older), (19, newer)):
        key, own, needed, others = map(int, re.findall(r"\d+", found))
        assert key == step
        assert own <= 8
        assert 1500 < needed < 2300
        assert 1 <= others <= step
    assert [before_last, last] == [f"{step} has 2048 new bytes of 2097152" for step in (18, 19)]


def test_links_lead_somewhere(root: Path) -> None:
    links = re.findall(r"\]\(((?!http)[^)#]+)\)", (root / "README.md").read_text())
    assert links
    assert [link for link in links if not (root / link).exists()] == []


def test_the_page_of_questions_names_what_exists(root: Path) -> None:
    text = (root / "docs" / "questions.md").read_text()
    errors = set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+|TierIOError)`", text)) - {"DeprecationWarning"}
    assert len(errors) > 12
    assert [name for name in errors if not issubclass(getattr(velocpy.errors, name), velocpy.errors.VelocError)] == []
    for method in re.findall(r"`(?:\w+\.)*(\w+)\(", text):
        places = (velocpy, velocpy.Store, velocpy.History, velocpy.Lease)
        assert method in ("checkpoint", "restore", "copy") or any(hasattr(place, method) for place in places), method


def test_commands_are_targets(root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), flags=re.MULTILINE))
    commands = set(re.findall(r"(?:`|^)make ([a-z-]+)", (root / "README.md").read_text(), flags=re.MULTILINE))
    assert {"demo", "test", "wheel"} <= commands
    assert commands <= targets


@pytest.mark.parametrize("kernels", [True, False])
def test_the_demo_announces_each_step(root: Path, kernels: bool) -> None:
    """Before each of its commands `make demo` says which step of how many it is, and how much is fetched."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make on this machine")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VELOCPY_")}
    environment |= {} if kernels else {"VELOCPY_CUDA": "0"}
    done = subprocess.run([make, "-n", "demo"], cwd=root, env=environment, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    steps = [index for index, line in enumerate(lines) if line.startswith('echo "demo: ')]
    assert [lines[index].split()[2:5] for index in steps] == [[str(k), "of", "4:"] for k in (1, 2, 3, 4)]
    work = ["pip install -c requirements/wheels.txt", "setup.py build_go build_cuda", '".[demo]"', "velocpy demo"]
    for begin, end, command in zip(steps, [*steps[1:], len(lines)], work, strict=True):
        assert any(command in line for line in lines[begin + 1 : end]), (command, lines[begin:end])
    assert ("100 MiB for the CUDA compiler" in lines[steps[0]]) == kernels
    assert any("requirements/cuda.txt" in line for line in lines[steps[0] : steps[1]]) == kernels


def test_pythons_that_were_tried(root: Path) -> None:
    """The README names no more and no fewer of them than docs/wheels.md has rows for."""
    rows = re.findall(r"^\| (3\.\d+) \|", (root / "docs" / "wheels.md").read_text(), flags=re.MULTILINE)
    assert f"({rows[0]} to {rows[-1]} tried," in (root / "README.md").read_text()


def test_every_dependency_is_explained(root: Path) -> None:
    explained = set(re.findall(r"`([\w./-]+)`", (root / "docs" / "dependencies.md").read_text()))
    wanted = {re.split(r"[^\w.-]", text)[0] for text in importlib.metadata.requires("velocpy") or ()}
    for module in (root / "go.mod", root / "s3" / "go.mod"):
        wanted |= set(re.findall(r"^\s+([a-z.]+\.[a-z]+/\S+) v", module.read_text(), flags=re.MULTILINE))
    assert {"numpy", "torch", "go.uber.org/atomic"} <= wanted
    assert sorted(wanted - explained) == []


def test_what_users_install_fits_beside_other_versions(root: Path) -> None:
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = {name: wanted for name, wanted in project["optional-dependencies"].items() if name != "dev"}
    assert {"torch", "demo", "adjoint"} <= set(extras)
    for wanted in (project["dependencies"], *extras.values()):
        assert all(re.search(r"^[\w-]+>=[\d.]+(,<\d+)?(; .*)?$", text) for text in wanted), wanted
    # What the tests run with is pinned.
    pins = (root / "requirements" / "test.txt").read_text().lower()
    for text in (*project["dependencies"], *(each for wanted in extras.values() for each in wanted)):
        assert f"{re.split('[^A-Za-z0-9_.-]', text)[0].lower()}==" in pins, text
