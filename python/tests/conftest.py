"""What tests share: skips for what a machine lacks, and interpreters of their own for code that may crash."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


# A shell starts background jobs with Ctrl-C ignored, and what they start inherits that: bad for tests of interruptions.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def mpi_launcher() -> str | None:
    """The path of mpiexec: the one of this environment, or else of the machine."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("mpiexec", path=os.pathsep.join([beside, os.environ.get("PATH", os.defpath)]))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, with the reason, what needs a device or a launcher that this machine lacks."""
    lacking = {}
    if not Path("/dev/nvidiactl").exists():
        lacking["gpu"] = pytest.mark.skip(reason="no CUDA device on this machine")
    if mpi_launcher() is None:
        lacking["mpi"] = pytest.mark.skip(reason="no mpiexec on this machine")
    for item in items:
        for name, skip in lacking.items():
            if item.get_closest_marker(name):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Run code in a fresh interpreter, in an empty folder; the caller looks at exit status and output.

    A run that outlives its timeout is killed and fails the test: the guard against hangs.
    """

    def run(
        code: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
        options: tuple[str, ...] = (),
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *options, "-c", textwrap.dedent(code), *arguments],
            env={**os.environ, **(env or {})},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run
