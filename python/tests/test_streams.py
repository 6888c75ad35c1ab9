"""Arrays that name streams of their own, or are told those of others, on a core whose driver is the double."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import stream_scenarios
from conftest import RunPython

pytestmark = pytest.mark.slow


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
