"""A panic inside Go poisons the core and leaves the process alive."""

from __future__ import annotations

import pytest
from conftest import RunPython

HOOKS = {"VELOCPY_TEST_HOOKS": "1"}


@pytest.mark.parametrize("where", [0, 1], ids=["in the call", "in a goroutine"])
def test_panic_poisons(run_python: RunPython, where: int) -> None:
    done = run_python(
        f"""
        import time
        import numpy as np
        import velocpy
        from velocpy import _core

        store = velocpy.open(host="8MiB", disk="16MiB")
        history = store.history("h")
        ticket = history.checkpoint(1, u=np.arange(4))
        lease = history.restore(1)
        u = lease["u"]
        try:
            _core.test_panic({where})
            time.sleep(0.3)
        except velocpy.errors.CorePoisoned:
            pass
        calls = [
            lambda: velocpy.open(host="1MiB"),
            lambda: history.checkpoint(2, u=np.zeros(3)),
            lambda: history.restore(1),
            lambda: history.wait("disk"),
            lambda: len(history),
            lambda: store.stats(),
            lambda: store.history("new"),
            lambda: ticket.wait("disk"),
        ]
        for number, call in enumerate(calls):
            try:
                call()
            except velocpy.errors.CorePoisoned as error:
                assert "asked to panic" in str(error), error
                assert "estart" in str(error)
            else:
                raise AssertionError(number)
        assert u.sum() == 6
        del u, lease
        print("alive")
        """,
        env=HOOKS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "alive"
    assert "panic" not in done.stderr  # the stacks are in the exception, not on the terminal


def test_panic_ends_a_wait(run_python: RunPython) -> None:
    done = run_python(
        """
        import threading, time
        import numpy as np
        import velocpy
        from velocpy import _core

        store = velocpy.open(host="1MiB")
        history = store.history("h")
        history.checkpoint(0, u=np.zeros(900_000, np.uint8))
        lease = history.restore(0)
        threading.Timer(0.3, lambda: _core.test_panic(1)).start()
        began = time.monotonic()
        try:
            history.checkpoint(1, u=np.zeros(900_000, np.uint8), timeout=60)
        except velocpy.errors.CorePoisoned:
            print(time.monotonic() - began < 5)
        """,
        env=HOOKS,
    )
    assert done.stdout.strip() == "True", done.stderr


def test_hooks_are_off_by_default(run_python: RunPython) -> None:
    done = run_python(
        """
        import velocpy
        from velocpy import _core
        velocpy.build_info()
        try:
            _core.test_panic(0)
        except velocpy.errors.TierUnavailable as error:
            print("refused")
        velocpy.open(host="1MiB").close()
        """
    )
    assert done.stdout.strip() == "refused", done.stderr
