"""The rest of the public surface: what it shows, counts and logs, and what it costs."""

from __future__ import annotations

import copy
import gc
import logging
import pickle
import re
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import RunPython

import velocpy
from velocpy import budget, cgroups, knobs, paths
from velocpy.store import _log
from velocpy.trial import filesystem, system


@pytest.fixture
def store() -> Iterator[velocpy.Store]:
    with velocpy.open(host="4MiB", disk="32MiB", timeline=10_000) as opened:
        yield opened


def sweep(store: velocpy.Store) -> velocpy.History:
    history = store.history("h")
    for i in range(60):
        history.checkpoint(i, u=np.full(200_000, i, np.uint8))
    for i in reversed(range(60)):
        assert history.restore(i)["u"][0] == i
    return history


def test_stats(store: velocpy.Store) -> None:
    sweep(store)
    stats = store.stats()
    assert set(stats["tiers"]) == {"host", "disk"}
    assert stats["tiers"]["host"]["capacity"] == 4 << 20
    assert stats["tiers"]["host"]["pinned_bytes"] == 0
    assert stats["captures"] == 60
    assert stats["restores"]["count"] == 60
    assert stats["bytes"]["captured"] >= 60 * 200_000
    assert stats["histories"]["h"]["checkpoints"] == 60


def test_costs(store: velocpy.Store) -> None:
    assert store.costs()["host"]["write"] is None
    sweep(store)
    costs = store.costs()
    assert list(costs) == ["host", "disk"]
    assert costs["disk"]["capacity"] == 32 << 20
    assert all(rate is None or rate > 0 for tier in costs.values() for rate in tier.values())
    assert costs["host"]["write"]
    assert costs["disk"]["write"]
    assert costs["disk"]["read"]


def test_timeline(store: velocpy.Store) -> None:
    sweep(store)
    events = store.timeline(clear=True)
    assert {event["what"] for event in events} >= {"capture", "flush", "load", "restore"}
    assert sum(event["what"] == "restore" for event in events) == 60
    times = [event["t_ns"] for event in events if event["what"] == "capture"]
    assert times == sorted(times)
    assert len(store.timeline()) < len(events)


def test_size_ready_tiers(store: velocpy.Store) -> None:
    history = sweep(store)
    assert history.size(3) == 200_000
    for i in range(60):
        assert history.tiers(i)
        assert history.ready(i) == (history.tiers(i)[0] == "host")
    for call in (history.size, history.ready, history.tiers):
        with pytest.raises(velocpy.errors.CheckpointNotFound):
            call(1000)


def test_keys_in_order_of_writing(store: velocpy.Store) -> None:
    history = store.history("h")
    for key in (3, "a", -1, 3):
        history.checkpoint(key, u=np.zeros(1))
    assert list(history) == ["a", -1, 3]
    assert len(history) == 3
    assert history
    history.clear()
    assert list(history) == []
    assert history


def test_level_of_a_schedule(store: velocpy.Store) -> None:
    history = store.history("h")
    ticket = history.checkpoint(0, u=np.zeros(100_000), tier="disk")
    ticket.wait("disk", timeout=20)
    assert history.tiers(0)[-1] == "disk"
    with pytest.raises(velocpy.errors.InvalidArgument):
        history.checkpoint(1, u=np.zeros(1), tier="tape")
    history.checkpoint(1, u=np.zeros(1), tier="host")
    assert (history.restore(0)["u"] == 0).all()


def test_short_representations(store: velocpy.Store) -> None:
    history = sweep(store)
    ticket = history.checkpoint("<script>", {"<b>": np.zeros(3)})
    lease = history.restore("<script>")
    plan, learned = velocpy.Plan(["<script>"] * 3), velocpy.Plan.learn()
    history.hint(plan)
    history.hint(learned)
    assert repr(plan) == "<Plan: 3 hints read, used up>"
    assert repr(learned) == "<LearnedPlan: 0 of 0 recorded restores done, 0 being recorded>"
    for shown in (store, history, ticket, lease, plan, learned):
        page = shown._repr_html_()
        assert len(page) < 5000
        assert "<script>" not in page
        assert "<b>" not in page
        assert page.count("<table>") == page.count("</table>")
        assert len(repr(shown)) < 200
    assert "… and 51 more" in history._repr_html_()
    assert "4.0 MiB" in store._repr_html_()


def test_log_records_reach_logging(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "velocpy")
    _log([b'{"level": 30, "message": "a %s of \\"text\\"", "time_ns": 1}'])
    assert caplog.records[-1].levelno == logging.WARNING
    assert caplog.records[-1].getMessage() == 'a %s of "text"'


def test_logger_is_quiet_by_default() -> None:
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("velocpy").handlers)


def test_knobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELOCPY_EXIT_TIMEOUT", "2.5")
    assert knobs.exit_timeout() == 2.5
    with knobs.override(exit_timeout=7, max_procs=3):
        assert knobs.exit_timeout() == 7
        assert knobs.max_procs() == 3
        with knobs.override(exit_timeout=None):
            assert knobs.exit_timeout() == 5
        assert knobs.exit_timeout() == 7
    assert knobs.exit_timeout() == 2.5
    for name, wrong in (("exit_timeout", "soon"), ("exit_timeout", "-1"), ("exit_timeout", "nan"), ("max_procs", "0")):
        with knobs.override(**{name: wrong}), pytest.raises(velocpy.errors.InvalidArgument):
            getattr(knobs, name)()
    with knobs.override(memory_limit="12 parsecs"), pytest.raises(velocpy.errors.InvalidBudget):
        knobs.memory_limit()
    with knobs.override(memory_limit="1GiB", gc_percent=50):
        assert (knobs.memory_limit(), knobs.gc_percent()) == (1 << 30, 50)


def test_names_that_people_import() -> None:
    assert set(velocpy.__all__) <= set(dir(velocpy))
    assert velocpy.__version__.count(".") == 2


@pytest.mark.alone
def test_calls_are_light(record_property) -> None:  # type: ignore[no-untyped-def]
    """Measured, printed, and bounded only against an accident: the bars of the project stand in the benchmarks."""
    with velocpy.open(host="64MiB") as store:
        history = store.history("h")
        ten = {f"r{i}": np.zeros(256, np.float32) for i in range(10)}
        for i in range(500):
            history.checkpoint(i % 5, ten)
        began = time.perf_counter()
        for i in range(3000):
            history.checkpoint(i % 5, ten)
        checkpoint = (time.perf_counter() - began) / 3000
        began = time.perf_counter()
        for i in range(3000):
            history.restore(i % 5)["r3"]
        restore = (time.perf_counter() - began) / 3000
    record_property("checkpoint_us", round(checkpoint * 1e6, 1))
    record_property("restore_us", round(restore * 1e6, 1))
    print(f"checkpoint of ten 1-KiB regions {checkpoint * 1e6:.1f} us, lease restore {restore * 1e6:.1f} us")
    assert checkpoint < 1e-3
    assert restore < 1e-3


def test_tiers_are_shown_from_the_fastest_down(store: velocpy.Store) -> None:
    page = store._repr_html_()
    assert page.index("<td>host</td>") < page.index("<td>disk</td>")


def test_a_disk_budget_beyond_the_free_space_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="velocpy"):
        velocpy.open(tmp_path, host="1MiB", disk="1MiB").close()
        assert not caplog.records
        velocpy.open(tmp_path, host="1MiB", disk=1 << 59).close()
    (warning,) = caplog.records
    assert "free" in warning.message


def test_a_host_budget_beyond_the_cgroups_limit_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    inner = tmp_path / "job" / "step"
    inner.mkdir(parents=True)
    (tmp_path / "job" / "memory.max").write_text(f"{64 << 20}\n")
    (inner / "memory.max").write_text("max\n")
    membership = tmp_path / "membership"
    membership.write_text("0::/job/step\n")
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "MEMBERSHIP", membership)
    with caplog.at_level(logging.WARNING, logger="velocpy"):
        velocpy.open(host="64MiB").close()
        velocpy.open(host="auto").close()
        assert not caplog.records
        velocpy.open(host="65MiB").close()
    (warning,) = caplog.records
    assert "65.0 MiB" in warning.message
    assert "64.0 MiB" in warning.message
    assert "cgroup" in warning.message


def test_a_host_budget_beyond_the_machine_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(budget, "machine_memory", lambda: 1 << 20)
    with caplog.at_level(logging.WARNING, logger="velocpy"):
        velocpy.open(host="2MiB").close()
    (warning,) = caplog.records
    assert "1.0 MiB" in warning.message
    assert "machine" in warning.message


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A directory on a tmpfs."""
    shm = Path("/dev/shm")
    if not shm.is_dir() or system.magic(shm) not in filesystem.MEMORY:
        pytest.skip("/dev/shm is no tmpfs here")
    with tempfile.TemporaryDirectory(dir=shm) as path:
        yield Path(path)


def test_a_disk_tier_that_lies_in_memory_is_told_once(
    in_memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(paths, "_told", set())
    with caplog.at_level(logging.WARNING, logger="velocpy"):
        velocpy.open(in_memory, host="1MiB", disk=None).close()  # nothing is written there
        if system.magic(tmp_path) not in filesystem.MEMORY:
            velocpy.open(tmp_path / "store", host="1MiB", disk="1MiB").close()
        assert not caplog.records
        monkeypatch.setattr(tempfile, "tempdir", str(in_memory))
        for _ in range(2):
            velocpy.open(host="1MiB", disk="1MiB").close()
    (warning,) = caplog.records
    assert str(in_memory) in warning.message
    assert "memory (tmpfs)" in warning.message
    assert "TMPDIR" in warning.message


def test_a_durable_store_in_memory_is_told_what_that_means(
    in_memory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(paths, "_told", set())
    with caplog.at_level(logging.WARNING, logger="velocpy"):
        velocpy.open(in_memory / "store", host="1MiB", disk="1MiB").close()
    (warning,) = caplog.records
    assert "restarts" in warning.message


def test_a_missing_key_is_told_with_those_that_there_are(store: velocpy.Store) -> None:
    history = store.history("h")
    with pytest.raises(velocpy.errors.CheckpointNotFound, match="It has none"):
        history.restore(7)
    for key in (5, "best", -1):
        history.checkpoint(key, u=np.zeros(1))
    back = np.zeros(1)
    calls = (
        lambda: history.restore(7),
        lambda: history.restore(7, "u"),
        lambda: history.restore(7, into={"u": back}),
        lambda: history.size(7),
        lambda: history.meta(7),
        lambda: history.drop(7, missing_ok=False),
        lambda: (history.hint([7]), next(iter(history.restore_iter()))),
        lambda: (history.hint([7]), next(iter(history.restore_iter(into={"u": back})))),
    )
    for call in calls:
        with pytest.raises(
            velocpy.errors.CheckpointNotFound, match=r"no checkpoint 7: .* It has 3: 5, 'best', -1\."
        ) as raised:
            call()
        assert (raised.value.history, raised.value.key) == ("h", 7)
        history.hint_clear()


def test_of_many_keys_some_are_told(store: velocpy.Store) -> None:
    history = store.history("h")
    for key in range(60):
        history.checkpoint(key, u=np.zeros(1))
    with pytest.raises(velocpy.errors.CheckpointNotFound, match=r"It has 60: 0, 1, 2, …, 57, 58, 59\."):
        history.restore(60)
    history.checkpoint("k" * 10_000, u=np.zeros(1))
    with pytest.raises(velocpy.errors.CheckpointNotFound) as raised:
        history.restore(60)
    assert len(str(raised.value)) < 1000
    for key in range(60, 1100):
        history.checkpoint(key, u=np.zeros(1))
    with pytest.raises(
        velocpy.errors.CheckpointNotFound, match=r"It has 1101\."
    ):  # to list them would take longer than a restore
        history.restore(-1)


def test_a_missing_region_is_told_with_those_that_there_are(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint(0, u=np.zeros(1), v=np.zeros(1))
    with history.restore(0) as lease, pytest.raises(velocpy.errors.RegionNotFound) as raised:
        lease["w"]
    error = raised.value
    assert isinstance(error, KeyError)
    assert (error.history, error.key, error.region) == ("h", 0, "w")
    assert "has no region 'w'" in str(error)
    assert "It has 2: 'u', 'v'." in str(error)
    with history.restore(0, "v") as lease, pytest.raises(velocpy.errors.RegionNotFound, match="It has 1: 'v'"):
        lease["u"]  # it was not asked for
    with history.restore(0) as lease:
        assert lease.get("w") is None
        assert "w" not in lease
    history.checkpoint(1, [np.zeros(1)] * 30)
    with (
        history.restore(1) as lease,
        pytest.raises(velocpy.errors.RegionNotFound, match=r"It has 30: 0, 1, 2, …, 27, 28, 29\."),
    ):
        lease[30]
    with history.restore(1) as lease, pytest.raises(IndexError):
        lease[10**40]
    with history.restore(1) as lease, pytest.raises(KeyError):
        lease["u"]


def test_the_latest_checkpoint(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "store", host="4MiB", disk="32MiB") as store:
        history = store.history("h")
        assert history.latest() is None
        for key in (3, 9, "best", 4):
            history.checkpoint(key, u=np.zeros(1))
        assert history.latest() == 4
        history.checkpoint(9, u=np.ones(1))
        assert history.latest() == 9
        history.drop(9)
        assert history.latest() == 4
    with velocpy.open(tmp_path / "store", host="4MiB", mode="r") as store:  # to go on where a run ended
        assert store.history("h").latest() == 4
        assert store.history("other").latest() is None
    with pytest.raises(velocpy.errors.StoreClosed):
        store.history("h").latest()


def forget(stores: list[velocpy.Store]) -> list[warnings.WarningMessage]:
    """Lets go of the first store, to which there is no other reference, and gives the warnings of that."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        stores.pop(0)
        gc.collect()
    return told


def opened(path: Path | None = None) -> velocpy.Store:
    store = velocpy.open(path, host="1MiB", disk="16MiB")
    store.history("h").checkpoint(0, u=np.zeros(3))  # a history refers to its store: only the cycle collector finds it
    return store


def test_a_forgotten_store_is_warned_of(tmp_path: Path) -> None:
    opened(tmp_path / "other").close()
    stores = [opened(), opened(tmp_path / "store"), velocpy.open(tmp_path / "other", host="1MiB", mode="r")]
    for what in ("its checkpoints are lost", "what was not durable yet is lost", "it was only read"):
        (warning,) = forget(stores)
        assert warning.category is ResourceWarning
        text = str(warning.message)
        assert "unclosed <Store host 1.0 MiB" in text
        assert "close()" in text
        assert what in text


def test_a_store_that_was_closed_is_not_warned_of(tmp_path: Path) -> None:
    stores = [opened(), opened(tmp_path / "store"), opened()]
    for store in stores[:2]:
        store.close()
    with stores[2]:
        pass
    while stores:
        assert forget(stores) == []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(velocpy.errors.InvalidArgument):
            velocpy.open(host="1MiB", tuning=velocpy.Tuning(policy="random"))
        with pytest.raises(velocpy.errors.StoreLocked), opened(tmp_path / "store"):
            velocpy.open(tmp_path / "store", host="1MiB", disk="16MiB")  # it never was one
        gc.collect()
    assert told == []


def test_the_end_of_python_forgets_no_store(run_python: RunPython) -> None:
    """It closes them; a child of fork warns of nothing that is its parent's."""
    done = run_python(
        """
        import gc, os, numpy, velocpy
        store = velocpy.open(host="1MiB")
        store.history("h").checkpoint(0, u=numpy.zeros(3))
        child = os.fork()
        if child == 0:
            del store
            gc.collect()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
        options=("-W", "always::ResourceWarning"),
    )
    assert done.returncode == 0
    assert "unclosed" not in done.stderr


def test_what_cannot_go_to_another_process_says_what_to_do_there(tmp_path):
    """A spawned worker gets its arguments pickled."""
    with velocpy.open(tmp_path / "store", host="1MiB", disk="1MiB") as store, velocpy.open(host="1MiB") as short:
        opened = re.escape(f"velocpy.open({str(tmp_path / 'store')!r}, mode='r')")
        history = store.history("h")
        ticket = history.checkpoint(0, u=np.arange(3))
        for thing, match in (
            (store, opened + " reads"),
            (history, opened + re.escape(".history('h')")),
            (ticket, opened),
            (short, "Send arrays"),
            (short.history("h"), "Send arrays"),
            (history.restore(0), "Send arrays"),
        ):
            with pytest.raises(velocpy.errors.InvalidType, match=match):
                pickle.dumps(thing)
            with pytest.raises(TypeError, match=type(thing).__name__):
                copy.deepcopy(thing)
            assert copy.copy(thing) is thing


def test_the_open_stores_of_a_process(tmp_path):
    with velocpy.open(host="1MiB") as one, velocpy.open(host="1MiB") as two:
        ours = [store for store in velocpy.stores() if store in (one, two)]
        assert ours == [one, two]
        assert one.path is None
        with velocpy.open(tmp_path / "store", host="1MiB", disk="1MiB") as three:
            assert three.path == tmp_path / "store"
            assert velocpy.stores()[-1] is three
        one.close()
        assert one not in velocpy.stores()
        assert two in velocpy.stores()


def test_sizes_in_messages_have_a_unit_and_the_bytes_that_decide() -> None:
    with velocpy.open(host="1MiB") as store, pytest.raises(velocpy.errors.TierFull) as full:
        store.history("h").checkpoint(0, u=np.zeros(1 << 20))
    assert "has 8.0 MiB (8388608 bytes), the largest budget is 1.0 MiB (1048576 bytes)" in str(full.value)
