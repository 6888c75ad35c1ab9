"""Arrays that name streams of their own, or are told those of others, on a core whose driver is the double."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import stream_scenarios
from conftest import RunPython

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def double_core(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core of this checkout with the driver's double for its driver."""
    go = shutil.which("go")
    if go is None or not (root / "gocore").is_dir():
        pytest.skip("there is no Go here, or no sources")
    library = tmp_path_factory.mktemp("double") / "libvelocpy_double.so"
    command = [go, "build", "-buildmode=c-shared", "-buildvcs=false", "-tags=velocpy_double", "-o", str(library)]
    subprocess.run([*command, "./gocore/cabi"], cwd=root, check=True)
    return library


@pytest.mark.parametrize("scenario", stream_scenarios.SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_streams(run_python: RunPython, double_core: Path, root: Path, scenario: Callable[[int], None]) -> None:
    seed = random.randrange(1 << 32)
    done = run_python(
        "import sys, stream_scenarios; getattr(stream_scenarios, sys.argv[1])(int(sys.argv[2])); print('done')",
        scenario.__name__,
        str(seed),
        timeout=200,
        env={
            "VELOCPY_CORE": str(double_core),
            "PYTHONPATH": os.pathsep.join([str(root / "python" / "tests"), os.environ.get("PYTHONPATH", "")]),
        },
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), f"seed {seed}: {done.stderr}"
