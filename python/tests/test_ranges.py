"""NVTX ranges: around every call that moves bytes or waits, nested and closed; and none without the knob."""

from __future__ import annotations

import importlib.util
import textwrap

import pytest
from conftest import RunPython

#: A module in place of nvtx, which keeps what it is told; then some calls.
FAKE = """
import sys, types
told, open_ = [], []

class Domain:
    def get_event_attributes(self, message):
        message.encode("utf-8")
        return message
    def push_range(self, attributes):
        open_.append(attributes)
        told.append("  " * (len(open_) - 1) + attributes)
    def pop_range(self):
        open_.pop()

def get_domain(name):
    assert name == "velocpy"
    return Domain()

fake = types.ModuleType("nvtx")
fake.get_domain = get_domain
sys.modules["nvtx"] = fake
"""

CALLS = """
import numpy as np, velocpy
with velocpy.open(host="16MiB", disk="64MiB") as store:
    forward = store.history("forward")
    ticket = forward.checkpoint(0, u=np.zeros(3))
    ticket.wait("disk")
    forward.checkpoint_many([(1, {"u": np.zeros(3)}), (2, {"u": np.zeros(3)})])
    assert forward.restore(1)["u"].sum() == 0
    forward.hint([2, 1])
    assert [key for key, _ in forward.restore_iter()] == [2, 1]
    forward.prefetch()
    forward.wait()
    store.wait("disk")
    try:
        forward.restore("none")
    except velocpy.errors.CheckpointNotFound:
        pass
    store.history("\\udc80").checkpoint(0, u=np.zeros(3))
with velocpy.open(host="1MiB") as store:
    store.history("h").checkpoint(0, u=np.zeros(3))
"""


def test_every_call_is_a_range(run_python: RunPython) -> None:
    code = FAKE + CALLS + 'assert open_ == []\nprint("\\n".join(told))'
    done = run_python(code, env={"VELOCPY_NVTX": "1"})
    assert done.stdout.splitlines() == [
        "checkpoint forward",
        "wait forward",
        "checkpoint_many forward",
        "restore forward",
        *["restore_iter forward"] * 3,
        "prefetch forward",
        "wait forward",
        "wait",
        "restore forward",
        "checkpoint \\udc80",
        "close",
        "checkpoint h",
        "close",
    ], done.stderr


@pytest.mark.parametrize("value", ["", "0", None])
def test_nothing_is_replaced_unasked(run_python: RunPython, value: str | None) -> None:
    code = """
        from velocpy import history, store, ticket
        assert "velocpy.ranges" not in sys.modules
        for method in (history.Checkpoints.checkpoint, store.Store.close, ticket.Ticket.wait):
            assert not hasattr(method, "__wrapped__")
        assert told == []
        """
    done = run_python(FAKE + CALLS + textwrap.dedent(code), env={} if value is None else {"VELOCPY_NVTX": value})
    assert done.returncode == 0, done.stderr


def test_the_signatures_stay(run_python: RunPython) -> None:
    done = run_python(
        FAKE
        + "import inspect, velocpy\nbefore = inspect.signature(velocpy.History.checkpoint)\n"
        + "velocpy.open(host='1MiB').close()\n"
        + "assert hasattr(velocpy.History.checkpoint, '__wrapped__')\n"
        + "assert inspect.signature(velocpy.History.checkpoint) == before\n"
        + "assert 'Parameters' in velocpy.History.checkpoint.__doc__\n",
        env={"VELOCPY_NVTX": "1"},
    )
    assert done.returncode == 0, done.stderr


TORCH = """
import sys, types
told = []
sys.modules["nvtx"] = None
torch, cuda, nvtx = (types.ModuleType(name) for name in ("torch", "torch.cuda", "torch.cuda.nvtx"))
torch.cuda, cuda.nvtx = cuda, nvtx
nvtx.range_push, nvtx.range_pop = told.append, lambda: None
sys.modules.update({"torch": torch, "torch.cuda": cuda, "torch.cuda.nvtx": nvtx})
from velocpy.ranges import available
ranges = available()
"""


def test_torch_stands_in_for_nvtx(run_python: RunPython) -> None:
    done = run_python(TORCH + 'ranges.push("checkpoint forward")\nranges.pop()\nprint(told)')
    assert done.stdout == "['velocpy', 'velocpy.checkpoint forward']\n", done.stderr


def test_neither_is_there(run_python: RunPython) -> None:
    code = """
        import sys
        sys.modules["nvtx"] = sys.modules["torch"] = None
        import velocpy
        for _ in range(2):
            try:
                velocpy.open(host="1MiB")
            except ImportError as error:
                print(error)
        assert velocpy.stores() == ()
        assert not hasattr(velocpy.Store.close, "__wrapped__")
        """
    done = run_python(code, env={"VELOCPY_NVTX": "1"})
    expected = "VELOCPY_NVTX=1 needs nvtx, which is not installed: pip install nvtx, or PyTorch with CUDA\n"
    assert done.stdout == 2 * expected, done.stderr


def test_the_real_package(run_python: RunPython) -> None:
    if importlib.util.find_spec("nvtx") is None:
        pytest.skip("nvtx is not installed")
    done = run_python(CALLS + "assert hasattr(velocpy.Store.close, '__wrapped__')", env={"VELOCPY_NVTX": "1"})
    assert done.returncode == 0, done.stderr
