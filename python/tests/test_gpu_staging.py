"""States staged from CUDA devices for dcp.async_save: bitwise, in the order of the caller's stream, pinned once."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from velocpy import errors

torch = pytest.importorskip("torch")

import torch.distributed.checkpoint as dcp  # noqa: E402

from velocpy.dcp import Stager  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]


def same(a: Any, b: Any) -> bool:
    def raw(tensor: Any) -> Any:
        return tensor.detach().cpu().resolve_conj().contiguous().reshape(-1).view(torch.uint8)

    return a.dtype == b.dtype and a.shape == b.shape and (not a.numel() or torch.equal(raw(a), raw(b)))


def state_of(device: str) -> dict[str, Any]:
    grid = torch.randn(512, 1024, device=device)
    return {
        "large": torch.randn(16 << 20, device=device),
        "grid": grid,
        "turned": grid.T,
        "column": grid[:, 5],
        "holes": torch.randn(64, 64, device=device)[:, ::4],
        "half": torch.randn(1001, device=device).bfloat16(),
        "float8": torch.randn(64, device=device).to(torch.float8_e4m3fn),
        "empty": torch.zeros(0, 2, device=device),
        "conjugate": torch.randn(9, dtype=torch.complex64, device=device).conj(),
        "host": torch.randn(100),
        "nested": [{"step": 3, "w": torch.randn(7, device=device)}],
    }


def leaves(node: Any) -> Any:
    if isinstance(node, torch.Tensor):
        yield node
    elif isinstance(node, dict):
        for child in node.values():
            yield from leaves(child)
    elif isinstance(node, list):
        for child in node:
            yield from leaves(child)


@pytest.mark.parametrize("wait", [False, True])
def test_a_state_is_staged_bitwise_and_does_not_follow_its_sources(wait: bool) -> None:
    state = state_of("cuda")
    expected = [tensor.clone() for tensor in leaves(state)]
    with Stager(wait=wait) as stager:
        for _ in range(2):
            got = stager.stage(state)
            got = got if wait else got.result(60)
            sources = [tensor for tensor in leaves(state) if not tensor.is_conj()]
            kept = [tensor.clone() for tensor in sources]
            for tensor in sources:
                tensor.copy_(torch.zeros_like(tensor, dtype=torch.float32))
            torch.cuda.synchronize()
            copies = list(leaves(got))
            assert len(copies) == len(expected)
            assert all(not copied.is_cuda for copied in copies)
            assert all(same(copied, source) for copied, source in zip(copies, expected, strict=True))
            for tensor, before in zip(sources, kept, strict=True):
                tensor.copy_(before)
            del got, copies
        assert stager.pinned_nbytes == stager.nbytes  # one slab


def test_the_memory_is_pinned_at_its_exact_size() -> None:
    with Stager() as stager:
        got = stager.stage({"w": torch.ones((33 << 20) + 12, dtype=torch.uint8, device="cuda")}).result(60)
        assert stager.pinned_nbytes == (33 << 20) + 12
        assert got["w"].is_pinned()


def test_work_of_the_current_stream_comes_first() -> None:
    stream = torch.cuda.Stream()
    tensor = torch.zeros(8 << 20, device="cuda")
    torch.cuda.synchronize()
    with Stager() as stager:
        stager.reserve({"x": tensor})
        for number in range(1, 11):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(20_000_000)
                tensor.fill_(number)
                future = stager.stage({"x": tensor})
            got = future.result(60)["x"]
            with torch.cuda.stream(stream):
                tensor.fill_(-1)
            assert bool((got == number).all())
            del got


def test_the_current_stream_goes_on_meanwhile() -> None:
    """The device works on while a state is staged; what the state does not have may be changed."""
    tensor = torch.ones(64 << 20, device="cuda")
    other = torch.zeros(1 << 20, device="cuda")
    with Stager() as stager:
        stager.reserve({"x": tensor})
        future = stager.stage({"x": tensor})
        for _ in range(200):
            other.add_(1)
        assert bool((future.result(60)["x"] == 1).all())
        assert bool((other == 200).all())


def test_a_source_that_is_freed_while_it_is_copied_is_staged_as_it_was() -> None:
    with Stager() as stager:
        for number in range(1, 21):
            tensor = torch.full((4 << 20,), float(number), device="cuda")
            future = stager.stage({"x": tensor})
            del tensor
            torch.full((4 << 20,), -1.0, device="cuda")  # would have its memory, were it free
            assert bool((future.result(60)["x"] == number).all())


def test_memory_is_unregistered_in_the_end() -> None:
    for _ in range(8):
        with Stager() as stager:
            state = stager.stage({"x": torch.ones(32 << 20, device="cuda")}).result(60)
        assert bool((state["x"] == 1).all())
        del state
        assert stager.nbytes == 0


def test_a_stager_that_is_forgotten_unregisters_its_memory() -> None:
    import gc

    tensor = torch.ones(8 << 20, device="cuda")
    for _ in range(8):  # memory at an address that is still registered cannot be registered again
        stager = Stager()
        stager.stage({"x": tensor}).result(60)
        assert stager.pinned_nbytes == 32 << 20
        del stager
        gc.collect()


def test_a_stager_that_staged_host_tensors_pins_for_a_device() -> None:
    with Stager(buffers=1) as stager:
        stager.stage({"x": torch.ones(1000)}).result(60)
        assert stager.pinned_nbytes == 0
        stager.stage({"x": torch.ones(1000, device="cuda")}).result(60)
        assert stager.pinned_nbytes == 4000


def test_no_memory_is_an_error_of_the_future_and_the_stager_works_on(monkeypatch: pytest.MonkeyPatch) -> None:
    import mmap

    real = mmap.mmap

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise OSError(12, "Cannot allocate memory")

    with Stager() as stager:
        monkeypatch.setattr(mmap, "mmap", refuse)
        with pytest.raises(errors.TierFull):
            stager.stage({"x": torch.ones(1000, device="cuda")}).result(60)
        monkeypatch.setattr(mmap, "mmap", real)
        assert bool((stager.stage({"x": torch.ones(1000, device="cuda")}).result(60)["x"] == 1).all())


def test_memory_that_cuda_does_not_register_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def cudaHostRegister(self, *arguments: Any) -> int:
            return 2

    with Stager() as stager:
        monkeypatch.setattr(torch.cuda, "cudart", Refusing)
        got = stager.stage({"x": torch.ones(1 << 20, device="cuda")}).result(60)["x"]
        assert bool((got == 1).all())
        assert stager.pinned_nbytes == 0


def test_a_registration_that_fails_leaves_no_error_behind() -> None:
    tensor = torch.ones(1000, device="cuda")
    with Stager() as stager:
        got = stager.stage({"x": tensor}).result(60)["x"]
        # Registering the same memory twice fails.
        failed = int(torch.cuda.cudart().cudaHostRegister(got.data_ptr(), 4000, 1))
        assert failed
        with contextlib.suppress(RuntimeError):
            torch.zeros(1, device="cuda")
        assert tensor.add(1).sum().item() == 2000


def test_async_save_writes_the_state_of_the_call(tmp_path: Path) -> None:
    model = torch.nn.Linear(1024, 1024, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    with Stager() as stager:
        for number in range(3):
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            expected = {name: tensor.clone() for name, tensor in state["model"].items()}
            saved = dcp.async_save(state, checkpoint_id=tmp_path / str(number), async_stager=stager, no_dist=True)
            saved.staging_completion.result(60)
            optimizer.step()
            saved.upload_completion.result(60)
            loaded = {"model": {name: torch.zeros_like(tensor) for name, tensor in expected.items()}}
            dcp.load(loaded, checkpoint_id=tmp_path / str(number), no_dist=True)
            assert all(torch.equal(loaded["model"][name], tensor) for name, tensor in expected.items())


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one CUDA device")
def test_a_state_on_two_devices_is_staged() -> None:
    state = {"a": torch.ones(1 << 20, device="cuda:0"), "b": torch.full((1 << 20,), 2.0, device="cuda:1")}
    with Stager() as stager:
        got = stager.stage(state).result(60)
        assert bool((got["a"] == 1).all())
        assert bool((got["b"] == 2).all())
