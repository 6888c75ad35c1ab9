"""Readers that see what a writer has written since they were opened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bits import bits
from hypothesis import given, settings
from hypothesis import strategies as st

import velocpy


def filled(value: int) -> dict[str, Any]:
    return {"u": np.full(1000, value)}


def refreshed(reader: velocpy.Store, history: str, keys: set[Any]) -> None:
    """Refreshes until the history has these keys: a drop becomes durable a moment after the call."""
    deadline = time.monotonic() + 20
    while True:
        reader.refresh()
        if set(reader.history(history)) == keys:
            return
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_has_come_changed_and_gone(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, host="4MiB", disk="64MiB") as writer:
        run = writer.history("run")
        for key in range(3):
            run.checkpoint(key, filled(key))
        writer.wait("disk")
        with velocpy.open(tmp_path, mode="r", host="4MiB") as reader:
            seen = reader.history("run")
            held = seen.restore(0)
            run.drop(0)
            run.checkpoint(1, filled(-1))
            run.checkpoint(3, filled(3), meta={"loss": 0.5})
            writer.history("other").checkpoint("x", filled(9))
            writer.wait("disk")
            assert list(seen) == [0, 1, 2]
            refreshed(reader, "run", {1, 2, 3})
            assert list(seen) == [2, 1, 3]
            assert reader.history("run") is seen
            assert {history.name for history in reader.histories} == {"run", "other"}
            assert {key: int(seen.restore(key)["u"][0]) for key in seen} == {2: 2, 1: -1, 3: 3}
            assert seen.meta(3) == {"loss": 0.5}
            with pytest.raises(velocpy.errors.CheckpointNotFound):
                seen.restore(0)
            assert (held["u"] == 0).all()
            held.release()
        assert (seen.store.closed, reader.closed) == (True, True)


def test_plans_are_given_again_and_loops_end_as_they_began(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, host="4MiB", disk="64MiB") as writer:
        for key in range(4):
            writer.history("run").checkpoint(key, filled(key))
        writer.wait("disk")
        with velocpy.open(tmp_path, mode="r", host="1MiB") as reader:
            seen = reader.history("run")
            seen.hint(reversed(range(4)))
            loop = seen.restore_iter()
            assert next(loop)[0] == 3
            writer.history("run").drop(1)
            writer.history("run").checkpoint(4, filled(4))
            writer.wait("disk")
            reader.refresh()
            assert list(seen.restore_iter()) == []
            seen.hint([4, 0])
            assert [(key, int(state["u"][0])) for key, state in seen.restore_iter()] == [(4, 4), (0, 0)]
            key, state = next(loop)
            assert (key, int(state["u"][0])) == (2, 2)


def test_the_former_view_ends_with_its_last_lease(tmp_path: Path) -> None:
    """No memory, no descriptor and no thread is left of views that nothing uses."""
    with velocpy.open(tmp_path, host="4MiB", disk="64MiB") as writer:
        writer.history("run").checkpoint(0, filled(0)).wait("disk")
        with velocpy.open(tmp_path, mode="r", host="4MiB") as reader:
            seen = reader.history("run")

            def turn() -> int:
                assert seen.restore(0)["u"][0] == 0
                reader.refresh()
                return len(list(Path("/proc/self/fd").iterdir()))

            least = [turn() for _ in range(10)][-1]
            assert max(turn() for _ in range(50)) <= least + 8


def test_others_go_on_meanwhile(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, host="4MiB", disk="64MiB") as writer:
        for key in range(50):
            writer.history("run").checkpoint(key, filled(key))
        writer.wait("disk")
        with velocpy.open(tmp_path, mode="r", host="1MiB") as reader:
            seen, wrong, ended = reader.history("run"), [], threading.Event()

            def restore() -> None:
                try:
                    while not ended.is_set():
                        for key in range(50):
                            with seen.restore(key, timeout=20) as state:
                                assert (state["u"] == key).all()
                except BaseException as error:
                    wrong.append(error)

            threads = [threading.Thread(target=restore) for _ in range(3)]
            for thread in threads:
                thread.start()
            for key in range(50, 80):
                writer.history("run").checkpoint(key, filled(key)).wait("disk")
                reader.refresh()
                assert key in seen
            ended.set()
            for thread in threads:
                thread.join(30)
            assert not wrong


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["write", "drop", "refresh"]), st.integers(0, 5)), max_size=30))
def test_a_reader_shows_the_writer_of_its_last_refresh(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    with velocpy.open(tmp_path_factory.mktemp("store"), host="1MiB", disk="64MiB") as writer:
        run = writer.history("run")
        with velocpy.open(writer.path, mode="r", host="1MiB") as reader:
            seen = reader.history("run")
            model: dict[int, int] = {}
            for value, (what, key) in enumerate(steps):
                if what == "write":
                    run.checkpoint(key, filled(value))
                    model[key] = value
                elif what == "drop":
                    run.drop(key)
                    model.pop(key, None)
                else:
                    writer.wait("disk")
                    refreshed(reader, "run", set(model))
                    assert {each: int(seen.restore(each)["u"][0]) for each in seen} == model
                    for each, number in model.items():
                        assert bits(seen.restore(each)["u"]) == bits(filled(number)["u"])


def test_what_cannot_be_refreshed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with velocpy.open(path, host="1MiB", disk="8MiB") as writer:
        writer.history("run").checkpoint(0, filled(0))
        with pytest.raises(velocpy.errors.InvalidArgument, match="mode='r'"):
            writer.refresh()
    with pytest.raises(velocpy.errors.StoreClosed):
        writer.refresh()
    with velocpy.open(path, mode="r", host="1MiB") as reader:
        path.rename(tmp_path / "moved")
        with pytest.raises(velocpy.errors.InvalidArgument, match=r"not .* any more"):
            reader.refresh()
        assert (reader.history("run").restore(0)["u"] == 0).all()


def test_a_refresh_that_fails_leaves_the_former_view(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, host="1MiB", disk="8MiB") as writer:
        writer.history("run").checkpoint(0, filled(0))
    with velocpy.open(tmp_path, mode="r", host="1MiB") as reader:
        seen = reader.history("run")
        seen.restore(0).release()
        hidden = [file for file in tmp_path.iterdir() if file.name.startswith("velocpy")]
        assert hidden
        for file in hidden:
            file.rename(file.with_name(f"{file.name}.away"))
        with pytest.raises((velocpy.errors.NotAStore, velocpy.errors.DamagedStore)):
            reader.refresh()
        for file in hidden:
            file.with_name(f"{file.name}.away").rename(file)
        assert (seen.restore(0)["u"] == 0).all()
        reader.refresh()
        assert list(seen) == [0]


def test_a_writer_in_another_process(tmp_path: Path, run_python: Callable[..., Any]) -> None:
    code = f"""
        import numpy, velocpy
        with velocpy.open({str(tmp_path)!r}, host="1MiB", disk="8MiB") as store:
            run = store.history("run")
            last = run.latest()
            run.checkpoint(0 if last is None else last + 1, u=numpy.zeros(3))
        """
    assert run_python(code).returncode == 0
    with velocpy.open(tmp_path, mode="r", host="1MiB") as reader:
        seen = reader.history("run")
        for count in (2, 3):
            assert run_python(code).returncode == 0
            reader.refresh()
            assert list(seen) == list(range(count))
