"""States staged for dcp.async_save: exact, independent of their sources, in memory that is used again."""

from __future__ import annotations

import gc
import threading
import time
import warnings
from collections import OrderedDict, defaultdict, namedtuple
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RunPython

from velocpy import errors

torch = pytest.importorskip("torch")

import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.staging import AsyncStager  # noqa: E402

from velocpy.dcp import Reader, Stager, Writer  # noqa: E402
from velocpy.dcp.slab import Pool, Slab  # noqa: E402
from velocpy.dcp.sources import Sources  # noqa: E402

#: DCP warns where there is one process alone.
pytestmark = [
    pytest.mark.usefixtures("frozen_imports"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

Pair = namedtuple("Pair", "first second")


def staged(state: Any, **options: Any) -> Any:
    with Stager(**options) as stager:
        future = stager.stage(state)
        return future.result(10)


def bits(tensor: Any) -> bytes:
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()) if tensor.numel() else b""


def same(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b)


def addresses(*tensors: Any) -> set[int]:
    return {tensor.untyped_storage().data_ptr() for tensor in tensors}


GRID = torch.arange(240, dtype=torch.float32).reshape(12, 20)

TENSORS = {
    "plain": GRID,
    "turned": GRID.T,
    "row": GRID[3],
    "column": GRID[:, 3],
    "holes": GRID[::3, ::4],
    "expanded": torch.arange(4.0).expand(5, 4),
    "scalar": torch.tensor(7),
    "empty": torch.zeros(0, 3),
    "nan": torch.tensor([float("nan"), -0.0, 1e-45]),
    "half": torch.arange(33).bfloat16(),
    "float8": torch.arange(16.0).to(torch.float8_e4m3fn),
    "bool": torch.tensor([True, False, True]),
    "complex": torch.arange(5).to(torch.complex128) * 1j,
    "conjugate": torch.tensor([1 + 2j, 3 - 4j]).conj(),
    "channels last": torch.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "parameter": torch.nn.Parameter(torch.ones(3)),
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_is_staged_bit_by_bit(name: str) -> None:
    got = staged({"x": TENSORS[name]})["x"]
    assert same(got, TENSORS[name].resolve_conj())
    assert not got.requires_grad
    assert got.untyped_storage().data_ptr() not in addresses(TENSORS[name]) or not got.numel()


def test_all_of_them_at_once_share_what_their_sources_share() -> None:
    got = staged(TENSORS)
    assert all(same(got[name], tensor.resolve_conj()) for name, tensor in TENSORS.items())
    assert len(addresses(*(got[name] for name in ("plain", "turned", "row", "column", "holes")))) == 1
    assert got["turned"].stride() == GRID.T.stride()
    assert got["channels last"].is_contiguous(memory_format=torch.channels_last)


def test_a_tensor_alone_in_its_storage_is_so_in_the_copy() -> None:
    """DCP's writers copy tensors that have part of a storage."""
    got = staged({"a": torch.ones(5), "b": torch.ones(7, 3)})
    for tensor in got.values():
        assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


def test_tied_tensors_are_copied_once() -> None:
    model = torch.nn.ModuleDict({"embed": torch.nn.Embedding(64, 32), "head": torch.nn.Linear(32, 64, bias=False)})
    model["head"].weight = model["embed"].weight
    with Stager() as stager:
        got = stager.stage(model.state_dict()).result(10)
        assert stager.nbytes == 64 * 32 * 4
    assert got["embed.weight"].data_ptr() == got["head.weight"].data_ptr()


def test_the_memory_is_as_large_as_the_state() -> None:
    sizes = [1000, 3, 100_000, 64]
    with Stager() as stager:
        stager.stage({str(n): torch.ones(n) for n in sizes}).result(10)
        assert sum(sizes) * 4 <= stager.nbytes < sum(sizes) * 4 + 64 * len(sizes)
        assert stager.pinned_nbytes == 0  # nothing comes from a CUDA device


def test_views_of_several_dtypes_keep_their_places() -> None:
    raw = torch.arange(64, dtype=torch.uint8)
    views = {"bytes": raw[1:7], "floats": raw[4:20].view(torch.float32), "longs": raw[16:48].view(torch.int64)}
    got = staged(views)
    assert all(same(got[name], view) for name, view in views.items())


def test_a_small_view_of_a_large_storage_takes_little() -> None:
    with Stager() as stager:
        stager.stage({"x": torch.zeros(1_000_000)[5000:5010]}).result(10)
        assert stager.nbytes <= 64


def test_the_copy_does_not_follow_its_source() -> None:
    state = {"x": torch.ones(1000), "n": np.ones(3), "list": [1, 2]}
    got = staged(state)
    state["x"].zero_()
    state["n"][:] = 0
    state["list"].append(3)
    assert bool((got["x"] == 1).all())
    assert got["n"].tolist() == [1, 1, 1]
    assert got["list"] == [1, 2]


def test_containers_and_objects_come_back_as_they_were() -> None:
    state = {
        "nested": OrderedDict(a=[torch.ones(2), (torch.zeros(1), "text")], b=None),
        "default": defaultdict(list, {3: [torch.ones(1)]}),
        "pair": Pair(torch.ones(1), 2),
        "set": {1, 2},
    }
    got = staged(state)
    assert type(got["nested"]) is OrderedDict
    assert type(got["nested"]["a"][1]) is tuple
    assert got["default"].default_factory is list
    assert type(got["pair"]) is Pair
    assert got["set"] == {1, 2}
    assert got["set"] is not state["set"]
    assert state["nested"]["a"][0].data_ptr() != got["nested"]["a"][0].data_ptr()


def test_sparse_and_meta_tensors_are_staged() -> None:
    sparse = torch.eye(3).to_sparse()
    got = staged({"sparse": sparse, "meta": torch.empty(2, device="meta")})
    assert torch.equal(got["sparse"].to_dense(), torch.eye(3))
    assert got["meta"].is_meta


def test_an_object_that_cannot_be_copied_is_named() -> None:
    with Stager() as stager:
        with pytest.raises(errors.InvalidType, match=r"optimizer.lock.*of type lock"):
            stager.stage({"w": torch.ones(1), "optimizer": {"lock": threading.Lock()}})
        assert stager.nbytes == 0
        assert stager.stage({"w": torch.ones(1)}).result(10)["w"].item() == 1


def test_a_tensor_without_memory_is_named() -> None:
    freed = torch.ones(10)
    freed.untyped_storage().resize_(0)
    with Stager() as stager, pytest.raises(errors.InvalidType, match=r"model\.w.*freed"):
        stager.stage({"model": {"w": freed}})


def test_a_state_that_holds_itself_is_refused() -> None:
    state: dict[str, Any] = {}
    state["again"] = state
    with Stager() as stager, pytest.raises(errors.InvalidType, match="holds itself"):
        stager.stage(state)


def test_memory_is_used_again() -> None:
    with Stager() as stager:
        first = stager.stage({"x": torch.ones(5000)}).result(10)["x"]
        at = first.data_ptr()
        del first
        for number in range(3):
            got = stager.stage({"x": torch.full((4000,), float(number))}).result(10)["x"]
            assert got.data_ptr() == at
            assert bool((got == number).all())
            del got
        assert stager.nbytes == 20_000
        stager.stage({"x": torch.ones(6000)}).result(10)
        assert stager.nbytes == 24_000  # of its exact size again


def test_a_state_in_use_is_not_written_over() -> None:
    with Stager(buffers=2, timeout=0.2) as stager:
        one, two = (stager.stage({"x": torch.full((100,), float(n))}).result(10) for n in (1, 2))
        with pytest.raises(errors.WaitTimeout, match="2 states staged before"):
            stager.stage({"x": torch.zeros(100)})
        assert one["x"][0] == 1
        assert two["x"][0] == 2
        view = two.pop("x")[50:]
        one.clear()
        assert stager.stage({"x": torch.zeros(100)}).result(10)["x"][0] == 0
        assert bool((view == 2).all())


def test_stage_waits_for_memory_that_comes_back() -> None:
    with Stager(buffers=1) as stager:
        held = [stager.stage({"x": torch.ones(100)}).result(10)]
        timer = threading.Timer(0.2, held.clear)
        timer.start()
        assert stager.stage({"x": torch.zeros(100)}).result(10)["x"][0] == 0
        timer.join()


class Gate(Stager):
    """A stager whose worker waits."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.opened = threading.Event()

    def _copy(self, *arguments: Any) -> None:
        assert self.opened.wait(10)
        super()._copy(*arguments)


def test_a_second_save_before_the_first_state_is_copied_is_refused() -> None:
    with Gate() as stager:
        future = stager.stage({"x": torch.ones(3)})
        assert not future.done()
        with pytest.raises(errors.StagerBusy, match="staging_completion"):
            stager.stage({"x": torch.ones(3)})
        stager.opened.set()
        assert bool((future.result(10)["x"] == 1).all())
        stager.stage({"x": torch.ones(3)}).result(10)


def test_synchronize_staging_waits_and_warns_of_nothing() -> None:
    with Gate() as stager, warnings.catch_warnings():
        warnings.simplefilter("error")
        stager.synchronize_staging()
        future = stager.stage({"x": torch.ones(3)})
        threading.Timer(0.1, stager.opened.set).start()
        stager.synchronize_staging()
        assert future.done()


def test_a_closed_stager_is_refused_and_its_states_stay() -> None:
    stager = Stager()
    state = stager.stage({"x": torch.ones(1000)}).result(10)
    stager.close()
    stager.close()
    with pytest.raises(errors.StagerClosed):
        stager.stage({"x": torch.ones(3)})
    assert bool((state["x"] == 1).all())
    del state
    gc.collect()
    assert stager.nbytes == 0


def test_memory_that_the_system_refuses_is_an_error_of_the_future() -> None:
    with Stager() as stager:
        future = stager.stage({"x": torch.empty(1 << 46, device="meta"), "y": torch.ones(1)})
        future.result(10)
        with pytest.raises(errors.TierFull):
            Slab(1 << 60, None)
    pool = Pool(1)
    assert pool.take(0) is None
    with pytest.raises(errors.TierFull):
        pool.fitting(None, 1 << 60, None)
    assert pool.take(0) is None  # may be tried again


def test_reserve_makes_the_memory_ahead() -> None:
    with Stager() as stager:
        stager.reserve({"x": torch.ones(1000)})
        assert stager.nbytes == 4000
        stager.stage({"x": torch.ones(1000)}).result(10)
        assert stager.nbytes == 4000


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(errors.InvalidArgument):
        Stager(buffers=0)


@pytest.mark.parametrize("wait", [False, True])
def test_async_save_takes_it(tmp_path: Path, wait: bool) -> None:
    state = {"model": {"w": torch.arange(1000.0), "tied": GRID.T}, "step": 3, "list": [torch.ones(2), "text"]}
    expected = {"w": torch.arange(1000.0), "tied": GRID.T.clone()}
    with Writer(tmp_path, host="16MiB", disk="64MiB") as writer, Stager(wait=wait, buffers=1) as stager:
        assert isinstance(stager, AsyncStager)
        assert not stager.should_synchronize_after_execute
        for number in range(3):
            state["step"] = number
            got = dcp.async_save(
                state, storage_writer=writer, checkpoint_id=f"s{number}", async_stager=stager, no_dist=True
            )
            if wait:
                assert isinstance(got, Future)
                upload = got
            else:
                got.staging_completion.result(10)
                upload = got.upload_completion
            state["model"]["w"].add_(1)
            upload.result(30)
        assert stager.nbytes < 4000 + 960 + 64 * 3  # one slab, given back by the uploads
    for number in range(3):
        loaded = {
            "model": {"w": torch.zeros(1000), "tied": torch.zeros(20, 12)},
            "step": 0,
            "list": [torch.zeros(2), ""],
        }
        with Reader(tmp_path) as reader:
            dcp.load(loaded, storage_reader=reader, checkpoint_id=f"s{number}", no_dist=True)
        assert torch.equal(loaded["model"]["w"], expected["w"] + number)
        assert torch.equal(loaded["model"]["tied"], expected["tied"])
        assert loaded["step"] == number


class Failing(Writer):
    """A writer whose disk fails."""

    def write_data(self, *arguments: Any) -> Any:
        raise OSError(28, "No space left on device")


def test_memory_of_uploads_that_failed_comes_back(tmp_path: Path) -> None:
    with Failing(tmp_path, host="16MiB", disk="64MiB") as writer, Stager(buffers=2, timeout=5) as stager:
        for _ in range(5):
            saved = dcp.async_save(
                {"w": torch.ones(1000)}, storage_writer=writer, checkpoint_id="a", async_stager=stager, no_dist=True
            )
            saved.staging_completion.result(10)
            with pytest.raises(dcp.api.CheckpointException, match="No space left"):
                saved.upload_completion.result(30)
            del saved
        assert stager.nbytes <= 8000


def test_an_upload_fails_with_the_error_of_the_staging(tmp_path: Path) -> None:
    class Broken(Stager):
        def _copy(self, *arguments: Any) -> None:
            time.sleep(0.2)  # a device fails later
            raise RuntimeError("CUDA error: an illegal memory access")

    with Writer(tmp_path, host="16MiB", disk="64MiB") as writer, Broken() as stager:
        saved = dcp.async_save(
            {"w": torch.ones(3)}, storage_writer=writer, checkpoint_id="a", async_stager=stager, no_dist=True
        )
        for future in (saved.staging_completion, saved.upload_completion):
            with pytest.raises(errors.TierIOError, match="illegal memory access"):
                future.result(10)


def test_the_file_writer_of_dcp_reads_what_it_staged(tmp_path: Path) -> None:
    with Stager() as stager:
        got = dcp.async_save({"w": GRID.clone()}, checkpoint_id=tmp_path / "a", async_stager=stager, no_dist=True)
        got.upload_completion.result(30)
    loaded = {"w": torch.zeros(12, 20)}
    dcp.load(loaded, checkpoint_id=tmp_path / "a", no_dist=True)
    assert torch.equal(loaded["w"], GRID)


def test_the_local_part_of_a_dtensor_is_staged(tmp_path: Path, run_python: RunPython) -> None:
    """In a process of its own: a process group leaves descriptors behind."""
    done = run_python(
        """
        import sys, warnings
        import torch
        import torch.distributed.checkpoint as dcp
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Shard, distribute_tensor
        from velocpy.dcp import Stager

        warnings.simplefilter("ignore")
        folder = sys.argv[1]
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=0, world_size=1)
        grid = torch.arange(240.0).reshape(12, 20)
        state = {"w": distribute_tensor(grid.clone(), init_device_mesh("cpu", (1,)), [Shard(0)])}
        with Stager() as stager:
            got = stager.stage(state).result(10)["w"]
            state["w"].to_local().zero_()
            assert isinstance(got, DTensor) and got.placements == (Shard(0),)
            assert torch.equal(got.to_local(), grid)
            state["w"].to_local().add_(5)
            dcp.async_save(state, checkpoint_id=f"{folder}/a", async_stager=stager).upload_completion.result(30)
        loaded = {"w": torch.zeros(12, 20)}
        dcp.load(loaded, checkpoint_id=f"{folder}/a")
        assert bool((loaded["w"] == 5).all())
        torch.distributed.destroy_process_group()
        print("done")
        """,
        str(tmp_path),
    )
    assert done.stdout == "done\n", done.stderr


def test_views_of_another_shape_are_staged_as_such() -> None:
    base = torch.arange(8, dtype=torch.uint8)
    with Stager(wait=True) as stager:
        staged = stager.stage({"a": base, "b": base[3].expand(8), "c": base[::2]})
        assert staged["a"].tolist() == list(range(8))
        assert staged["b"].tolist() == [3] * 8
        assert staged["c"].tolist() == [0, 2, 4, 6]


def test_tensors_of_one_array_that_differ_in_length() -> None:
    array = np.arange(8.0)
    with Stager(wait=True, timeout=5) as stager:
        for _ in range(3):
            staged = stager.stage({"a": torch.from_numpy(array[:2]), "b": torch.from_numpy(array)})
            assert staged["a"].tolist() == [0, 1]
            assert staged["b"].tolist() == list(range(8))


def test_a_state_that_cannot_be_arranged_leaves_the_memory_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(sources: Sources) -> None:
        raise RuntimeError("no")

    with Stager(wait=True, buffers=1, timeout=5) as stager:
        with monkeypatch.context() as patched:
            patched.setattr(Sources, "arrange", fails)
            for _ in range(3):
                with pytest.raises(RuntimeError, match="no"):
                    stager.stage({"x": torch.ones(4)})
        assert stager.stage({"x": torch.ones(4)})["x"].tolist() == [1] * 4
