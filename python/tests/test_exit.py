"""The end of the interpreter, and of the process, at any moment."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import RunPython

BUSY = """
import sys, threading, time
import numpy as np
import velocpy
path = sys.argv[1]
store = velocpy.open(path, host="64MiB", disk="512MiB", durable=False, tuning=velocpy.Tuning(flush="eager"))
history = store.history("h")
u = np.random.default_rng(0).integers(0, 256, 4 << 20, dtype=np.uint8)
for i in range(40):
    history.checkpoint(i, u=u)
"""


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "lease = history.restore(3); kept = lease['u']",
        "del store, history",
        "store.close(); store.close()",
        "raise SystemExit(0)",
        "threading.excepthook = print; threading.Thread(target=history.wait, args=('disk',), daemon=True).start()",
        "import os; os._exit(0)",
        "history.hint(iter(lambda: 1, 2))",
        "import gc; gc.disable(); cycle = [store, history, history.restore(1)]; cycle.append(cycle)",
    ],
)
def test_exit_with_work_in_flight(run_python: RunPython, tmp_path: Path, ending: str) -> None:
    done = run_python(BUSY + ending, str(tmp_path / "tier"), timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert list((tmp_path / "tier").iterdir()) == []


def test_exit_with_a_daemon_thread_waiting_for_ever(run_python: RunPython, tmp_path: Path) -> None:
    done = run_python(
        BUSY
        + """
leases = [history.restore(i) for i in range(8)]
def stuck():
    big = np.zeros(60 << 20, np.uint8)
    try:
        store.history("other").checkpoint(0, u=big, timeout=1000)
    except velocpy.errors.StoreClosed:
        pass
threading.Thread(target=stuck, daemon=True).start()
time.sleep(0.3)
""",
        str(tmp_path / "tier"),
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_exit_does_not_wait_longer_than_told(run_python: RunPython, tmp_path: Path) -> None:
    began = time.monotonic()
    done = run_python(BUSY, str(tmp_path / "tier"), env={"VELOCPY_EXIT_TIMEOUT": "0"}, timeout=60)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 30


def test_exception_on_the_way_out_is_shown(run_python: RunPython, tmp_path: Path) -> None:
    done = run_python(BUSY + "raise ValueError('mine')", str(tmp_path / "tier"))
    assert done.returncode == 1
    assert done.stderr.strip().endswith("ValueError: mine")


def test_kill_leaves_no_file(tmp_path: Path) -> None:
    """The files of the disk tier are private to the process and go with it."""
    tier = tmp_path / "tier"
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY + "print('busy', flush=True); time.sleep(60)", tier], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"busy\n"
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=20)
    process.stdout.close()
    assert list(tier.iterdir()) == []
