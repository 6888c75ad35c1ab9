"""Files at velocpy://: as those of other file systems of fsspec, whole or not there, and shared by processes."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import velocpy
from velocpy import errors, node

fsspec = pytest.importorskip("fsspec")

import fsspec.tests.abstract as abstract  # noqa: E402
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

from velocpy.fs import VelocFileSystem, directory, part  # noqa: E402

OPTIONS: dict[str, Any] = {"host": "4MiB", "disk": "256MiB"}
RANK = Path(__file__).with_name("fs_rank.py")


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stores are closed, and no rank is set."""
    for name in node.RANKS:
        monkeypatch.delenv(name, raising=False)
    fsspec.register_implementation("velocpy", VelocFileSystem, clobber=True)
    yield
    VelocFileSystem.clear_instance_cache()
    directory._directories.clear()


@pytest.fixture
def fs() -> VelocFileSystem:
    return VelocFileSystem(**OPTIONS)


@pytest.fixture
def run(tmp_path: Path) -> str:
    return f"{tmp_path}/run.velocpy"


def again() -> VelocFileSystem:
    """A file system that knows nothing but what is on disk."""
    VelocFileSystem.clear_instance_cache()
    return VelocFileSystem(**OPTIONS)


# --- fsspec's own tests ---


class Fixtures(abstract.AbstractFixtures):  # type: ignore[misc]
    @pytest.fixture
    def fs(self) -> VelocFileSystem:
        return VelocFileSystem(**OPTIONS)

    @pytest.fixture
    def fs_path(self, tmp_path: Path) -> str:
        return f"{tmp_path}/abstract.velocpy"


class TestCopy(Fixtures, abstract.AbstractCopyTests):  # type: ignore[misc]
    pass


class TestGet(Fixtures, abstract.AbstractGetTests):  # type: ignore[misc]
    test_get_glob_edge_cases = None  # they ask for the same listings as those of TestCopy


class TestPut(Fixtures, abstract.AbstractPutTests):  # type: ignore[misc]
    test_put_glob_edge_cases = None  # they ask for the same listings as those of TestCopy


class TestOpen(Fixtures, abstract.AbstractOpenTests):  # type: ignore[misc]
    pass


class TestPipe(Fixtures, abstract.AbstractPipeTests):  # type: ignore[misc]
    pass


# --- compared with files in memory ---

NAMES = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map("/".join)
OPERATION = st.one_of(
    st.tuples(st.just("pipe"), NAMES, st.binary(max_size=20)),
    st.tuples(st.just("append"), NAMES, st.binary(max_size=20)),
    st.tuples(st.just("create"), NAMES, st.binary(max_size=20)),
    st.tuples(st.sampled_from(["mkdir", "makedirs", "rm", "rmtree", "rmdir", "reopen"]), NAMES, st.none()),
    st.tuples(st.sampled_from(["mv", "copy"]), NAMES, NAMES),
)


def apply(fs: Any, root: str, operation: tuple[str, str, Any]) -> None:
    action, name, more = operation
    path = f"{root}/{name}"
    if action in ("append", "create"):
        with fs.open(path, {"append": "ab", "create": "xb"}[action]) as file:
            file.write(more)
    elif action == "pipe":
        with fs.open(path, "wb") as file:
            file.write(more)
    elif action == "makedirs":
        fs.makedirs(path, exist_ok=True)
    elif action == "rmtree":
        fs.rm(path, recursive=True)
    elif action in ("mv", "copy"):
        getattr(fs, action)(path, f"{root}/{more}")
    elif action != "reopen":
        getattr(fs, action)(path)


def makes_sense(fs: Any, root: str, operation: tuple[str, str, Any]) -> bool:
    """Whether files in memory do as files on a disk do: they check little, and only in part."""
    action, name, more = operation
    target = more if action in ("mv", "copy") else name
    above = [target[:end] for end in range(len(target)) if target[end] == "/"]
    if action not in ("rm", "rmtree", "rmdir") and any(fs.isfile(f"{root}/{each}") for each in above):
        return False
    path = f"{root}/{name}"
    if action in ("pipe", "append", "create"):
        return not fs.isdir(path)
    if action in ("mv", "copy"):
        return fs.isfile(path) and not fs.isdir(f"{root}/{more}") and name != more
    if action in ("rmdir", "rmtree"):
        # A directory that its files imply is no directory to rmdir of files in memory.
        return action == "rmtree" or not fs.isfile(path)
    if action in ("mkdir", "makedirs"):
        return not fs.exists(path)
    return True


def attempt(fs: Any, root: str, operation: tuple[str, str, Any]) -> str:
    try:
        apply(fs, root, operation)
    except OSError as error:
        return type(error).__name__
    return ""


def content(fs: Any, root: str) -> dict[str, Any]:
    found = fs.find(root, withdirs=True, detail=True)
    return {
        name.removeprefix(root): fs.cat_file(name) if info["type"] == "file" else None
        for name, info in found.items()
        if name.removeprefix(root)
    }


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(operations=st.lists(OPERATION, max_size=12))
def test_operations_do_as_in_memory(tmp_path_factory: pytest.TempPathFactory, operations: list[Any]) -> None:
    fs = VelocFileSystem(**OPTIONS)
    run = f"{tmp_path_factory.mktemp('random')}/run.velocpy"
    memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    fs.makedirs(run)
    memory.makedirs("/root")
    for operation in operations:
        if not makes_sense(memory, "/root", operation):
            continue
        if operation[0] == "reopen":
            fs = again()
        ours, theirs = attempt(fs, run, operation), attempt(memory, "/root", operation)
        assert bool(ours) == bool(theirs), (operation, ours, theirs)
        assert content(fs, run) == content(memory, "/root"), operation
    assert content(again(), run) == content(memory, "/root")
    VelocFileSystem.clear_instance_cache()


# --- paths ---


def test_paths(fs: VelocFileSystem, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fs.pipe_file(f"velocpy://{run}/a//b/./c/", b"x")
    assert fs.find(run) == [f"{run}/a/b/c"]
    monkeypatch.chdir(Path(run).parent)
    assert fs.cat_file("velocpy://run.velocpy/a/b/c") == b"x"
    with fsspec.open(f"velocpy://{run}/a/b/c", **OPTIONS) as file:
        assert file.read() == b"x"
    for wrong in ("/tmp/x", f"{run}/../x", "/home/.velocpy/x"):
        with pytest.raises(errors.InvalidArgument, match="names no store"):
            fs.open(wrong)
    assert not fs.exists(f"{Path(run).parent}/other.velocpy")
    with pytest.raises(FileNotFoundError):
        fs.ls(f"{Path(run).parent}/other.velocpy")
    assert not Path(run).with_name("other.velocpy").exists()


def test_directories_of_others_are_refused(fs: VelocFileSystem, tmp_path: Path) -> None:
    (tmp_path / "photos.velocpy").mkdir()
    (tmp_path / "photos.velocpy" / "cat.png").touch()
    velocpy.open(tmp_path / "plain.velocpy", **OPTIONS).close()
    for name in ("photos", "plain"):
        with pytest.raises(errors.ForeignDirectory):
            fs.pipe_file(f"{tmp_path}/{name}.velocpy/x", b"")
    assert sorted(each.name for each in (tmp_path / "photos.velocpy").iterdir()) == ["cat.png"]


def test_options(fs: VelocFileSystem, run: str) -> None:
    fs.pipe_file(f"{run}/x", b"1")
    assert VelocFileSystem().cat_file(f"{run}/x") == b"1"
    with pytest.raises(errors.InvalidArgument, match=r"reduce is 'tree'.*open here with the usual one"):
        VelocFileSystem(reduce="tree").pipe_file(f"{run}/x", b"2")
    fs.close()
    VelocFileSystem(reduce="tree", **OPTIONS).pipe_file(f"{run}/x", b"2")
    assert fs.cat_file(f"{run}/x") == b"2"
    with pytest.raises(errors.InvalidType, match="durable"):
        VelocFileSystem(durable="no")
    assert pickle.loads(pickle.dumps(fs)).cat_file(f"{run}/x") == b"2"


def test_files_that_repeat_parts_of_others_are_stored_once(run: str) -> None:
    fs = VelocFileSystem(reduce="tree", **OPTIONS | {"host": "64MiB"})
    data = bytearray(np.random.default_rng(0).bytes(4 << 20))
    for step in range(4):
        data[step] ^= 1
        fs.pipe_file(f"{run}/step-{step}", bytes(data))
    (store,) = velocpy.stores()
    assert store.stats()["tiers"]["disk"]["written_bytes"] < 6 << 20
    VelocFileSystem.clear_instance_cache()
    fs = VelocFileSystem(reduce="tree", **OPTIONS)
    large = np.random.default_rng(1).bytes(24 << 20)
    fs.pipe_file(f"{run}/large", large)
    assert again().cat_file(f"{run}/step-3") == data
    assert fs.cat_file(f"{run}/large") == large


# --- files ---


def test_writing(fs: VelocFileSystem, run: str) -> None:
    path = f"{run}/x"
    with fs.open(path, "wb") as file:
        file.write(b"hello world")
        assert file.seek(6) == 6
        file.write(np.frombuffer(b"W", np.uint8))
        assert (file.tell(), file.size, file.writable(), file.readable()) == (7, 11, True, False)
        file.seek(13)
        file.write(b"!")
        file.truncate(15)
        assert not fs.exists(path)
    assert fs.cat_file(path) == b"hello World\0\0!\0"
    with pytest.raises(ValueError, match="closed"):
        file.write(b"")
    with pytest.raises(FileExistsError):
        fs.open(path, "xb")
    with fs.open(path, "ab") as file:
        file.write(b"more")
    assert again().cat_file(path) == b"hello World\0\0!\0more"
    with pytest.raises(errors.InvalidArgument, match="mode"):
        fs.open(path, "r+b")
    with fs.open(f"{run}/text", "w") as text:
        text.write("ä\n")
    assert fs.open(f"{run}/text", "r").read() == "ä\n"
    with pytest.raises(IsADirectoryError):
        fs.open(run, "wb")
    with pytest.raises(NotADirectoryError):
        fs.open(f"{path}/below", "wb")


def test_what_is_not_closed_leaves_the_old_file(fs: VelocFileSystem, run: str) -> None:
    path = f"{run}/x"
    fs.pipe_file(path, b"old")

    class Broken(Exception):
        pass

    with pytest.raises(Broken), fs.open(path, "wb") as file:  # noqa: PT012
        file.write(b"new")
        raise Broken
    file = fs.open(path, "wb")
    file.write(b"new")
    file.discard()
    file.close()
    file = fs.open(path, "wb")
    file.write(b"new")
    with pytest.warns(ResourceWarning, match="was not closed"):
        del file
    with pytest.raises(Broken), fs.transaction:  # noqa: PT012
        fs.pipe_file(path, b"new")
        raise Broken
    assert fs.cat_file(path) == again().cat_file(path) == b"old"
    with fs.transaction:
        fs.pipe_file(path, b"new")
        assert fs.cat_file(path) == b"old"
    assert fs.cat_file(path) == b"new"


def test_a_write_that_fails_leaves_the_old_file(run: str) -> None:
    fs = VelocFileSystem(host="4MiB", disk="8MiB")
    fs.pipe_file(f"{run}/x", b"old")
    with pytest.raises(errors.TierFull):
        fs.pipe_file(f"{run}/x", bytes(16 << 20))
    assert fs.cat_file(f"{run}/x") == b"old"
    fs.close()
    assert fs.cat_file(f"{run}/x") == b"old"


def test_files_larger_than_the_host_budget_are_read_in_parts(fs: VelocFileSystem, run: str) -> None:
    data = np.random.default_rng(0).bytes(24 << 20)
    fs.pipe_file(f"{run}/large", data)
    fs = again()
    with fs.open(f"{run}/large") as file:
        (store,) = velocpy.stores()
        assert file.seek(-10, io.SEEK_END) == len(data) - 10
        assert file.read() == data[-10:]
        file.seek(5 << 20)
        assert file.readline() == data[5 << 20 :].split(b"\n", 1)[0] + b"\n"
        assert fs.cat_file(f"{run}/large", start=1000, end=-len(data) + 2000) == data[1000:2000]
        assert 0 < store.stats()["tiers"]["disk"]["read_bytes"] <= 4 << 20
        into = bytearray(len(data) + 1)
        file.seek(0)
        assert file.readinto(into) == len(data)
        assert into[:-1] == data
        file.seek(3)
        copied = pickle.loads(pickle.dumps(file))
        assert copied.read(5) == data[3:8]
        copied.close()
    assert fs.cat_ranges([f"{run}/large"], 7, 9) == [data[7:9]]


def test_a_file_that_is_replaced_while_it_is_read(fs: VelocFileSystem, run: str) -> None:
    fs.pipe_file(f"{run}/x", b"1" * (3 << 20))
    file = fs.open(f"{run}/x")
    assert file.read(2) == b"11"
    fs.pipe_file(f"{run}/x", b"2" * (3 << 20))
    with pytest.raises(errors.CheckpointDropped, match="was replaced or removed after it was opened"):
        file.read()
    file = fs.open(f"{run}/x")
    assert file.read(2) == b"22"
    fs.close()  # a store that is closed is opened again
    assert set(file.read()) == {ord("2")}
    fs.rm(f"{run}/x")
    file.seek(0)
    with pytest.raises(errors.CheckpointDropped):
        file.read()


def test_times_and_sizes(fs: VelocFileSystem, run: str) -> None:
    fs.pipe({f"{run}/a/1": b"12", f"{run}/a/2": b"345"})
    assert fs.du(run) == 5
    assert fs.info(f"{run}/a") == {"name": f"{run}/a", "size": 0, "type": "directory"}
    before = fs.created(f"{run}/a/1")
    assert before < fs.modified(f"{run}/a/2") == fs.info(f"{run}/a/2")["created"]
    fs.pipe_file(f"{run}/a/1", b"")
    assert before < again().modified(f"{run}/a/1")
    assert fs.glob(f"{run}/*/[1-9]") == [f"{run}/a/1", f"{run}/a/2"]


def test_moving(fs: VelocFileSystem, run: str) -> None:
    fs.pipe({f"{run}/a/1": b"1", f"{run}/a/b/2": b"2"})
    fs.mv(f"{run}/a/1", f"velocpy://{run}/a/1")
    fs.mv(f"{run}/a/1", f"{run}/a")
    assert fs.cat_file(f"{run}/a/1") == b"1"
    with pytest.raises(errors.InvalidArgument, match="into itself"):
        fs.mv(f"{run}/a", f"{run}/a/b")
    fs.mv(f"{run}/a", f"{run}/c")
    other = f"{Path(run).parent}/other.velocpy"
    fs.rename(f"{run}/c/1", f"{other}/one")
    assert again().find(run) == [f"{run}/c/b/2"]
    assert fs.find(other) == [f"{other}/one"]
    with pytest.raises(FileNotFoundError):
        fs.mv(f"{run}/c/1", f"{run}/x")


def test_removing(fs: VelocFileSystem, run: str) -> None:
    fs.pipe({f"{run}/a/1": b"1", f"{run}/a/b/2": b"2"})
    with pytest.raises(OSError, match="not empty"):
        fs.rm(f"{run}/a")
    with pytest.raises(FileNotFoundError):
        fs.rm([f"{run}/a/1", f"{run}/none"])
    assert len(fs.find(run)) == 2
    fs.rm(f"{run}/a/1")
    fs.rm(f"{run}/a", recursive=True)
    assert fs.ls(run) == again().ls(run) == []
    fs.rm(run, recursive=True)
    assert fs.exists(run)


def test_durable_false_does_not_wait(run: str) -> None:
    fs = VelocFileSystem(durable=False, **OPTIONS)
    for number in range(20):
        fs.pipe_file(f"{run}/{number}", bytes(1000))
    assert len(fs.find(run)) == 20
    fs.mv(f"{run}/0", f"{run}/20")
    fs.sync()
    with velocpy.open(part.directory_of(Path(run), 0), mode="r", host="1MiB") as store:
        assert len([key for key in store.history("files") if store.history("files").size(key)]) == 20


def test_directories_that_are_replaced_or_removed(fs: VelocFileSystem, run: str, tmp_path: Path) -> None:
    fs.pipe_file(f"{run}/x", b"1")
    fs = again()
    assert fs.cat_file(f"{run}/x") == b"1"
    shutil.copytree(run, tmp_path / "copy")
    shutil.rmtree(run)
    assert not fs.exists(run)
    (tmp_path / "copy").rename(run)
    assert fs.cat_file(f"{run}/x") == b"1"
    store = part.directory_of(Path(run), 0)
    shutil.copytree(store, tmp_path / "copy")
    shutil.rmtree(store)
    (tmp_path / "copy").rename(store)
    assert fs.cat_file(f"{run}/x") == b"1"
    fs.pipe_file(f"{run}/x", b"2")
    shutil.rmtree(run)
    assert not fs.exists(f"{run}/x")
    fs.pipe_file(f"{run}/x", b"3")
    assert again().cat_file(f"{run}/x") == b"3"


def test_threads_write_at_once(fs: VelocFileSystem, run: str) -> None:
    def work(number: int) -> None:
        for step in range(5):
            fs.pipe_file(f"{run}/{number}/{step}", bytes([number] * 100))
            fs.pipe_file(f"{run}/shared", bytes([number] * 100))
            assert fs.cat_file(f"{run}/{number}/{step}") == bytes([number] * 100)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fs.find(run)) == 21
    assert fs.cat_file(f"{run}/shared") == again().cat_file(f"{run}/shared")


# --- several processes ---


def started(action: str, path: str, **environment: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(RANK), action, path],
        env=os.environ | {name: str(value) for name, value in environment.items()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    output, failures = process.communicate(timeout=120)
    assert process.returncode == 0, failures
    return output


def test_another_process_writes(fs: VelocFileSystem, run: str) -> None:
    fs.pipe({f"{run}/whole": b"old", f"{run}/keep": b"1"})
    process = started("write", run)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", ended(process)
    assert part.numbers_of(Path(run)) == [0, 1]
    assert fs.cat_file(f"{run}/whole") == b"whole" * 100_000  # the later one counts
    assert not fs.exists(f"{run}/half")
    fs.pipe_file(f"{run}/whole", b"new")
    assert fs.cat_file(f"{run}/whole") == b"new"
    fs.rm(f"{run}/whole")  # a mark hides the file of the other process
    assert fs.find(run) == again().find(run) == [f"{run}/keep"]
    fs.sweep(run)  # the other one has its store open
    process.kill()
    process.communicate(timeout=60)
    assert again().find(run) == [f"{run}/keep"]
    fs.sweep(run)
    assert fs.find(run) == [f"{run}/keep"]
    fs.close()
    for number, expected in ((0, ["keep"]), (1, [])):
        with velocpy.open(part.directory_of(Path(run), number), mode="r", host="1MiB") as store:
            assert list(store.history("files")) == expected


@pytest.mark.parametrize("recent", [part._RECENT_NS, -1])
def test_what_another_process_has_written_is_seen_at_once(
    fs: VelocFileSystem, run: str, recent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "_RECENT_NS", recent)
    fs.makedirs(run)
    process = started("count", run)
    assert process.stdin is not None
    assert process.stdout is not None
    for number in range(40):
        if recent < 0:
            time.sleep(0.02)  # the times of files alone tell of changes, and are those of the clock's last tick
        process.stdin.write(f"{number}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "written\n", ended(process)
        assert fs.cat_file(f"{run}/count") == str(number).encode()
    ended(process)


def test_a_process_of_a_later_job_takes_the_store_of_its_rank(
    fs: VelocFileSystem, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "3")
    fs.pipe_file(f"{run}/x", b"1")
    assert part.numbers_of(Path(run)) == [3]
    monkeypatch.setenv("RANK", "2")
    fs = again()
    fs.pipe_file(f"{run}/x", b"2")
    monkeypatch.setenv("RANK", "3")
    fs = again()
    fs.pipe_file(f"{run}/y", b"")  # drops what that of rank 2 hides
    assert part.numbers_of(Path(run)) == [2, 3]
    assert fs.cat_file(f"{run}/x") == b"2"
    (writer,) = (store for store in velocpy.stores() if not store._config["read_only"])
    assert list(writer.history("files")) == ["y"]


def test_clocks_do_not_matter_to_who_sees_a_file(
    fs: VelocFileSystem, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    fs.pipe_file(f"{run}/x", b"1")
    monkeypatch.setenv("RANK", "0")
    fs = again()
    monkeypatch.setattr(directory.time, "time_ns", lambda: 1)
    fs.pipe_file(f"{run}/x", b"2")
    assert fs.cat_file(f"{run}/x") == again().cat_file(f"{run}/x") == b"2"


def test_processes_contend(fs: VelocFileSystem, run: str) -> None:
    processes = [started("contend", run, RANK=0 if rank < 2 else rank) for rank in range(3)]
    said = [ended(process) for process in processes]
    assert len(said) == 3
    assert (
        len([name for name in fs.find(run) if "own-" in name]) == 10
    )  # two of them have one rank, and one set of names
    assert part.numbers_of(Path(run)) in ([0, 1, 2], [0, 2], [0, 2, 3], [0, 1])
    assert fs.cat_file(f"{run}/shared").decode().split()[1] == "4"


def test_a_forked_process_is_refused(fs: VelocFileSystem, run: str) -> None:
    fs.pipe_file(f"{run}/x", b"1")
    child = os.fork()
    if not child:
        code = 1
        try:
            VelocFileSystem(**OPTIONS).pipe_file(f"{run}/x", b"2")
        except errors.ForkedProcessError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert fs.cat_file(f"{run}/x") == b"1"


def test_what_is_not_durable_yet_is_so_when_the_process_ends(run: str, run_python: Any) -> None:
    code = """
        import sys
        from velocpy.fs import VelocFileSystem
        fs = VelocFileSystem(host="4MiB", disk="64MiB", durable=False)
        for number in range(20):
            fs.pipe_file(f"{sys.argv[1]}/{number}", bytes(100_000))
    """
    done = run_python(code, run, options=("-W", "error"))
    assert (done.returncode, done.stderr) == (0, "")
    assert len(VelocFileSystem(**OPTIONS).find(run)) == 20


def test_the_installed_package_tells_fsspec_of_the_protocol() -> None:
    (point,) = entry_points(group="fsspec.specs", name="velocpy")
    assert point.load() is VelocFileSystem


def test_a_url_suffices_without_an_import(tmp_path: Path, run_python: Any) -> None:
    done = run_python(
        """
        import sys, fsspec
        with fsspec.open(sys.argv[1], "wb", host="16MiB", disk="64MiB") as file:
            file.write(b"bytes")
        with fsspec.open(sys.argv[1], "rb") as file:
            print(file.read())
        """,
        f"velocpy://{tmp_path}/run.velocpy/a",
    )
    assert (done.stdout, done.stderr) == ("b'bytes'\n", "")


# --- torch ---


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_a_path_suffices_for_torch(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    import torch.distributed.checkpoint as dcp

    VelocFileSystem(**OPTIONS).makedirs(run)
    state = {"w": torch.randn(100_000), "more": {"b": torch.ones(3).bfloat16()}, "step": 7}
    with fsspec.open(f"velocpy://{run}/model.pt", "wb") as file:
        torch.save(state, file)
    with fsspec.open(f"velocpy://{run}/model.pt", "rb") as file:
        assert torch.equal(torch.load(file)["w"], state["w"])
    step = f"velocpy://{run}/step-7"
    for number in (7, 8):
        state["step"] = number
        dcp.save(state, checkpoint_id=step, no_dist=True)
    again()
    found = {"w": torch.zeros(100_000), "more": {"b": torch.zeros(3).bfloat16()}, "step": 0}
    dcp.load(found, checkpoint_id=step, no_dist=True)
    assert torch.equal(found["w"], state["w"])
    assert torch.equal(found["more"]["b"], state["more"]["b"])
    assert found["step"] == 8


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_a_file_that_changes_while_its_store_is_read(
    change: str, fs: VelocFileSystem, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader has the list of the files, and their writer changes one of them before the reader knows what it is."""
    fs.makedirs(run)
    fs.pipe_file(f"{run}/file", b"old")
    fs.pipe_file(f"{run}/other", b"other")
    reader = part.Part(Path(run), fs_number(run), reads=True, reduce=None, host="4MiB")
    fs.pipe_file(f"{run}/file", b"newer")
    meta, left = type(reader.history).meta, [True]

    def beaten(history: Any, key: str, *rest: Any) -> Any:
        if history is reader.history and key == "file" and left:
            left.pop()
            if change == "replaced":
                fs.pipe_file(f"{run}/file", b"newest of all")
            else:
                fs.rm_file(f"{run}/file")
            raise errors.CheckpointDropped("dropped or replaced meanwhile")
        return meta(history, key, *rest)

    monkeypatch.setattr(type(reader.history), "meta", beaten)
    try:
        assert "file" in reader.refresh()
        assert not left
        kinds = {name: (entry.kind, entry.size) for name, entry in reader.entries.items()}
    finally:
        reader.close()
    assert kinds["other"] == ("file", 5)
    assert kinds.get("file", ("gone", 0)) == (("file", 13) if change == "replaced" else ("gone", 0))


def fs_number(run: str) -> int:
    """The number of the only store of a directory."""
    (number,) = part.numbers_of(Path(run))
    return number


def test_two_ranks_save_and_load(run: str) -> None:
    pytest.importorskip("torch")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free.getsockname()[1], "WORLD_SIZE": 2}
    ranks = [started("save", f"velocpy://{run}/step", **address, RANK=r, LOCAL_RANK=r) for r in range(2)]
    said = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)
    names = [path.rpartition("/")[2] for path in VelocFileSystem(**OPTIONS).ls(f"{run}/step", detail=False)]
    assert names == [".metadata", "__0_0.distcp", "__1_0.distcp"]
    assert part.numbers_of(Path(run)) == [0, 1]


def test_numpy_and_pandas(fs: VelocFileSystem, run: str) -> None:
    fs.makedirs(run)
    with fsspec.open(f"velocpy://{run}/x.npz", "wb") as file:
        np.savez(file, u=np.arange(5), v=np.ones((2, 3)))
    with fsspec.open(f"velocpy://{run}/x.npz", "rb") as file, np.load(file) as found:
        assert found["u"].tolist() == [0, 1, 2, 3, 4]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pandas
    except ImportError:
        return
    pandas.DataFrame({"loss": [1, 2]}).to_csv(f"velocpy://{run}/loss.csv")
    assert list(pandas.read_csv(f"velocpy://{run}/loss.csv")["loss"]) == [1, 2]
