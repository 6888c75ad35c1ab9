"""Bytes that change behind the store's back, and disks that fail: typed errors that say where."""

from __future__ import annotations

import pytest
from conftest import RunPython

HOOKS = {"VELOCPY_TEST_HOOKS": "1"}

PRELUDE = """
import numpy as np
import velocpy

def expect(call, region, tier, key="k"):
    try:
        call()
    except velocpy.errors.CorruptCheckpoint as error:
        assert (error.history, error.key, error.region, error.tier) == ("h", key, region, tier), vars(error)
        assert "checksum" in str(error) or "mismatch" in str(error) or "not those" in str(error), error
    else:
        raise AssertionError("nobody noticed")

HOST, DISK = 1, 2
"""


@pytest.mark.parametrize("verify", ["first", "always"])
@pytest.mark.parametrize("how", ["lease", "into", "partial"])
def test_corruption_is_named(run_python: RunPython, verify: str, how: str) -> None:
    done = run_python(
        PRELUDE
        + f"""
store = velocpy.open(host="1MiB", disk="16MiB", verify={verify!r})
history = store.history("h")
u, v = np.arange(1000.0), np.arange(20_000, dtype=np.int32)
read = {{
    "lease": lambda: history.restore("k"),
    "into": lambda: history.restore("k", into={{"u": np.empty_like(u), "v": np.empty_like(v)}}),
    "partial": lambda: history.restore("k", "v"),
}}[{how!r}]

history.checkpoint("k", u=u, v=v)
history._core.corrupt("k", HOST, 8192 + 5000)
expect(read, "v", "host")

history.checkpoint("k", u=u, v=v)                  # written again, it is whole again
read()

for i in range(8):
    history.checkpoint(i, u=np.full(300_000, i, np.uint8))
history.wait("disk")
while "host" in history.tiers("k"):
    i += 1
    history.checkpoint(i % 20, u=np.zeros(300_000, np.uint8))
history._core.corrupt("k", DISK, 8192 + 5000)
expect(read, "v", "disk")
assert history.restore(3)["u"][0] in (0, 3)         # the others are what they were
history.checkpoint("k", u=u, v=v)
assert (history.restore("k")["v"] == v).all()
store.close()
""",
        env=HOOKS,
    )
    assert done.returncode == 0, done.stderr


def test_what_comes_from_the_disk_is_compared_by_default(run_python: RunPython) -> None:
    done = run_python(
        PRELUDE
        + """
store = velocpy.open(host="1MiB", disk="64MiB")
history = store.history("h")
for key in range(40):
    history.checkpoint(key, u=np.zeros(100_000, np.uint8))
history.wait("disk")
moved = [key for key in range(40) if "host" not in history.tiers(key)]
assert len(moved) > 20
for key in moved:
    history._core.corrupt(key, DISK, 10)
for key in moved:
    expect(lambda: history.restore(key), "u", "disk", key)
store.close()
""",
        env=HOOKS,
    )
    assert done.returncode == 0, done.stderr


def test_unverified_is_quiet(run_python: RunPython) -> None:
    done = run_python(
        PRELUDE
        + """
for options in ({"verify": "off"}, {"tuning": velocpy.Tuning(checksum=False)}):
    store = velocpy.open(host="4MiB", **options)
    history = store.history("h")
    history.checkpoint("k", u=np.zeros(1000, np.uint8))
    history._core.corrupt("k", HOST, 10)
    assert np.count_nonzero(history.restore("k")["u"]) == 1
    store.close()
""",
        env=HOOKS,
    )
    assert done.returncode == 0, done.stderr


def test_what_is_found_late_is_told_once(run_python: RunPython) -> None:
    """What a device finds behind a restore: the next restore or wait of that history tells, or the end of the store."""
    done = run_python(
        PRELUDE.replace("CorruptCheckpoint", "BelatedCorruption")
        + """
NOWHERE = -1                                        # a test's word for: found out later
awkward = "\\ud800"                                  # no UTF-8
for key in (3, "k", chr(0) + chr(228) + chr(34), "<" * 150, "k" * 5000, awkward):
    store = velocpy.open(host="4MiB")
    history, other = store.history("h"), store.history("other")
    for k in (0, key):
        history.checkpoint(k, u=np.zeros(1000), v=np.ones(3, np.int32))
    other.checkpoint(0, u=np.zeros(1000))
    history.restore(0)
    named = None if key == awkward or len(str(key)) > 1000 else key
    into = {"u": np.empty(1000), "v": np.empty(3, np.int32)}

    for call in (
        lambda: history.restore(0), lambda: history.restore(0, into=into), lambda: history.wait(), lambda: store.wait(),
        lambda: next(history.restore_iter()), store.close,
    ):
        history.hint(0)
        history._core.corrupt(key, NOWHERE, 8000)
        assert (other.restore(0)["u"] == 0).all()
        other.wait()
        history.checkpoint(1, u=np.ones(5))
        expect(call, "v", "host", named)
        try:
            call()
        except velocpy.errors.StoreClosed:
            assert store.closed
        history.hint_clear()
    store.close()

try:
    with velocpy.open(host="4MiB") as store:
        history = store.history("h")
        history.checkpoint("k", [np.zeros(10)])
        history._core.corrupt("k", NOWHERE, 8)
except velocpy.errors.BelatedCorruption as error:
    assert error.key == "k" and error.region == 0 and "verify='always'" in str(error), error
    assert not isinstance(error, velocpy.errors.CorruptCheckpoint)
else:
    raise AssertionError("nobody told")
assert store.closed

import logging

class Told(logging.Handler):
    texts = []
    def emit(self, record):
        self.texts.append(record.getMessage())

logging.getLogger("velocpy").addHandler(Told())
try:
    with velocpy.open(host="4MiB") as store:
        for name in ("first", "second"):
            store.history(name).checkpoint("k", [np.zeros(10)])
            store.history(name)._core.corrupt("k", NOWHERE, 8)
        raise KeyboardInterrupt
except KeyboardInterrupt:                           # not replaced
    pass
assert store.closed and len(Told.texts) == 3, Told.texts
assert all(any(name in text for text in Told.texts) for name in ("first", "second")), Told.texts
store.close()                                       # nothing is told twice
"""
        + "print('all')",
        env=HOOKS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all\n"


FULL = """
import errno, resource, sys
import numpy as np
import velocpy
"""


def test_disk_that_refuses_to_grow(run_python: RunPython) -> None:
    """A limit on the size of files: refused at the opening, or on the calls concerned; never a hang or a loss."""
    done = run_python(
        FULL
        + """
resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, resource.RLIM_INFINITY))
try:
    store = velocpy.open(host="4MiB", disk="64MiB")
except velocpy.errors.TierIOError as error:
    assert error.errno == errno.EFBIG and error.tier == "disk", vars(error)
    print("refused")
    sys.exit()
history = store.history("h")
written, failed = [], 0
for i in range(100):
    try:
        history.checkpoint(i, u=np.full(300_000, i, np.uint8))
        written.append(i)
    except (velocpy.errors.TierIOError, velocpy.errors.TierFull) as error:
        failed += 1
assert failed
for i in written:
    assert history.restore(i)["u"][7] == i
try:
    history.wait("disk", timeout=30)
except (velocpy.errors.TierIOError, velocpy.errors.DurabilityLost, velocpy.errors.TierFull) as error:
    print("told")
store.close()
""",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("refused", "told")


def test_budgets_are_hard(run_python: RunPython) -> None:
    """Both tiers full: an error on the call, and everything written before is still there."""
    done = run_python(
        FULL
        + """
store = velocpy.open(host="2MiB", disk="4MiB")
history = store.history("h")
written = []
for i in range(40):
    try:
        history.checkpoint(i, u=np.full(300_000, i, np.uint8))
        written.append(i)
    except velocpy.errors.TierFull as error:
        assert error.key == i
for tier in store.stats()["tiers"].values():
    assert tier["high_water"] <= tier["capacity"]
assert 15 <= len(written) < 40, written
u = np.zeros(300_000, np.uint8)
for i in written:                            # into arrays: a lease would need room in the host tier
    history.restore(i, into={"u": u})
    assert (u == i).all()
for i in written[:4]:
    history.drop(i)
history.checkpoint(99, u=np.full(300_000, 99, np.uint8))
assert (history.restore(99)["u"] == 99).all()
store.close()
""",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_unwritable_directory(tmp_path) -> None:
    import velocpy

    with pytest.raises(velocpy.errors.VelocError):
        velocpy.open("/proc/1/nothing", host="1MiB", disk="1MiB")
    with pytest.raises(velocpy.errors.VelocError):
        velocpy.open("/proc/self", host="1MiB", disk="1MiB")
