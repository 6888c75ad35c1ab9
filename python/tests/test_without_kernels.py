"""A build without GPU kernels (VELOCPY_CUDA=0): what it fetches, what it says, and what works in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import velocpy

Requirements = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def requirements(root: Path) -> Requirements:
    """What the back end asks pip for, before it builds a wheel or an editable install."""
    pytest.importorskip("setuptools")

    def ask(kind: str, **changes: str) -> subprocess.CompletedProcess[str]:
        hidden = ("VELOCPY_CUDA", "VELOCPY_PREBUILT_KERNELS")
        environment = {**{k: v for k, v in os.environ.items() if k not in hidden}, **changes}
        code = f"from build_support import backend; print(*backend.get_requires_for_build_{kind}(), sep=chr(10))"
        command = [sys.executable, "-c", code]
        return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)

    return ask


@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_the_compiler_is_asked_for_by_default(requirements: Requirements, kind: str) -> None:
    done = requirements(kind)
    assert done.returncode == 0, done.stderr
    assert [line.partition("==")[0] for line in done.stdout.splitlines() if line.startswith("nvidia-")] == [
        *("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime", "nvidia-cuda-cccl")
    ]
    assert "VELOCPY_CUDA=0" in done.stderr


@pytest.mark.parametrize("kind", ["wheel", "editable"])
@pytest.mark.parametrize("setting", [{"VELOCPY_CUDA": "0"}, {"VELOCPY_PREBUILT_KERNELS": "/a.fatbin"}], ids=str)
def test_no_compiler_is_asked_for_where_none_is_needed(
    requirements: Requirements, kind: str, setting: dict[str, str]
) -> None:
    done = requirements(kind, **setting)
    assert done.returncode == 0, done.stderr
    assert "nvidia" not in done.stdout


def test_the_switch_is_0_or_1(requirements: Requirements) -> None:
    done = requirements("wheel", VELOCPY_CUDA="no")
    assert done.returncode != 0
    assert "VELOCPY_CUDA is 'no'" in done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with the package as such a build makes it."""
    folder = tmp_path_factory.mktemp("without")
    without = shutil.ignore_patterns("*.fatbin", "__pycache__")
    shutil.copytree(Path(velocpy.__file__).parent, folder / "velocpy", ignore=without)
    return folder


def run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "VELOCPY_CORE"} | {"PYTHONPATH": str(place)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_info_says_so(place: Path) -> None:
    text = run(place, "-m", "velocpy", "info").stdout
    assert "none: this build has no GPU kernels" in text
    assert json.loads(run(place, "-m", "velocpy", "info", "--json").stdout)["build"]["kernels_path"] is None


def test_info_names_the_kernels_of_other_builds() -> None:
    kernels = velocpy.build_info()["kernels_path"]
    assert kernels is not None
    assert Path(kernels).read_bytes()[:4] == 0xBA55ED50.to_bytes(4, "little")


def test_doctor_says_so(place: Path) -> None:
    done = run(place, "-m", "velocpy", "doctor", "--json", "--no-rates")
    found = {finding["what"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert found["kernels' file"]["verdict"] != "ok"
    assert "this build has no GPU kernels" in found["kernels' file"]["text"]
    assert "VELOCPY_CUDA=0" in found["kernels' file"]["remedy"]
    assert found["host and disk tiers"]["verdict"] == "ok"


WORK = """
import numpy as np, velocpy
with velocpy.open(host="1MiB", disk="16MiB") as store:
    history = store.history("h")
    for i in range(8):
        history.checkpoint(i, u=np.full(100_000, i))
    print(*(int(history.restore(i)["u"][0]) for i in range(8)))
try:
    velocpy.open(device="64MiB", host="64MiB")
except velocpy.errors.TierUnavailable as error:
    print(error.tier, error)
"""


def test_host_and_disk_work_and_the_device_tier_is_refused(place: Path) -> None:
    done = run(place, "-c", WORK)
    assert done.returncode == 0, done.stderr
    restored, refused = done.stdout.splitlines()
    assert restored == "0 1 2 3 4 5 6 7"
    assert refused.startswith("device ")
    assert "no GPU kernels" in refused
    assert "without VELOCPY_CUDA=0" in refused
