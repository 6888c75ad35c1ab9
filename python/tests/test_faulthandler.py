"""faulthandler before and after the core: both keep working."""

from __future__ import annotations

import signal

import pytest
from conftest import RunPython


@pytest.mark.parametrize("order", ["before", "after"])
def test_faulthandler(run_python: RunPython, order: str) -> None:
    enable = "faulthandler.enable()"
    done = run_python(
        f"""
        import ctypes, faulthandler
        import numpy as np
        import velocpy
        {enable if order == "before" else ""}
        store = velocpy.open(host="2MiB", disk="16MiB")
        history = store.history("h")
        {enable if order == "after" else ""}
        for i in range(40):
            history.checkpoint(i, u=np.full(100_000, i, np.uint8))
        for i in reversed(range(40)):
            assert history.restore(i)["u"][0] == i
        try:
            history.checkpoint(99, {{"u": (1 << 40, 100)}})      # not mapped: an error, not a fault
        except velocpy.errors.InvalidArgument:
            print("refused", flush=True)
        ctypes.string_at(0)                                    # somebody else's fault: the traceback must still come
        """
    )
    assert done.stdout.strip() == "refused"
    assert done.returncode == -signal.SIGSEGV, (done.returncode, done.stderr)
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert "string_at" in done.stderr


def test_signal_set_after_load(run_python: RunPython) -> None:
    """What the core's runtime catches is known; SIGINT, SIGTERM, SIGHUP and SIGCHLD stay Python's."""
    done = run_python(
        """
        import signal, velocpy
        def caught():
            line = next(l for l in open("/proc/self/status") if l.startswith("SigCgt"))
            mask = int(line.split()[1], 16)
            return {n for n in range(1, 65) if mask >> n - 1 & 1}
        before = caught()
        velocpy.open(host="1MiB").close()
        new = caught() - before
        assert new <= {signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGPIPE, signal.SIGURG, 32, 33, 34}, new
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        """
    )
    assert done.returncode == 0, done.stderr
