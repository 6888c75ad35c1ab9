"""What tests share: skips for what a machine lacks, and interpreters of their own for code that may crash."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import leaks
import numpy as np
import pytest

import velocpy

ROOT = Path(__file__).resolve().parents[2]

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


# A shell starts background jobs with Ctrl-C ignored, and what they start inherits that: bad for tests of interruptions.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def mpi_launcher() -> str | None:
    """The path of mpiexec: the one of this environment, or else of the machine."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("mpiexec", path=os.pathsep.join([beside, os.environ.get("PATH", os.defpath)]))


#: Long tests that share little with the others of their file.
SPREAD = ("test_every_bug_is_found", "test_interrupted_at_every_bytecode")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one process run the tests of a file, which share fixtures, but for those that are spread."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            return nodeid if test.partition("[")[0] in SPREAD else file

    return Scheduling(config, log)


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


@pytest.fixture(scope="module")
def frozen_imports() -> Iterator[None]:
    """The search for leaks behind each test looks through its own objects, not through those of large imports."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


_failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note that a test has failed: its frames, which the report keeps, hold what it held."""
    report = yield
    item.stash[_failed] = item.stash.get(_failed, False) or report.failed
    return report


@pytest.fixture(scope="session", autouse=True)
def once_for_all(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make what a process makes once and keeps: the core with its poller, and what multiprocessing starts."""
    device = "4MiB" if Path("/dev/nvidiactl").exists() else None
    with velocpy.open(tmp_path_factory.mktemp("first") / "store", device=device, host="1MiB", disk="64MiB") as store:
        store.history("h").checkpoint(0, u=np.zeros(8)).wait("disk")
    resource_tracker.ensure_running()


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest, once_for_all: None) -> Iterator[None]:
    """Fail a test that has passed and has left something behind in this process; see `leaks`."""
    before = leaks.held()
    yield
    if not request.node.stash.get(_failed, False):
        request.node.funcargs.clear()  # pytest would keep them a little longer
        more = leaks.left(before)
        assert not more, f"the test has left behind: {dict(more)}"


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


@pytest.fixture(scope="session")
def double_core(root: Path, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core of this checkout with the driver's double for its driver."""
    go = shutil.which("go")
    if go is None or not (root / "gocore").is_dir():
        pytest.skip("there is no Go here, or no sources")
    place = tmp_path_factory.getbasetemp()
    if hasattr(pytestconfig, "workerinput"):
        place = place.parent  # that of all processes of this run: one builds, the others wait for it
    library = place / "libvelocpy_double.so"
    with (place / "double.lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        if not library.exists():
            made = library.with_suffix(".new")
            # The flags of build_support/core.py: the install has compiled most packages with them.
            flags = ["-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-pgo=gocore/cabi/core.pgo"]
            command = [go, "build", *flags, "-tags=velocpy_double", "-o", str(made), "./gocore/cabi"]
            subprocess.run(command, cwd=root, check=True)
            made.rename(library)
    return library
