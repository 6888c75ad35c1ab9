"""Errors that come later than the call that they are about tell the line of that call."""

from __future__ import annotations

import gc
import inspect
import re
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import RunPython

import velocpy
from velocpy import callers, errors
from velocpy.cli.terms import in_terms_of_commands


def line() -> int:
    """The line of the call of this function."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def place() -> callers.Place | None:
    """That of the caller."""
    return callers.place()


def forget(stores: list[velocpy.Store]) -> None:
    stores.clear()
    gc.collect()


def test_a_wait_for_a_ticket_tells_the_call_that_gave_it() -> None:
    with velocpy.open(host="1MiB", disk="16MiB") as store:
        history = store.history("h")
        ticket, where = history.checkpoint(0, u=np.zeros(3)), f"{__file__}:{line()}"
        many, all_of_them = history.checkpoint_many({n: {"u": np.zeros(3)} for n in (1, 2)}), f"{__file__}:{line()}"
        tree, nested = history.checkpoint(3, {"a": [np.zeros(3), {"b": np.zeros(3)}]}), f"{__file__}:{line()}"
        history.clear()
        for dropped, expected in ((ticket, where), *((each, all_of_them) for each in many), (tree, nested)):
            with pytest.raises(errors.CheckpointDropped) as raised:
                dropped.wait("disk")
            assert raised.value.called == expected
            assert str(raised.value).endswith(f" checkpoint() was called at {expected}.")


def test_lines_of_the_package_are_no_ones_call(tmp_path: Path) -> None:
    """The application calls a Checkpointer, and that calls checkpoint()."""
    with (
        velocpy.open(tmp_path / "store", host="1MiB", disk="16MiB") as store,
        velocpy.Checkpointer(store, random=False, generator=np.random.default_rng(0)) as kept,
    ):
        ticket, first = kept.save(0), line()
        store.history("training").clear()
        with pytest.raises(errors.CheckpointDropped) as raised:
            ticket.wait("disk")
        assert raised.value.called == f"{__file__}:{first}"


def full(store: velocpy.Store) -> int:
    """Captures more than the disk has room for; gives the line."""
    history = store.history("h")
    for n in range(6):
        history.checkpoint(n, u=np.random.default_rng(n).random(1 << 17))
        where = line() - 1
    return where


@pytest.mark.parametrize("way", ["store", "history", "close"])
def test_what_could_not_be_made_durable_tells_its_call(tmp_path: Path, way: str) -> None:
    """With debug: the first of the checkpoints that did not get there."""
    store = velocpy.open(tmp_path / "store", host="8MiB", disk="4MiB", debug=True)
    where = full(store)
    with pytest.raises(errors.TierFull) as raised:
        {"store": store.wait, "history": store.history("h").wait, "close": lambda tier: store.close()}[way]("disk")
    assert (raised.value.history, raised.value.key) == ("h", 4)
    assert raised.value.called == f"{__file__}:{where}"
    assert str(raised.value).endswith(f" checkpoint() of key 4 in history 'h' was called at {__file__}:{where}.")
    store.close(flush=False)


def test_without_debug_nothing_is_remembered(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "store", host="8MiB", disk="4MiB") as store:
        full(store)
        with pytest.raises(errors.TierFull) as raised:
            store.wait("disk")
        assert raised.value.called is None
        store.history("h").clear()


def test_a_damaged_checkpoint_tells_its_call(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with velocpy.open(path, host="1MiB", disk="64MiB", debug=True) as store:
        history = store.history("h")
        history.checkpoint(0, u=np.full(100_000, 7, np.uint8)).wait("disk")
        where = line() - 1
        for n in range(1, 20):
            history.checkpoint(n, u=np.zeros(100_000, np.uint8)).wait("disk")
        assert history.tiers(0) == ("disk",)
        for file in path.rglob("*"):
            data = file.read_bytes() if file.is_file() else b""
            if (place := data.find(b"\x07" * 1000)) >= 0:
                with file.open("r+b") as opened:
                    opened.seek(place)
                    opened.write(b"\x08")
        with pytest.raises(errors.CorruptCheckpoint) as raised:
            history.restore(0)["u"]
        assert raised.value.called == f"{__file__}:{where}"


def test_an_error_about_an_earlier_restore_tells_that_one() -> None:
    with velocpy.open(host="1MiB", debug=True) as store:
        history = store.history("h")
        history.checkpoint(0, u=np.zeros(3))
        history.restore(0).release()
        where = line() - 1
        error = errors.belated("h", 0, "u", 1, None)
        history._name_call(error)
        assert str(error).endswith(f" restore() was called at {__file__}:{where}.")
        other = errors.belated("other", 0, "u", 1, None)
        history._name_call(other)
        assert other.called is None


def test_a_store_that_is_forgotten_or_locked_tells_where_it_was_opened(tmp_path: Path) -> None:
    stores, where = [velocpy.open(tmp_path / "store", host="1MiB", disk="16MiB")], f"{__file__}:{line()}"
    with pytest.raises(errors.StoreLocked, match=re.escape(f"opened at {where}, which is in")):
        velocpy.open(tmp_path / "store", host="1MiB", disk="16MiB")
    with pytest.warns(ResourceWarning, match=re.escape(f"opened at {where}: nothing refers")):
        forget(stores)


def test_no_variables_are_held() -> None:
    """A ticket knows the line of its call, and not the frame."""

    class Local:
        pass

    def call(history: velocpy.History) -> tuple[velocpy.Ticket, weakref.ref[Local]]:
        local = Local()
        return history.checkpoint(0, u=np.zeros(3)), weakref.ref(local)

    with velocpy.open(host="1MiB", debug=True) as store:
        ticket, local = call(store.history("h"))
        assert ticket._place is not None
        assert local() is None


def test_calls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "_MOST", 10)
    calls = callers.Calls()
    for n in range(100):
        calls.captured(n % 30, place(), n)
        calls.restored(n, place())
    assert [key for key, _ in calls.captures()] == list(range(10))
    assert [capture.ticket for _, capture in calls.captures()] == list(range(90, 100))


def test_a_cell_of_a_notebook_has_its_number(run_python: RunPython) -> None:
    pytest.importorskip("IPython")
    done = run_python(
        """
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_cell("import velocpy, numpy as np\\nstore = velocpy.open(host='1MiB')", store_history=True)
        shell.run_cell("pass\\npass\\nticket = store.history('h').checkpoint(0, u=np.zeros(3))", store_history=True)
        try:
            shell.user_ns["store"].history("h").clear()
            shell.user_ns["ticket"].wait("disk")
        except shell.user_ns["velocpy"].errors.VelocError as error:
            print(error.called)
        shell.user_ns["store"].close()
        """
    )
    assert done.stdout == "Cell In[2], line 3\n", done.stderr


def test_commands_tell_no_line_of_their_own() -> None:
    error = errors.TierFull("no room.")
    callers.name_call(error, place())
    assert "was called at" in str(error)
    assert in_terms_of_commands(str(error)) == "no room."


def test_a_call_that_nothing_in_python_makes(run_python: RunPython) -> None:
    """The interpreter calls it at its end: a checkpoint that is captured does not raise, and nobody is named."""
    done = run_python(
        """
        import atexit, numpy, velocpy
        history = velocpy.open(host="1MiB").history("h")
        atexit.register(lambda: print(0 in history))
        atexit.register(history.checkpoint, 0, u=numpy.zeros(3))
        """
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
