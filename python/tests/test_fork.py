"""fork: with and without the core in use, in bare children, pools and data loaders."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys

import pytest
from conftest import RunPython

FORK = """
import gc, os, sys, time
import numpy as np
import velocpy

def in_child(body, seconds=20):
    '''Runs body in a forked child under an alarm; returns its exit status.'''
    child = os.fork()
    if child == 0:
        import signal
        signal.alarm(seconds)
        try:
            body()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def test_fork_unused_child_ok(run_python: RunPython) -> None:
    """The parent only imported: the child loads a core of its own, and so does the parent later."""
    done = run_python(
        FORK
        + """
def work():
    with velocpy.open(host="4MiB") as store:
        history = store.history("h")
        history.checkpoint(1, u=np.arange(5))
        assert history.restore(1)["u"].sum() == 10

assert in_child(work) == 0
work()
"""
    )
    assert done.returncode == 0, done.stderr


def test_fork_used_child_raises(run_python: RunPython) -> None:
    done = run_python(
        FORK
        + """
store = velocpy.open(host="4MiB")
history = store.history("h")
ticket = history.checkpoint(1, u=np.arange(5))
lease = history.restore(1)
shown = lease["u"]

def everything():
    u = np.zeros(5, int)
    calls = [
        lambda: velocpy.open(host="1MiB"),
        lambda: velocpy.build_info(),
        lambda: store.history("other"),
        lambda: store.stats(),
        lambda: store.timeline(),
        lambda: store.wait(),
        lambda: history.checkpoint(2, u=u),
        lambda: history.restore(1),
        lambda: history.restore(1, into={"u": u}),
        lambda: 1 in history,
        lambda: len(history),
        lambda: list(history),
        lambda: history.hint(range(3)),
        lambda: history.prefetch(),
        lambda: history.wait("host"),
        lambda: ticket.captured,
        lambda: ticket.wait(),
    ]
    for number, call in enumerate(calls):
        try:
            call()
        except velocpy.errors.ForkedProcessError as error:
            assert "spawn" in str(error)
        else:
            raise AssertionError(number)
    assert shown.sum() == 10          # memory that was shown stays readable
    history.drop(1)                   # destructors call these: nothing
    history.clear()
    history.hint_clear()
    for each in (history, store, ticket):
        repr(each), each._repr_html_()
    lease.release()
    store.close()

assert in_child(everything) == 0
assert history.restore(1)["u"].sum() == 10
store.close()
"""
    )
    assert done.returncode == 0, done.stderr


def test_dlpack_deleter_after_fork(run_python: RunPython) -> None:
    done = run_python(
        FORK
        + """
store = velocpy.open(host="4MiB", debug=True)
history = store.history("h")
history.checkpoint(1, u=np.arange(5))
lease = history.restore(1)
lent = [np.from_dlpack(lease["u"]), lease["u"].__dlpack__(max_version=(1, 0))]
del lease

def let_go():
    assert lent.pop(0).sum() == 10
    lent.clear()
    gc.collect()

assert in_child(let_go) == 0
let_go()                              # the parent's own, after the child's
assert history.restore(1, last=True)["u"].sum() == 10
store.close()
"""
    )
    assert done.returncode == 0, done.stderr


def test_fork_hundred_times_with_destructors_in_the_child(run_python: RunPython) -> None:
    done = run_python(
        FORK
        + """
store = velocpy.open(host="8MiB", disk="16MiB", tuning=velocpy.Tuning(flush="eager"))
history = store.history("h")
for round in range(100):
    ticket = history.checkpoint(round % 7, u=np.full(1000, round), copy=round % 2 == 0)
    lease = history.restore(round % 7)
    child = os.fork()
    if child == 0:
        import signal
        signal.alarm(20)
        del ticket, lease, history, store
        gc.collect()
        sys.exit(0)               # a whole ending: atexit and the destructors of every module
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, round
    assert lease["u"][0] == round
store.close()
""",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Exception" not in done.stderr


def test_fork_while_threads_use_the_store(run_python: RunPython) -> None:
    done = run_python(
        FORK
        + """
import threading
store = velocpy.open(host="8MiB", disk="64MiB")
stop = False
def busy(name):
    history, u = store.history(name), np.random.rand(20000)
    step = 0
    while not stop:
        history.checkpoint(step % 50, u=u)
        history.restore(step % 50)
        step += 1
threads = [threading.Thread(target=busy, args=(str(n),)) for n in range(4)]
[t.start() for t in threads]
def child():
    try:
        store.history("0").restore(0)
    except velocpy.errors.ForkedProcessError:
        return
    raise AssertionError
for _ in range(20):
    assert in_child(child) == 0
stop = True
[t.join() for t in threads]
store.close()
""",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


POOL = """
import multiprocessing, sys
import numpy as np
import velocpy

def inside(number):
    try:
        velocpy.open(host="1MiB")
        return "open"
    except velocpy.errors.ForkedProcessError:
        return "forked"

if __name__ == "__main__":
    method = sys.argv[1]
    store = velocpy.open(host="4MiB")
    store.history("h").checkpoint(0, u=np.zeros(3))
    with multiprocessing.get_context(method).Pool(2) as pool:
        print(*set(pool.map(inside, range(8))))
    print(store.history("h").restore(0)["u"].sum())
"""


@pytest.mark.parametrize(("method", "answer"), [("fork", "forked"), ("spawn", "open"), ("forkserver", "open")])
def test_multiprocessing_pool(tmp_path, method: str, answer: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    done = subprocess.run([sys.executable, script, method], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [answer, "0.0"]


LOADER = """
import sys
import torch
import velocpy

class Data(torch.utils.data.Dataset):
    def __init__(self, store):
        self.store = store
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return torch.full((4,), float(i))

if __name__ == "__main__":
    store = velocpy.open(host="4MiB")
    history = store.history("h")
    history.checkpoint(0, u=torch.ones(3))
    lease = history.restore(0)
    total = 0.0
    for epoch in range(3):
        data = Data(store if sys.argv[1] == "fork" else None)
        loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context=sys.argv[1])
        total += sum(float(batch.sum()) for batch in loader)
    print(total, float(history.restore(0)["u"].sum()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_dataloader_fork_and_spawn(tmp_path, method: str) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "loader.py"
    script.write_text(LOADER)
    done = subprocess.run([sys.executable, script, method], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(3 * 4 * sum(range(32)) * 1.0), "3.0"]


def test_subprocess_still_works(run_python: RunPython) -> None:
    done = run_python(
        FORK
        + """
import subprocess
with velocpy.open(host="4MiB") as store:
    store.history("h").checkpoint(0, u=np.zeros(3))
    for _ in range(20):
        assert subprocess.run(["true"]).returncode == 0
    assert subprocess.run([sys.executable, "-c", "import velocpy; velocpy.open(host='1MiB').close()"]).returncode == 0
"""
    )
    assert done.returncode == 0, done.stderr
