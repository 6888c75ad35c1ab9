"""Checkpoints of torch.distributed.checkpoint in stores: exact, whole or not there, and read by other ranks."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import launch_ranks

import velocpy
from velocpy import errors
from velocpy.archive import Destination, part, push

torch = pytest.importorskip("torch")

import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint import DefaultSavePlanner, FileSystemReader, FileSystemWriter  # noqa: E402
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402

from velocpy.dcp import Reader, Writer, exchange, from_files, layout, to_files  # noqa: E402

#: DCP warns where there is one process alone.
pytestmark = [
    pytest.mark.usefixtures("frozen_imports"),
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning"),
]


def save(writer: Any, state: Any, name: str | None = "a", **options: Any) -> None:
    dcp.save(state, storage_writer=writer, checkpoint_id=name, no_dist=True, **options)


def load(path: Path, state: Any, name: str | None = "a") -> Any:
    with Reader(path) as reader:
        dcp.load(state, storage_reader=reader, checkpoint_id=name, no_dist=True)
    return state


def writer(path: Path, **options: Any) -> Writer:
    return Writer(path, host="16MiB", disk="256MiB", **options)


def states() -> dict[str, Any]:
    """Tensors of many kinds, and objects."""
    grid = torch.arange(2_000_000, dtype=torch.float32).reshape(1000, 2000)
    return {
        "large": grid,
        "columns": grid[:, ::3],
        "turned": grid.T,
        "nan": torch.tensor([float("nan"), -0.0, 1e-45]),
        "half": torch.randn(33).bfloat16(),
        "complex": torch.randn(5, dtype=torch.complex64),
        "bool": torch.tensor([True, False]),
        "number": torch.tensor(7, dtype=torch.int64),
        "empty": torch.zeros(0, 3),
        "float8": torch.randn(16).to(torch.float8_e4m3fn),
        "nested": {"list": [torch.ones(2), {"deep": torch.full((3,), 4)}], "step": 12, "text": "words"},
    }


def emptied(node: Any) -> Any:
    if isinstance(node, torch.Tensor):
        return torch.zeros_like(node.contiguous())
    if isinstance(node, dict):
        return {key: emptied(value) for key, value in node.items()}
    return [emptied(each) for each in node] if isinstance(node, list) else type(node)()


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        raw = [each.contiguous().reshape(-1).view(torch.uint8) if each.numel() else each for each in (a, b)]
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*raw)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    return all(map(alike, a, b)) if isinstance(a, list) else bool(a == b)


def gpus(before: int, after: int) -> Any:
    return pytest.param(before, after, "cuda", marks=pytest.mark.gpu)


@pytest.mark.parametrize("reduce", [None, "tree", "codec"])
def test_states_come_back_as_they_were(tmp_path: Path, reduce: Any) -> None:
    state = states()
    with writer(tmp_path, reduce=reduce) as to:
        save(to, state)
        assert alike(load(tmp_path, emptied(state)), state)  # while the writer has its store open
        state["nested"]["step"] = 13
        state["large"][3, 4] += 1
        save(to, state, "b")
    with writer(tmp_path) as to:
        save(to, state, None)
    for name in ("b", None):
        assert alike(load(tmp_path, emptied(state), name), state)
    assert load(tmp_path, emptied(states()))["nested"]["step"] == 12


def test_a_part_of_the_state_can_be_loaded(tmp_path: Path) -> None:
    with writer(tmp_path) as to:
        save(to, states())
    found = load(tmp_path, {"nested": {"step": 0}, "number": torch.tensor(0)})
    assert found == {"nested": {"step": 12}, "number": torch.tensor(7)}


def test_elements_are_cast_as_dcp_casts_them(tmp_path: Path) -> None:
    with writer(tmp_path / "velocpy") as to:
        save(to, {"x": torch.arange(9.0)})
    save(FileSystemWriter(tmp_path / "files"), {"x": torch.arange(9.0)}, None)
    ours = load(tmp_path / "velocpy", {"x": torch.zeros(9, dtype=torch.float64)})
    theirs = {"x": torch.zeros(9, dtype=torch.float64)}
    dcp.load(theirs, storage_reader=FileSystemReader(tmp_path / "files"), no_dist=True)
    assert torch.equal(ours["x"], theirs["x"])


def test_a_checkpoint_moves_to_files_of_dcp(tmp_path: Path) -> None:
    state = states()
    with writer(tmp_path / "store") as to:
        save(to, state)
    found = load(tmp_path / "store", emptied(state))
    save(FileSystemWriter(tmp_path / "files"), found, None)
    back = emptied(state)
    dcp.load(back, storage_reader=FileSystemReader(tmp_path / "files"), no_dist=True)
    assert alike(back, state)


def test_a_second_save_takes_what_has_changed(tmp_path: Path) -> None:
    state = {"x": torch.randn(1_000_000), "y": torch.randn(1000)}
    used = {}
    for reduce in (None, "tree"):
        with writer(tmp_path / str(reduce), reduce=reduce) as to:
            for step in range(4):
                state["y"] += 1
                save(to, state, f"step-{step}")
            assert to.store is not None
            used[reduce] = to.store.stats()["tiers"]["disk"]["used"]
        assert alike(load(tmp_path / str(reduce), emptied(state), "step-3"), state)
    assert used["tree"] < used[None] / 3


def test_identifiers(tmp_path: Path) -> None:
    with writer(tmp_path, keep=2) as to:
        for step in range(4):
            save(to, {"x": torch.full((100,), step)}, f"step-{step}")
        save(to, {"x": torch.full((100,), 30)}, "step-3")
        with Reader(tmp_path) as reader:
            assert reader.checkpoints() == ("step-2", "step-3")
        assert to.store is not None
        assert len(to.store.history(layout.DATA)) <= 4  # those that the next save frees are among them
        save(to, {"x": torch.full((100,), 31)}, "step-3")
        assert len(to.store.history(layout.DATA)) <= 4
    assert load(tmp_path, {"x": torch.zeros(100)}, "step-3")["x"][0] == 31
    reader = Reader(tmp_path)
    reader.reset("step-0")
    with pytest.raises(errors.CheckpointNotFound, match=r"no complete checkpoint 'step-0'.*: 'step-2', 'step-3'\."):
        reader.read_metadata()
    reader.close()
    assert Writer.validate_checkpoint_id(Path("x"))
    assert not Reader.validate_checkpoint_id("")


class Broken(DefaultSavePlanner):  # type: ignore[misc]
    """Fails at the second item."""

    left = 1

    def resolve_data(self, item: Any) -> Any:
        if self.left == 0:
            raise OSError("no more")
        self.left -= 1
        return super().resolve_data(item)


def test_a_save_that_fails_changes_nothing(tmp_path: Path) -> None:
    old, new = ({"x": torch.full((9,), value), "y": torch.ones(3)} for value in (1.0, 2.0))
    with writer(tmp_path) as to:
        save(to, old)
        with pytest.raises(CheckpointException, match="no more"):
            save(to, new, planner=Broken())
        assert load(tmp_path, emptied(old))["x"][0] == 1
        save(to, new)
        assert load(tmp_path, emptied(old))["x"][0] == 2


def test_a_rank_killed_before_the_metadata_leaves_the_old_checkpoint(tmp_path: Path, run_python: Any) -> None:
    script = f"""
        import os, sys, warnings
        import torch, velocpy
        import torch.distributed.checkpoint as dcp
        from velocpy.dcp import Writer
        warnings.simplefilter("ignore")

        class Dies(Writer):
            def finish(self, metadata, results):
                os._exit(7)

        state = {{"x": torch.full((1000,), float(sys.argv[1]))}}
        kind = Dies if sys.argv[2] == "dies" else Writer
        with kind({str(tmp_path)!r}, host="16MiB", disk="64MiB") as writer:
            dcp.save(state, storage_writer=writer, checkpoint_id="a", no_dist=True)
            print(len(writer.store.history("data")))
    """
    assert run_python(script, "1", "lives").stdout == "1\n"
    for _ in range(2):
        assert run_python(script, "2", "dies").returncode == 7
        assert load(tmp_path, {"x": torch.zeros(1000)})["x"][0] == 1
    assert run_python(script, "3", "lives").stdout == "2\n"  # what the killed ones have left is freed
    assert load(tmp_path, {"x": torch.zeros(1000)})["x"][0] == 3


class Trap:
    def __reduce__(self) -> Any:
        return (os.system, ("echo trapped > trapped",))


def test_metadata_that_would_run_code_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    buffer = io.BytesIO()
    torch.save(Trap(), buffer)
    for raw in (buffer.getvalue(), pickle.dumps(Trap()), b"", b"junk"):
        with pytest.raises(errors.CorruptCheckpoint, match="none that DCP wrote"):
            layout.unpacked(np.frombuffer(raw, np.uint8), "a")
    buffer = io.BytesIO()
    torch.save({"x": 1}, buffer)
    with pytest.raises(errors.CorruptCheckpoint, match="are a dict"):
        layout.unpacked(np.frombuffer(buffer.getvalue(), np.uint8), "a")
    assert not Path("trapped").exists()


def test_calls_out_of_order(tmp_path: Path) -> None:
    to = writer(tmp_path)
    with pytest.raises(errors.InvalidArgument, match="not been set up"):
        to.finish(None, [])
    with pytest.raises(errors.InvalidArgument, match="keep"):
        writer(tmp_path, keep=0)
    with Reader(tmp_path / "nothing") as reader, pytest.raises(errors.CheckpointNotFound, match="there are: none"):
        reader.read_metadata()
    with velocpy.open(tmp_path / "rank-00000", host="16MiB", disk="64MiB") as store:
        store.history(layout.METADATA).checkpoint("a", {"metadata": layout.packed(dcp.Metadata({}))}).wait("disk")
    with Reader(tmp_path) as reader:
        reader.reset("a")
        metadata = reader.read_metadata()
        with pytest.raises(errors.CorruptCheckpoint, match="not those of"):
            reader.set_up_storage_reader(metadata, True)


def test_a_planner_that_caches_plans_saves_each_state(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    with writer(tmp_path) as to:
        for number, name in enumerate(names):
            save(to, {"x": torch.full((9,), number)}, name, planner=DefaultSavePlanner(enable_plan_caching=True))
    assert [load(tmp_path, {"x": torch.zeros(9)}, name)["x"][0].item() for name in names] == [0, 1, 2]


def test_names_that_look_like_offsets(tmp_path: Path) -> None:
    state = {"w": torch.ones(3), "w@0": 5, "z": torch.tensor(4), "z@": 6}
    with writer(tmp_path) as to:
        save(to, state)
    assert alike(load(tmp_path, emptied(state)), state)


class Paused(DefaultSavePlanner):  # type: ignore[misc]
    """Stops before its first item until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go_on = threading.Event(), threading.Event()

    def resolve_data(self, item: Any) -> Any:
        self.reached.set()
        assert self.go_on.wait(60)
        return super().resolve_data(item)


def test_two_saves_in_progress(tmp_path: Path) -> None:
    with writer(tmp_path) as to:
        save(to, {"x": torch.zeros(9)}, "old")
        planner = Paused()
        first, second = {"x": torch.full((9,), 1)}, {"x": torch.full((9,), 2)}
        pending = dcp.async_save(first, storage_writer=to, checkpoint_id="a", no_dist=True, planner=planner)
        assert planner.reached.wait(60)
        dcp.async_save(second, storage_writer=to, checkpoint_id="b", no_dist=True).result()
        save(to, second, "old")
        planner.go_on.set()
        pending.result()
    found = {name: load(tmp_path, {"x": torch.zeros(9)}, name)["x"][0].item() for name in ("a", "b", "old")}
    assert found == {"a": 1, "b": 2, "old": 2}


def test_what_another_save_has_written_but_not_completed_is_not_freed(tmp_path: Path) -> None:
    class Slow(Writer):
        written, go_on = threading.Event(), threading.Event()

        def finish(self, metadata: Any, results: Any) -> None:
            if self.storage_meta().checkpoint_id == "a":
                self.written.set()
                assert self.go_on.wait(60)
            super().finish(metadata, results)

    with Slow(tmp_path, host="16MiB", disk="256MiB") as to:
        pending = dcp.async_save({"x": torch.ones(9)}, storage_writer=to, checkpoint_id="a", no_dist=True)
        assert to.written.wait(60)
        save(to, {"x": torch.full((9,), 2)}, "b")
        to.go_on.set()
        pending.result()
    assert load(tmp_path, {"x": torch.zeros(9)})["x"][0] == 1


def test_metadata_that_could_not_be_loaded_are_refused_by_the_save(tmp_path: Path) -> None:
    class Tagging(DefaultSavePlanner):  # type: ignore[misc]
        def create_global_plan(self, plans: Any) -> Any:
            plans, metadata = super().create_global_plan(plans)
            metadata.planner_data["tag"] = Trap()
            return plans, metadata

    with writer(tmp_path) as to:
        save(to, {"x": torch.ones(3)})
        with pytest.raises(CheckpointException, match="objects other than those of DCP"):
            save(to, {"x": torch.zeros(3)}, planner=Tagging())
    assert load(tmp_path, {"x": torch.zeros(3)})["x"][0] == 1


def test_a_rank_that_has_no_store_yet_has_no_checkpoints(tmp_path: Path) -> None:
    with writer(tmp_path) as to:
        save(to, {"x": torch.ones(3)})
    (tmp_path / "rank-00001").mkdir()
    with Reader(tmp_path) as reader:
        assert reader.checkpoints() == ("a",)
        reader.reset("b")
        with pytest.raises(errors.CheckpointNotFound, match="there are: 'a'"):
            reader.read_metadata()


# --- several ranks ---


def save_alone(to: Writer, rank: int, name: str, value: float) -> None:
    """Calls a writer as DCP does on a rank with ``use_collectives=False``."""
    planner = DefaultSavePlanner()
    planner.set_up_planner({f"x{rank}": torch.full((9,), value)}, None, rank == 0)
    to.reset(name)
    to.set_up_storage_writer(rank == 0, rank=rank, use_collectives=False)
    plans, metadata = planner.create_global_plan([to.prepare_local_plan(planner.create_local_plan())])
    plan = planner.finish_plan(to.prepare_global_plan(plans)[0])
    to.finish(metadata, [to.write_data(plan, planner).value()])


def test_each_rank_reads_its_own_metadata_of_a_save_without_collectives(tmp_path: Path, run_python: Any) -> None:
    with writer(tmp_path, keep=1) as first, writer(tmp_path, keep=1) as second:
        save_as_ranks([first, second], "a", 1)
        for value in (2, 3):
            for rank, to in enumerate((first, second)):
                save_alone(to, rank, "a", value)
        for to in (first, second):
            assert to.store is not None
            assert len(to.store.history(layout.DATA)) <= 3
    with Reader(tmp_path) as reader:
        reader.reset("a")
        assert reader.checkpoints() == ("a",)
        with pytest.raises(errors.CheckpointNotFound):  # DCP asks for the metadata of the rank then
            reader.read_metadata()
        for rank in range(2):
            metadata = reader.read_metadata(rank=rank)
            assert list(metadata.state_dict_metadata) == [f"x{rank}"]
            assert {place.rank for place in metadata.storage_data.values()} == {rank}
        with pytest.raises(errors.CheckpointNotFound):
            reader.read_metadata(rank=2)
    # In a process of its own: DCP logs that there are no metadata of all ranks, with a traceback that holds the stores.
    done = run_python(
        f"""
        import torch, warnings
        import torch.distributed.checkpoint as dcp
        from velocpy.dcp import Reader
        warnings.simplefilter("ignore")
        state = {{"x0": torch.zeros(9)}}
        with Reader({str(tmp_path)!r}) as reader:
            dcp.load(state, storage_reader=reader, checkpoint_id="a", no_dist=True)
        print(state["x0"].unique().tolist())
        """
    )
    assert done.stdout == "[3.0]\n", done.stderr


def save_as_ranks(writers: list[Writer], name: str, value: float) -> None:
    """Calls two writers as DCP does on the ranks of a job."""
    planners, plans = [], []
    for rank, to in enumerate(writers):
        planner = DefaultSavePlanner()
        planner.set_up_planner({f"x{rank}": torch.full((9,), value)}, None, rank == 0)
        to.reset(name)
        to.set_up_storage_writer(rank == 0, rank=rank, use_collectives=True)
        planners.append(planner)
        plans.append(to.prepare_local_plan(planner.create_local_plan()))
    plans, metadata = planners[0].create_global_plan(plans)
    plans = writers[0].prepare_global_plan(plans)
    results = [
        to.write_data(planner.finish_plan(plan), planner).value()
        for to, planner, plan in zip(writers, planners, plans, strict=True)
    ]
    writers[0].finish(metadata, results)


def test_ranks_with_directories_of_their_own_keep_what_the_coordinator_keeps(tmp_path: Path) -> None:
    directories = [tmp_path / "node-0", tmp_path / "node-1"]
    for _ in range(2):  # the second job finds the stores of the first one
        with writer(directories[0], keep=2) as first, writer(directories[1], keep=2) as second:
            for value, name in enumerate("abc"):
                save_as_ranks([first, second], name, value)
            for to in (first, second):
                assert to.store is not None
                assert len(to.store.history(layout.DATA)) == 3  # of "b" and "c", and one that the next save frees
    (directories[1] / "rank-00001").rename(directories[0] / "rank-00001")
    for value, name in ((1, "b"), (2, "c")):
        found = load(directories[0], {"x0": torch.zeros(9), "x1": torch.zeros(9)}, name)
        assert [found["x0"][0], found["x1"][0]] == [value, value]


def ranks(count: int, action: str, path: Path, report: Path, device: str = "cpu", *more: Path) -> list[dict[str, Any]]:
    """What so many ranks report of an action."""
    launch_ranks(Path(__file__).with_name("dcp_rank.py"), count, action, path, report, device, *more)
    return [json.loads((report / f"{action}-{rank}.json").read_text()) for rank in range(count)]


@pytest.mark.parametrize(("before", "after"), [(2, 1), (2, 3)])
def test_other_ranks_load_what_ranks_have_saved(tmp_path: Path, before: int, after: int) -> None:
    ranks(before, "save", tmp_path / "run", tmp_path)
    assert layout.ranks_of(tmp_path / "run") == list(range(before))
    for found in ranks(after, "load", tmp_path / "run", tmp_path):
        assert found["same"] == dict.fromkeys(found["same"], True)
        assert len(found["same"]) == 6
        assert found["name"] == "third"
        if after < before:  # other parts begin and end within leaves of 256 KiB, which are read whole
            assert found["read"] <= 1.1 * found["asked"]


@pytest.mark.gpu
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_other_devices_load_what_devices_have_saved(tmp_path: Path, before: int, after: int) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("one CUDA device")
    ranks(before, "save", tmp_path / "run", tmp_path, "cuda")
    for found in ranks(after, "load", tmp_path / "run", tmp_path, "cuda"):
        assert found["same"] == dict.fromkeys(found["same"], True)
        assert len(found["same"]) == 6
        if after < before:
            assert found["read"] <= 1.1 * found["asked"]


# --- an archive ---


@pytest.mark.parametrize(("before", "after", "device"), [(2, 1, "cpu"), (2, 3, "cpu"), gpus(2, 1), gpus(1, 2)])
def test_sharded_states_come_back_from_an_archive(tmp_path: Path, before: int, after: int, device: str) -> None:
    """The ranks that load have nothing but the archive, as after the loss of all nodes."""
    if device == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("one CUDA device")
    run, archive = tmp_path / "run", tmp_path / "archive"
    ranks(before, "save", run, tmp_path, device, archive)
    shutil.rmtree(run)
    with Reader(archive) as reader:
        assert reader.checkpoints() == ("first", "second", "third")
    for found in ranks(after, "load", archive, tmp_path, device):
        assert found["same"] == dict.fromkeys(found["same"], True)
        assert len(found["same"]) == 6
        assert found["name"] == "third"
        if after < before:
            assert found["read"] <= 1.1 * found["asked"]


@pytest.mark.parametrize("reduce", [None, "tree"])
def test_a_process_saves_into_an_archive(tmp_path: Path, reduce: Any) -> None:
    state, archive = states(), tmp_path / "archive"
    with writer(tmp_path / "run", keep=1, reduce=reduce, archive=archive) as to:
        for step in range(3):
            state["nested"]["step"] = step
            save(to, state, "latest" if step else "first")
            assert to.store is not None
            to.store.wait("archive", timeout=60)
    with Reader(archive) as reader:
        assert reader.checkpoints() == ("first", "latest")
        reader.reset("other")
        with pytest.raises(errors.CheckpointNotFound, match="'first', 'latest'"):
            reader.read_metadata()
    assert load(archive, emptied(state), "latest")["nested"]["step"] == 2
    found = load(archive, emptied(state), "first")
    state["nested"]["step"] = 0
    assert alike(found, state)


def test_a_save_that_fails_on_a_rank_is_not_in_the_archive(tmp_path: Path) -> None:
    """It fails before its commit. The next save of the same name is there."""
    archive = tmp_path / "archive"
    with writer(tmp_path / "run", archive=Destination(archive, every=0.05)) as to:
        save(to, {"x": torch.zeros(9)})
        written = to.finish
        to.finish = failing  # type: ignore[method-assign]
        with pytest.raises(CheckpointException):
            save(to, {"x": torch.ones(9)})
        to.finish = written  # type: ignore[method-assign]
        assert to.store is not None
        to.store.wait("archive", timeout=60)
        assert load(archive, {"x": torch.ones(9)})["x"].sum() == 0
        save(to, {"x": torch.full((9,), 2.0)})
        to.store.wait("archive", timeout=60)
        assert load(archive, {"x": torch.ones(9)})["x"].sum() == 18


def test_a_rank_that_an_error_ends_waits_for_no_other(tmp_path: Path) -> None:
    """The last rank raises behind its first save; the others hear of it when they close."""
    launch_ranks(Path(__file__).with_name("dcp_rank.py"), 2, "fail", tmp_path / "run", tmp_path, "cpu", tmp_path / "a")
    said = [json.loads((tmp_path / f"fail-{rank}.json").read_text()) for rank in range(2)]
    assert said == [{"raised": "RankFailed"}, {"raised": "ZeroDivisionError"}]


def test_fewer_ranks_go_on_and_the_archive_keeps_what_more_ranks_have_saved(tmp_path: Path) -> None:
    """The process that goes on has the store of one of the ranks."""
    run, archive = tmp_path / "run", tmp_path / "archive"
    ranks(2, "save", run, tmp_path, "cpu", archive)
    with writer(run, archive=archive) as to:
        save(to, {"x": torch.ones(9)}, "new")
    with Reader(archive) as reader:
        assert reader.checkpoints() == ("first", "second", "third", "new")
    assert load(archive, {"x": torch.zeros(9)}, "new")["x"].sum() == 9
    (found,) = ranks(1, "load", archive, tmp_path)
    assert found["same"] == dict.fromkeys(found["same"], True)
    with velocpy.open(archive, mode="r") as store:
        assert [len(store.history(part(layout.COMMITS, rank))) for rank in range(2)] == [4, 3]


def test_a_save_without_its_tensors_does_not_count(tmp_path: Path) -> None:
    """A push leaves out tensors that went, or are damaged; an older save of the same checkpoint is loaded then."""
    archive = tmp_path / "archive"
    with writer(tmp_path / "run", archive=archive) as to:
        save(to, {"x": torch.zeros(9)})
        assert to.store is not None
        to.store.wait("archive", timeout=60)
        save(to, {"x": torch.ones(9)})
        to.store.wait("archive", timeout=60)
    with velocpy.open(tmp_path / "more", host="16MiB", disk="64MiB") as store:
        commit = {"checkpoint": "a", "coordinator": 0}
        store.history(layout.COMMITS).checkpoint("a#broken", {"metadata": np.zeros(3, np.uint8)}, meta=commit)
        store.history(layout.COMMITS).checkpoint("foreign", {"metadata": np.zeros(3, np.uint8)}, meta={"step": 1})
        store.wait("disk")
    push([tmp_path / "more"], archive)
    with Reader(archive) as reader:
        assert reader.checkpoints() == ("a",)
    assert load(archive, {"x": torch.zeros(9)})["x"].sum() == 9


def test_an_archive_lists_checkpoints_in_the_order_of_their_latest_saves(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    with writer(tmp_path / "run", archive=archive, keep=2) as to:
        for value, name in enumerate("cabcd"):
            save(to, {"x": torch.full((9,), float(value))}, name)
            assert to.store is not None
            to.store.wait("archive", timeout=60)
            assert set(to.store.history(layout.COMMITS)) == set(to.store.history(layout.DATA))
            assert len(to.store.history(layout.COMMITS)) <= 3
    with Reader(archive) as reader:
        assert reader.checkpoints() == ("a", "b", "c", "d")
    assert load(archive, {"x": torch.zeros(9)}, "c")["x"][0] == 3


def test_a_rank_that_does_not_come_is_waited_for_no_longer_than_is_said(tmp_path: Path) -> None:
    class Silent:
        rank, size = 0, 2

        def all_gather(self, text: bytes) -> list[bytes]:
            raise errors.WaitTimeout("on purpose")

    with writer(tmp_path / "run", archive=tmp_path / "archive") as to:
        assert to._together is not None
        to._together._others = Silent()  # type: ignore[assignment]
        with pytest.raises(errors.WaitTimeout):
            to.set_up_storage_writer(True, rank=0)
        with pytest.raises(errors.RankFailed, match="new Writer"):
            to.set_up_storage_writer(True, rank=0)


def failing(*_: Any) -> None:
    raise RuntimeError("on purpose")


def test_archives_that_cannot_take_checkpoints_are_refused(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    for wrong in (Destination(archive, partial=True), Destination(archive, histories=["data"])):
        with pytest.raises(errors.InvalidArgument, match="Leave them out"):
            writer(tmp_path / "run", archive=wrong)
    with pytest.raises(errors.InvalidArgument, match="archive="):
        writer(tmp_path / "run", ranks=object())
    with writer(tmp_path / "run", archive=archive) as to:
        to.reset("a")
        with pytest.raises(errors.InvalidArgument, match="use_collectives"):
            to.set_up_storage_writer(True, rank=0, use_collectives=False)
        with pytest.raises(errors.InvalidArgument, match="has 1 ranks, and these are the ranks"):
            to.set_up_storage_writer(False, rank=1)
    assert not archive.exists()
    assert not (tmp_path / "run").exists()


# ---- DCP's own files ----


def zeroed_states() -> Any:
    return emptied(states())


def test_a_checkpoint_goes_into_files_of_dcp(tmp_path: Path) -> None:
    state = states()
    with writer(tmp_path / "run") as one:
        save(one, state)
        save(one, {"w": torch.ones(1)}, "other")
    to_files(tmp_path / "run", "a", tmp_path / "files")
    loaded = zeroed_states()
    dcp.load(loaded, checkpoint_id=tmp_path / "files", no_dist=True)
    assert alike(loaded, state)
    metadata = FileSystemReader(tmp_path / "files").read_metadata()
    assert metadata.storage_meta.checkpoint_id == str(tmp_path / "files")
    assert {each.name for each in tmp_path.iterdir()} == {"run", "files"}
    with pytest.raises(errors.InvalidArgument, match="no empty folder"):
        to_files(tmp_path / "run", "a", tmp_path / "files")
    with pytest.raises(errors.CheckpointNotFound, match="'other'"):
        to_files(tmp_path / "run", "missing", tmp_path / "more")
    assert not (tmp_path / "more").exists()


def test_files_of_dcp_become_a_checkpoint(tmp_path: Path) -> None:
    state = states()
    dcp.save(state, checkpoint_id=tmp_path / "files", no_dist=True)
    for _ in range(2):  # the second one takes the place of the first
        from_files(tmp_path / "files", tmp_path / "run", "a", disk="256MiB")
        assert alike(load(tmp_path / "run", zeroed_states()), state)
    with Reader(tmp_path / "run") as reader:
        assert reader.checkpoints() == ("a",)
    with writer(tmp_path / "run", keep=1) as one:  # later saves go on there
        save(one, state, "b")
        assert len(one.store.history("data")) == 2  # type: ignore[union-attr]
        save(one, state, "c")
        assert len(one.store.history("data")) == 2  # type: ignore[union-attr]
    to_files(tmp_path / "run", "c", tmp_path / "again")
    loaded = zeroed_states()
    dcp.load(loaded, checkpoint_id=tmp_path / "again", no_dist=True)
    assert alike(loaded, state)


def test_large_checkpoints_are_copied_batch_by_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "BATCH", 10_000)
    state = {f"t{n}": torch.full((1000,), float(n)) for n in range(20)} | {"step": 7}
    with writer(tmp_path / "run") as one:
        save(one, state)
    to_files(tmp_path / "run", "a", tmp_path / "files")
    assert len(list((tmp_path / "files").glob("*.distcp"))) == 10
    from_files(tmp_path / "files", tmp_path / "back", "b", disk="64MiB")
    with velocpy.open(layout.directory_of(tmp_path / "back", 0), mode="r", host="16MiB") as store:
        assert len(store.history("data")) == 10
    assert alike(load(tmp_path / "back", emptied(state), "b"), state)
    with writer(tmp_path / "back", keep=1) as one:
        save(one, state, "c")
        save(one, state, "d")
        assert len(one.store.history("data")) == 2  # type: ignore[union-attr]


@pytest.mark.parametrize("ranks", [2])
def test_the_chunks_of_several_ranks_are_copied(tmp_path: Path, ranks: int) -> None:
    state = run_ranks(tmp_path, ranks)
    to_files(tmp_path / "run", "a", tmp_path / "files")
    loaded = emptied(state)
    dcp.load(loaded, checkpoint_id=tmp_path / "files", no_dist=True)
    assert alike(loaded, state)
    from_files(tmp_path / "files", tmp_path / "back", "a", disk="64MiB")
    assert alike(load(tmp_path / "back", emptied(state)), state)


def run_ranks(folder: Path, ranks: int) -> Any:
    """Saves a tensor of which each rank has a part, as DCP's planner makes plans of ranks; returns the whole."""
    from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
    from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType

    whole = torch.arange(60.0).reshape(6, 10)
    part = 6 // ranks
    plans, parts = [], []
    for rank in range(ranks):
        here = whole[rank * part : (rank + 1) * part].clone()
        chunk = ChunkStorageMetadata(torch.Size([rank * part, 0]), here.size())
        data = TensorWriteData(chunk, TensorProperties(dtype=here.dtype), whole.size())
        item = WriteItem(MetadataIndex("w", chunk.offsets, rank), WriteItemType.SHARD, tensor_data=data)
        plans.append(dcp.SavePlan([item], planner_data={"w": ("w",)}))
        parts.append(here)
    planner = DefaultSavePlanner()
    planner.set_up_planner({"w": whole}, is_coordinator=True)
    plans, metadata = planner.create_global_plan(plans)
    writers = [writer(folder / "run") for _ in range(ranks)]
    results = []
    for rank, one in enumerate(writers):
        one.reset("a")
        one.set_up_storage_writer(rank == 0, rank=rank)
    plans = writers[0].prepare_global_plan(plans)
    for one, plan, here in zip(writers, plans, parts, strict=True):
        planner.resolve_data = lambda item, here=here: here  # type: ignore[method-assign]
        results.append(one.write_data(plan, planner).wait())
    writers[0].finish(metadata, results)
    for one in writers:
        one.close()
    return {"w": whole}


def changed_metadata(folder: Path, change: Any) -> None:
    file = folder / ".metadata"
    metadata = pickle.loads(file.read_bytes())
    file.write_bytes(pickle.dumps(change(metadata) or metadata))


class Evil:
    def __reduce__(self) -> Any:
        return (os.mkdir, ("exploited",))


def test_files_that_are_none_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    state = {"w": torch.arange(1000.0), "step": 7}
    good = tmp_path / "good"
    dcp.save(state, checkpoint_id=good, no_dist=True)

    def refused(kind: type[Exception], match: str, change: Any) -> None:
        bad = tmp_path / "bad"
        shutil.copytree(good, bad)
        try:
            change(bad)
            with pytest.raises(kind, match=match):
                from_files(bad, tmp_path / "run", "a", disk="64MiB")
        finally:
            shutil.rmtree(bad)

    def place(change: Any) -> Any:
        def apply(metadata: Any) -> None:
            for info in metadata.storage_data.values():
                change(info)

        return lambda folder: changed_metadata(folder, apply)

    def planner_data(value: Any) -> Any:
        return lambda folder: changed_metadata(folder, lambda metadata: setattr(metadata, "planner_data", value))

    def set_to(name: str, value: Any) -> Any:
        return place(lambda info: setattr(info, name, value))

    refused(errors.CheckpointNotFound, r"\.metadata", lambda folder: (folder / ".metadata").unlink())
    refused(errors.InvalidType, r"posix\.mkdir", planner_data(Evil()))
    refused(errors.InvalidArgument, "no metadata", lambda folder: changed_metadata(folder, lambda _: {"a": 1}))
    refused(errors.CorruptCheckpoint, "no metadata", lambda folder: (folder / ".metadata").write_bytes(b"\x80\x04no"))
    refused(errors.InvalidArgument, "'w'|'step'", set_to("relative_path", "../good/__0_0.distcp"))
    refused(errors.InvalidArgument, "'w'|'step'", set_to("relative_path", "/etc/passwd"))
    refused(errors.InvalidArgument, "'w'|'step'", set_to("offset", -1))
    refused(errors.CorruptCheckpoint, "'w'|'step'", set_to("relative_path", "missing"))
    refused(errors.CorruptCheckpoint, "'w'", set_to("offset", 1 << 40))
    refused(
        errors.InvalidArgument,
        "'w'|'step'",
        lambda folder: changed_metadata(folder, lambda metadata: metadata.state_dict_metadata.clear()),
    )

    def forget_w(metadata: Any) -> None:
        metadata.storage_data = {index: info for index, info in metadata.storage_data.items() if index.fqn != "w"}

    refused(errors.InvalidArgument, "'w'", lambda folder: changed_metadata(folder, forget_w))

    def larger(metadata: Any) -> None:
        metadata.state_dict_metadata["w"].chunks[0].sizes = torch.Size([1 << 40])

    refused(errors.CorruptCheckpoint, "'w'", lambda folder: changed_metadata(folder, larger))
    assert not (tmp_path / "exploited").exists()
    with Reader(tmp_path / "run") as reader:
        assert reader.checkpoints() == ()
    from_files(good, tmp_path / "run", "a", disk="64MiB")
    assert alike(load(tmp_path / "run", emptied(state)), state)


def test_the_store_of_a_rank_has_the_device_of_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DCP uploads in a thread in which device 0 is current, of which this process has no context."""
    main, opened = threading.main_thread(), []

    def opening(path: Path, *, device: Any, **budgets: Any) -> velocpy.Store:
        opened.append(device)
        return opens(path, **budgets)

    opens = velocpy.open
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3 if threading.current_thread() is main else 0)
    monkeypatch.setattr(torch._C, "_cuda_hasPrimaryContext", lambda device: device == 3, raising=False)
    monkeypatch.setattr(velocpy, "open", opening)
    with Writer(tmp_path, host="1MiB", disk="64MiB") as writer:
        thread = threading.Thread(target=writer.set_up_storage_writer, args=(True,), kwargs={"rank": 3})
        thread.start()
        thread.join()
    assert opened == [{3: 2 << 20}]
