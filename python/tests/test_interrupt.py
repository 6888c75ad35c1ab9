"""Ctrl-C in every kind of wait: soon, and with the store usable afterwards.

The promise is 200 ms; a busy machine gets three attempts to keep it, each within a guard against hangs.
"""

from __future__ import annotations

import pytest
from conftest import RunPython

PROMISE, GUARD, ATTEMPTS = 0.2, 1.0, 3

PRELUDE = """
import os, signal, threading, time
import numpy as np
import velocpy

MIB = 1 << 20
hit = []

def later(seconds):
    def strike():
        hit.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Timer(seconds, strike).start()

def interrupted(call, seconds=0.4):
    '''Latency of the KeyboardInterrupt that ends call.'''
    try:
        later(seconds)
        call()
    except KeyboardInterrupt:
        return time.perf_counter() - hit[-1]
    raise SystemExit("the call ended before the signal")

def filled(store, history, count, nbytes):
    for i in range(count):
        history.checkpoint(i, u=np.full(nbytes, i, np.uint8))

def crowded(count):
    '''A history in a store without room for more than one MiB beside its checkpoints, and leases that hold them all.'''
    store = velocpy.open(host=(count + 1) * MIB)
    history = store.history("h")
    filled(store, history, count, MIB)
    return store, history, [history.restore(i) for i in range(count)]
"""

WAITS = {
    "checkpoint without room": """
store, history, leases = crowded(7)
latency = interrupted(lambda: history.checkpoint(99, u=np.zeros(4 * MIB, np.uint8), timeout=60))
assert 99 not in history
del leases
for i in range(7):
    history.drop(i)
history.checkpoint(99, u=np.ones(4 * MIB, np.uint8))
assert history.restore(99)["u"].all()
""",
    "restore without room": """
store = velocpy.open(host=8 * MIB, disk=64 * MIB)
history = store.history("h")
filled(store, history, 30, MIB)
history.wait("disk")
there = [i for i in range(30) if history.tiers(i) == ("disk",)]
assert there
leases = [history.restore(i, timeout=5) for i in range(30) if i not in there]
latency = None
try:
    for i in there:
        later(0.4)
        leases.append(history.restore(i, timeout=60))
        time.sleep(0.5)
except KeyboardInterrupt:
    latency = time.perf_counter() - hit[-1]
del leases
for i in reversed(range(30)):
    assert history.restore(i)["u"][5] == i
""",
    "ticket": """
store = velocpy.open(host=2048 * MIB, disk=4096 * MIB)
history = store.history("h")
block = np.zeros(512 * MIB, np.uint8)
for i in range(3):
    ticket = history.checkpoint(i, u=block)
latency = interrupted(lambda: [ticket.wait("disk"), store.wait("disk"), time.sleep(10)], 0.05)
store.wait("disk")
assert ticket.durable("disk")
""",
    "store": """
store = velocpy.open(host=2048 * MIB, disk=4096 * MIB)
history = store.history("h")
for i in range(3):
    history.checkpoint(i, u=np.zeros(512 * MIB, np.uint8))
latency = interrupted(lambda: [store.wait("disk"), time.sleep(10)], 0.05)
store.wait("disk")
""",
    "close": """
store = velocpy.open(host=2048 * MIB, disk=4096 * MIB, tuning=velocpy.Tuning(flush="eager"))
history = store.history("h")
for i in range(3):
    history.checkpoint(i, u=np.zeros(512 * MIB, np.uint8))
latency = interrupted(lambda: [store.close(), time.sleep(10)], 0.05)
store.close()
try:
    history.restore(0)
except velocpy.errors.StoreClosed:
    pass
else:
    raise AssertionError
""",
    "large copies": """
store = velocpy.open(host=2048 * MIB)
history = store.history("h")
block = np.ones(1024 * MIB, np.uint8)
def copies():
    while True:
        history.checkpoint(0, u=block)
        history.restore(0, into={"u": block})
latency = interrupted(copies, 0.6)
history.checkpoint(1, u=np.arange(3))
assert history.restore(1)["u"].sum() == 3
""",
}


@pytest.mark.alone
@pytest.mark.parametrize("wait", WAITS)
def test_keyboard_interrupt_in_wait(run_python: RunPython, wait: str, record_property) -> None:
    latencies = []
    while len(latencies) < ATTEMPTS and min(latencies, default=GUARD) >= PROMISE:
        done = run_python(PRELUDE + WAITS[wait] + "\nprint(latency)", timeout=120)
        assert done.returncode == 0, done.stderr + done.stdout
        latencies.append(float(done.stdout.split()[-1]))
        assert latencies[-1] < GUARD
    record_property("latency_ms", round(min(latencies) * 1e3, 2))
    assert min(latencies) < PROMISE


def test_the_handler_decides(run_python: RunPython) -> None:
    """A handler that raises nothing lets the wait go on, and may use the store although its thread is inside a wait."""
    done = run_python(
        PRELUDE
        + """
store, history, leases = crowded(7)
other = store.history("other")
seen = []
def handler(number, frame):
    other.checkpoint(len(seen), u=np.arange(10))
    seen.append(int(other.restore(len(seen))["u"].sum()))
signal.signal(signal.SIGINT, handler)
later(0.3)
later(0.6)
try:
    history.checkpoint(99, u=np.zeros(4 * MIB, np.uint8), timeout=1.5)
except velocpy.errors.WaitTimeout:
    print(*seen)
""",
        timeout=60,
    )
    assert done.stdout.split() == ["45", "45"], done.stderr


def test_interrupts_leak_no_descriptor(run_python: RunPython) -> None:
    done = run_python(
        PRELUDE
        + """
store, history, leases = crowded(7)
def count():
    return len(os.listdir("/proc/self/fd"))
def give_up():
    try:
        history.checkpoint(99, u=np.zeros(4 * MIB, np.uint8), timeout=0.01)
    except velocpy.errors.WaitTimeout:
        return
    raise AssertionError
give_up()
before = count()
for _ in range(200):
    give_up()
threads = [threading.Thread(target=give_up) for _ in range(20)]
[t.start() for t in threads]; [t.join() for t in threads]
assert count() <= before + 1, (before, count())
""",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_late_signals_hit_no_reused_descriptor(run_python: RunPython) -> None:
    """Threads give up waits and end, their descriptors' numbers become pipes: not one byte may arrive in those."""
    done = run_python(
        PRELUDE
        + """
store, history, leases = crowded(3)
def give_up(key):
    try:
        history.checkpoint(key, u=np.zeros(2 * MIB, np.uint8), timeout=0.002)
        history.drop(key)
    except (velocpy.errors.WaitTimeout, velocpy.errors.TierFull):
        pass
for round in range(100):
    leases = [history.restore(i) for i in range(3)]
    threads = [threading.Thread(target=give_up, args=(("k", n)[0] + str(n),)) for n in range(4)]
    [t.start() for t in threads]
    time.sleep(0.001)
    del leases                                        # those who wait are signalled just now
    [t.join() for t in threads]
    pipes = [os.pipe2(os.O_NONBLOCK) for _ in range(8)]
    time.sleep(0.001)
    for reader, writer in pipes:
        try:
            raise SystemExit(f"{os.read(reader, 100)} arrived in a pipe")
        except BlockingIOError:
            os.close(reader); os.close(writer)
""",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr + done.stdout
