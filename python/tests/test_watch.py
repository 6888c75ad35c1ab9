"""Live views: what they show, who sees a published store, and that no thread and no name is left."""

from __future__ import annotations

import gc
import io
import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import RunPython
from test_html import EVIL, TAGS, Page

import velocpy
from velocpy import knobs
from velocpy.cli import main
from velocpy.live import channel
from velocpy.live.change import Change, change
from velocpy.live.channel import published
from velocpy.live.page import page
from velocpy.live.sample import from_json, sample_of, to_json
from velocpy.live.watch import TerminalSurface, Watch

#: Opens a store, says so, and works until standard input is closed.
WORKER = """
import sys, threading, numpy as np, velocpy
with velocpy.open(*sys.argv[1:], host="1MiB", disk="64MiB") as store:
    history = store.history("forward")
    history.checkpoint(0, u=np.zeros(20_000))
    print("open", flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    step = 0
    while not ended.wait(0.001):
        step += 1
        history.checkpoint(step % 50, u=np.zeros(20_000))
        history.restore(step * 7 % min(step, 50)).release()
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[velocpy.Store]:
    with velocpy.open(tmp_path / "store", host="1MiB", disk="64MiB") as opened:
        yield opened


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process at work, in the directory "work"."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(tmp_path / "work")],
        env={**os.environ, "VELOCPY_WATCH": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def mine() -> list[channel.Published]:
    return [process for process in published() if process.pid == os.getpid()]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("velocpy-")]


def until(holds: Callable[[], Any], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def forget(stores: list[velocpy.Store]) -> None:
    """Lets go of a store, which a thread that looks at it may hold for a moment longer."""
    stores.clear()
    for _ in range(10):
        gc.collect()
        time.sleep(0.01)


# --- what is shown ----------------------------------------------------------------------------------------------------


def sweep(store: velocpy.Store, steps: int = 30) -> None:
    history = store.history("forward")
    for n in range(steps):
        history.checkpoint(n, u=np.zeros(20_000))
    for n in reversed(range(steps)):
        history.restore(n).release()


def test_rates_are_differences(store: velocpy.Store) -> None:
    first = sample_of(store)
    alone = change(None, first)
    assert (alone.seconds, alone.captured, alone.tiers[0].written, alone.restores) == (None, None, None, None)
    assert alone.waits == ()
    sweep(store)
    store.wait("disk")
    second = sample_of(store)
    both = change(first, second)
    assert both.seconds == second.at - first.at
    assert both.captured == second.stats["bytes"]["captured"] / both.seconds
    assert (both.restores, both.now.checkpoints, both.now.histories) == (30, 30, 1)
    disk = next(tier for tier in both.tiers if tier.name == "disk")
    assert disk.written == disk.now["written_bytes"] / both.seconds > 0
    waits = {wait.name: wait for wait in both.waits}
    for name, wait in waits.items():
        assert wait.seconds == second.stats["waits_ns"][name] / 1e9  # type: ignore[literal-required]
        assert wait.share == pytest.approx(wait.seconds / both.seconds)
    assert waits["capture"].cause == "flush"
    assert waits["restore"].cause is None
    quiet = change(second, sample_of(store))
    assert (quiet.captured, quiet.restores, quiet.hits) == (0, 0, 0)
    assert all(wait.share == 0 for wait in quiet.waits)


def test_counters_that_begin_anew_have_no_rates(store: velocpy.Store) -> None:
    sweep(store, 3)
    store.wait("disk")
    with velocpy.open(store.path, host="1MiB", mode="r") as reader:
        reader.history("forward").restore(0).release()
        before = sample_of(reader)
        reader.refresh()
        assert change(before, sample_of(reader)).captured is None


def test_a_sample_survives_json(store: velocpy.Store) -> None:
    for name in ("forward", "größe", "\udc80"):
        store.history(name).checkpoint(0, u=np.zeros(3))
    sample = sample_of(store)
    assert from_json(json.loads(json.dumps(to_json(sample)))) == sample
    assert len(sample.most) == sample.histories == 3
    with pytest.raises(KeyError):
        from_json({})


def test_a_page_is_well_formed(tmp_path: Path) -> None:
    path = tmp_path / "<script>&"
    with velocpy.open(path, host="1MiB", disk="64MiB") as store:
        before = sample_of(store)
        sweep(store)
        for name in EVIL:
            store.history(name).checkpoint(0, u=np.zeros(3))
        for shown in (change(None, before), change(before, sample_of(store))):
            for ended in ("", "stopped"):
                text = page(shown, ended)
                parsed = Page(text)
                assert parsed.tags <= TAGS
                assert parsed.names <= {"style", "title"}
                assert f"Store in {path}" in parsed.text
                assert ("(stopped)" in parsed.text) == bool(ended)
        for words in ("prefetch distance", "for room", "host", "disk", "B/s", "found in the fastest tier"):
            assert words in parsed.text


# --- other processes --------------------------------------------------------------------------------------------------


def test_nothing_is_published_unasked(store: velocpy.Store) -> None:
    sweep(store)
    assert mine() == []
    assert threads() == []


def test_a_store_is_published_until_it_is_closed(store: velocpy.Store, tmp_path: Path) -> None:
    store.publish()
    store.publish()
    with velocpy.open(host="1MiB") as other:
        other.publish()
        (process,) = mine()
        assert [sample.number for sample in process.stores] == [store._turn, other._turn]
        assert process.stores[0].path == str(tmp_path / "store")
        assert process.stores[1].path is None
        assert process.command == " ".join(sys.orig_argv)[:200]
        assert threads() == ["velocpy-figures"]
    assert [sample.number for sample in mine()[0].stores] == [store._turn]
    store.close()
    assert mine() == []
    assert threads() == []
    with pytest.raises(velocpy.errors.StoreClosed):
        store.publish()


def test_a_store_that_is_forgotten_ends_its_thread() -> None:
    stores = [velocpy.open(host="1MiB")]
    stores[0].publish()
    with pytest.warns(ResourceWarning, match="unclosed"):
        forget(stores)
    until(lambda: threads() == [])
    with velocpy.open(host="1MiB") as again:
        again.publish()
        assert len(mine()) == 1


def test_the_knob_publishes_every_store() -> None:
    with knobs.override(watch=1), velocpy.open(host="1MiB"):
        assert len(mine()) == 1
    with knobs.override(watch=0), velocpy.open(host="1MiB"):
        assert mine() == []


def test_a_store_opens_where_nothing_can_be_published(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise OSError("no sockets here")

    monkeypatch.setattr(channel, "_listening", refuse)
    with knobs.override(watch=1), velocpy.open(host="1MiB") as store:
        assert "is not published, as VELOCPY_WATCH asks: no sockets here" in caplog.text
        with pytest.raises(OSError, match="no sockets"):
            store.publish()
    assert threads() == []


def test_stores_come_and_go_while_others_look(store: velocpy.Store) -> None:
    """Publishing and closing race with each other and with readers; in the end nothing is left."""
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            mine()

    def work() -> None:
        for _ in range(15):
            with velocpy.open(host="1MiB") as opened:
                opened.publish()

    workers = [threading.Thread(target=work) for _ in range(3)]
    looker = threading.Thread(target=look)
    for thread in (*workers, looker):
        thread.start()
    for thread in workers:
        thread.join()
    ended.set()
    looker.join()
    until(lambda: threads() == [])
    assert mine() == []


def test_a_reader_that_does_not_read_stops_nobody_else(store: velocpy.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "PATIENCE", 0.2)
    for n in range(400):
        store.history(f"{n:0400}").checkpoint(0, u=np.zeros(1))
    store.publish()
    (name,) = channel._names()
    with socket.socket(socket.AF_UNIX) as idle:
        idle.connect(f"\0{name}")
        monkeypatch.setattr(channel, "PATIENCE", 5)
        assert len(mine()) == 1


@pytest.mark.parametrize("answer", [b"", b"{", b"[]", b'{"velocpy": 1}', b"\xff", b"null"])
def test_what_is_no_answer_is_left_out(answer: bytes) -> None:
    """Anyone may take a name."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0velocpy-figures-{os.getpid()}-test")
        listening.listen(1)

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert mine() == []
        thread.join()


def test_another_version_is_told(store: velocpy.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.publish()
    monkeypatch.setattr(channel, "__version__", "999")
    real = channel._whole
    monkeypatch.setattr(channel, "_whole", lambda connection: real(connection).replace(b'"999"', b'"998"'))
    (process,) = mine()
    assert (process.stores, process.other_version) == ((), "998")
    result = CliRunner().invoke(main, ["top", "--count", "1"])
    assert result.exit_code == 10
    assert "runs velocpy 998: use that one" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_other_users_get_no_answer(store: velocpy.Store, run_python: RunPython) -> None:
    """Root asks as another user: it connects, and gets not one byte."""
    store.publish()
    (name,) = channel._names()
    code = """
        import os, socket, sys
        os.setuid(65534)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect("\\0" + sys.argv[1])
            print(connection.recv(10))
        """
    done = run_python(code, name)
    assert done.stdout == "b''\n", done.stderr
    assert len(mine()) == 1


def test_a_child_of_fork_does_not_listen(run_python: RunPython) -> None:
    """The parent's name goes with the parent, although a child has copies of its descriptors."""
    done = run_python(
        """
        import os, signal, sys, time, velocpy
        from velocpy.live import channel
        store = velocpy.open(host="1MiB")
        store.publish()
        (name,) = channel._names()
        child = os.fork()
        if child == 0:
            assert channel.publisher._socket is None
            parent = os.getppid()
            while os.getppid() == parent:
                time.sleep(0.01)
            print(list(channel._names()))
            os._exit(0)
        store.close()
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    assert done.stdout == "[]\n", done.stderr


def test_a_killed_process_leaves_no_name(worker: subprocess.Popen[str]) -> None:
    assert worker.pid in [process.pid for process in published()]
    worker.kill()
    worker.wait()
    assert worker.pid not in [process.pid for process in published()]
    assert not any(str(worker.pid) in name for name in channel._names())


# --- velocpy top ------------------------------------------------------------------------------------------------------


def top(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["top", "--interval", "0.2", *arguments])


def test_top_finds_a_store_by_process_and_by_path(worker: subprocess.Popen[str], tmp_path: Path) -> None:
    for which in ([], [str(worker.pid)], [str(tmp_path / "work")], [str(tmp_path / "." / "work" / "..") + "/work"]):
        result = top(*which, "--count", "2", "--json")
        assert result.exit_code == 0, result.output
        messages = [json.loads(line) for line in result.stdout.splitlines()]
        ours = [message for message in messages if message["pid"] == worker.pid]
        assert len(ours) == 2
        for message in ours:
            assert message["message_type"] == "store"
            assert message["path"] == str(tmp_path / "work")
            assert message["captured_bytes_per_s"] > 0
            assert message["tiers"]["host"]["capacity"] == 1 << 20
            assert message["restores"] >= message["hits"] > 0
            assert message["seconds"] == pytest.approx(0.2, rel=2)
    for which in ("1", str(tmp_path), str(tmp_path / "none")):
        result = top(which)
        assert result.exit_code == 10
        assert "VELOCPY_WATCH=1" in result.stderr


def test_top_in_a_pipe_has_a_block_for_each_look(worker: subprocess.Popen[str]) -> None:
    result = top(str(worker.pid), "--count", "2")
    assert result.exit_code == 0, result.output
    assert result.stdout.count(f"process {worker.pid}") == 2
    for words in ("host", "disk", "captured", "MB/s", "prefetch distance", "found in the fastest tier", "█"):
        assert words in result.stdout
    assert "\x1b" not in result.stdout


def test_top_ends_with_the_store(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    ending = threading.Timer(0.5, worker.stdin.close)
    ending.start()
    result = top(str(worker.pid), "--json")
    ending.join()
    assert result.exit_code == 0
    assert result.stdout


def in_terminal(*command: str, end: Callable[[bytes], bool]) -> tuple[int, str]:
    """Runs a command in a terminal, presses Ctrl-C when ``end`` says so, and gives its exit code and all it wrote."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ["COLUMNS"] = "120"
        os.execv(command[0], command)
    written, pressed, deadline = b"", False, time.monotonic() + 60
    try:
        while True:
            assert time.monotonic() < deadline, written
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    part = os.read(terminal, 1 << 16)
                except OSError:  # the other side is closed
                    part = b""
                if not part:
                    break
                written += part
            if not pressed and end(written):
                os.write(terminal, b"\x03")
                pressed = True
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), written.decode()
    finally:
        os.close(terminal)


def test_top_in_a_terminal(worker: subprocess.Popen[str]) -> None:
    code, written = in_terminal(
        sys.executable, "-m", "velocpy", "top", str(worker.pid), "--interval", "0.1",
        end=lambda written: written.count(b"prefetch distance") >= 3,
    )  # fmt: skip
    assert code == 0, written
    assert "\x1b[" in written
    assert "Traceback" not in written


def test_top_without_rich(run_python: RunPython) -> None:
    done = run_python(
        """
        import sys
        sys.modules["rich"] = sys.modules["rich.console"] = None
        from velocpy.cli import main
        main(["top"])
        """
    )
    assert done.returncode == 1
    assert done.stderr == (
        "velocpy: velocpy top needs rich, which is not installed: pip install rich, or give --json\n"
    )


# --- Store.watch ------------------------------------------------------------------------------------------------------


class Recorder:
    """A surface that keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[Change, str]] = []
        self.closed = 0

    def show(self, shown: Change, ended: str) -> None:
        self.shown.append((shown, ended))

    def close(self) -> None:
        self.closed += 1


def test_a_view_is_renewed_and_stops(store: velocpy.Store) -> None:
    surface = Recorder()
    watch = Watch(store, 0.01, surface)
    assert len(surface.shown) >= 1, "the first view is there when the call returns"
    sweep(store)
    until(lambda: surface.shown[-1][0].now.stats["restores"]["count"] == 30)
    assert watch.running
    assert "running" in repr(watch)
    watch.stop()
    watch.stop()
    assert not watch.running
    assert surface.shown[-1][1] == "stopped"
    assert surface.closed == 1
    assert any(shown.captured for shown, _ in surface.shown)
    assert threads() == []


def test_a_view_ends_with_its_store(monkeypatch: pytest.MonkeyPatch) -> None:
    surfaces = [Recorder(), Recorder()]
    waiting = iter(surfaces)
    monkeypatch.setattr("velocpy.live.watch.surface", lambda: next(waiting))
    with velocpy.open(host="1MiB") as store:
        store.watch(interval=30)
        with store.watch(interval=30):
            assert len(threads()) == 2
        assert len(threads()) == 1
    assert threads() == []
    assert [surface.shown[-1][1] for surface in surfaces] == ["closed", "stopped"]
    with pytest.raises(velocpy.errors.StoreClosed):
        store.watch()


def test_a_view_ends_with_a_store_that_does_not_close_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("velocpy.live.watch.surface", Recorder)
    store = velocpy.open(host="1MiB")
    store.publish()
    watch = store.watch()
    close = store._close_core

    def fail(timeout: float | None) -> None:
        close(timeout)
        raise velocpy.errors.TierIOError("the disk is broken")

    monkeypatch.setattr(store, "_close_core", fail)
    with pytest.raises(velocpy.errors.TierIOError, match="broken"):
        store.close()
    assert not watch.running
    assert threads() == []
    monkeypatch.undo()


def test_a_view_holds_no_store() -> None:
    surface = Recorder()
    stores = [velocpy.open(host="1MiB")]
    watch = Watch(stores[0], 0.01, surface)
    with pytest.warns(ResourceWarning, match="unclosed"):
        forget(stores)
    until(lambda: not watch.running)
    assert surface.shown[-1][1] == "closed"


def test_a_surface_that_fails_ends_the_view_alone(store: velocpy.Store, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Recorder):
        def show(self, shown: Change, ended: str) -> None:
            super().show(shown, ended)
            if len(self.shown) > 1:
                raise BrokenPipeError("no terminal any more")

    watch = Watch(store, 0.01, Broken())
    until(lambda: not watch.running)
    assert "a live view has ended: no terminal any more" in caplog.text
    sweep(store)
    watch.stop()


def test_there_must_be_something_to_show_it_in(store: velocpy.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(velocpy.errors.InvalidArgument, match="velocpy top"):
        store.watch()
    for interval in (0, -1, 0.001, float("nan"), float("inf")):
        with pytest.raises(velocpy.errors.InvalidArgument, match="interval"):
            store.watch(interval)
    with pytest.raises(velocpy.errors.InvalidType):
        store.watch("1")  # type: ignore[arg-type]


def test_watch_in_a_terminal() -> None:
    """Rich shows it below what the program prints; without rich one sentence says what is missing."""
    program = textwrap.dedent(
        """
        import sys, time, numpy as np, velocpy
        with velocpy.open(host="1MiB") as store:
            with store.watch(interval=0.02):
                for n in range(30):
                    store.history("h").checkpoint(n % 3, u=np.zeros(1000))
                    print("printed", n, flush=True)
                    time.sleep(0.01)
        sys.modules["rich.live"] = None
        with velocpy.open(host="1MiB") as store:
            try:
                store.watch()
            except ImportError as error:
                print(error)
        """
    )
    code, written = in_terminal(sys.executable, "-c", program, end=lambda written: False)
    assert code == 0, written
    assert len(re.findall(r"printed \d+\r\n", written)) == 30
    assert written.count("captured") > 3
    assert "(stopped)" in written
    assert "Store.watch in a terminal needs rich, which is not installed: pip install rich" in written


def printed(cell: Any) -> str:
    """What a cell wrote to standard output: the kernel sends a line and its end in two messages now and then."""
    assert all((output.output_type, output.name) == ("stream", "stdout") for output in cell.outputs), cell.outputs
    return "".join(output.text for output in cell.outputs)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_watch_in_a_notebook(tmp_path: Path) -> None:
    """The output of one cell is renewed while later ones run, and tells the end."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "import time, threading, numpy as np, velocpy\nstore = velocpy.open(host='1MiB', disk='64MiB')",
        "live = store.watch(interval=0.02)",
        "for n in range(60):\n    store.history('forward').checkpoint(n, u=np.zeros(20_000))\ntime.sleep(0.2)",
        "print([t.name for t in threading.enumerate() if t.name.startswith('velocpy-')])\nstore.close()",
        "print([t.name for t in threading.enumerate() if t.name.startswith('velocpy-')], live.running)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    (shown,) = notebook.cells[1].outputs
    text = Page(shown["data"]["text/html"]).text
    assert "60 checkpoints in 1 history (closed)" in text
    assert "for room, mostly flush" in text
    assert notebook.cells[2].outputs == []
    assert printed(notebook.cells[3]) == "['velocpy-watch']\n"
    assert printed(notebook.cells[4]) == "[] False\n"


def test_nothing_of_it_is_imported_unasked(run_python: RunPython) -> None:
    done = run_python(
        """
        import sys, velocpy
        with velocpy.open(host="1MiB") as store:
            store.stats()
        unasked = ("velocpy.live", "velocpy.metrics", "rich", "IPython")
        assert not [name for name in sys.modules if name.startswith(unasked)]
        """
    )
    assert done.returncode == 0, done.stderr


def test_what_the_application_prints_into_a_file_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view in a terminal puts what is printed above itself, and only if that goes to a terminal too."""
    pytest.importorskip("rich")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    surface = TerminalSurface()
    assert not surface._live._redirect_stdout
