"""How long ``dcp.async_save`` keeps a training from changing its state: velocpy's stager beside those of PyTorch."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

from velocpy.bench.report import Report
from velocpy.bench.timing import median

from . import peers

#: The largest tensor of the state, and how many small ones it has.
LARGE, SMALL = 128 << 20, 200

#: Bytes of the state where they are not given: on a device with this much memory free, on another one, on the host.
SIZES = (16 << 30, 1 << 30, 512 << 20)
ROOMY = 40 << 30

OURS, OURS_BLOCKING = "Stager", "Stager(wait=True)"
DEFAULT, ALL = "DefaultStager as async_save makes it", "peers.stager()"
SHARED = "DefaultStager with shared memory, in a thread"


def run(total: int | None = None, rounds: int = 9) -> Report:
    """Saves the state of a training with Adam again and again; the writer reads all tensors and writes nothing.

    Blocked is the time from the call until the state may be changed, in a training that does nothing else meanwhile.
    The ceiling is one copy of as many bytes out of one tensor into one piece of pinned memory.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if total is None:
        free = torch.cuda.mem_get_info()[0] if device == "cuda" else 0
        total = SIZES[2] if device == "cpu" else SIZES[0] if free > ROOMY else SIZES[1]
    state = _state(total, device)
    nbytes = sum(tensor.nbytes for tensor in _tensors(state))
    report = Report("staging", {"rounds": rounds, "device": device, "bytes": nbytes, "torch": torch.__version__})
    took: dict[str, list[tuple[float, float]]] = {}
    differ = 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of one process alone
        stagers = {name: stack.enter_context(contextlib.closing(made)) for name, made in _stagers(device).items()}
        first = {}
        for name, stager in stagers.items():
            began = time.perf_counter()
            differ += _checked(state, stager)
            first[name] = time.perf_counter() - began
        copies = list(_copies(nbytes, rounds, device))
        names = list(stagers)
        for number in range(rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                took.setdefault(name, []).append(_lap(state, stagers[name]))
        ours = stagers[OURS]
        held = {"host bytes by those of the state": ours.nbytes / nbytes, "pinned": ours.pinned_nbytes / nbytes}
    copy = median(copies)
    report.measure({"copy of as many bytes, s": copy, "copy, GB/s": nbytes / copy / 1e9})
    blocked = {name: median([whole for _, whole in laps]) for name, laps in took.items()}
    for name, laps in took.items():
        report.rows.append(
            {
                "stager": name,
                "async_save(), ms": median([call for call, _ in laps]) * 1e3,
                "blocked, ms": blocked[name] * 1e3,
                "blocked, by the copy": blocked[name] / copy,
                "first save with its check, s": first[name],
                **(held if name == OURS else {}),
            }
        )
    if device == "cuda":
        report.bar(f"blocked time, {ALL} by {OURS}", blocked[ALL] / blocked[OURS], 2, at_least=True)
        report.bar(f"blocked time of {OURS} beyond the copy, ms", (blocked[OURS] - copy) * 1e3, 5, at_least=False)
        report.bar(f"pinned bytes of {OURS} by those of the state", held["pinned"], 1.01, at_least=False)
    else:
        report.remark("the state lies in host memory: nothing is pinned, and no option of CUDA is used.")
    report.remark(*peers.remarks())
    report.never("bytes that differ from those of the state at the call", differ)
    return report


def _state(total: int, device: str) -> dict[str, Any]:
    """Weights, their two moments, small tensors, and an optimizer's numbers."""
    import torch

    small = max(1, min(SMALL, total // (64 << 10)))
    each = (total - 3 * small * 4096) // 3
    sizes = [LARGE] * (each // LARGE) + ([each % LARGE] if each % LARGE >= 4 else [])
    generator = torch.Generator(device).manual_seed(0)

    def made(nbytes: int) -> Any:
        return torch.rand(nbytes // 4, generator=generator, device=device)

    def group() -> dict[str, Any]:
        large = {f"layers.{n}.weight": made(nbytes) for n, nbytes in enumerate(sizes)}
        return large | {f"layers.{n}.bias": made(4096) for n in range(small)}

    model, first, second = group(), group(), group()
    steps = {name: {"step": torch.tensor(7.0), "exp_avg": first[name], "exp_avg_sq": second[name]} for name in model}
    return {"model": model, "optimizer": {"state": steps, "lr": 1e-3}}


def _tensors(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        for child in node.values():
            yield from _tensors(child)
    elif hasattr(node, "nbytes"):
        yield node


def _stagers(device: str) -> dict[str, Any]:
    from velocpy.dcp import Stager

    stagers: dict[str, Any] = {OURS: Stager(), OURS_BLOCKING: Stager(wait=True)}
    stagers[DEFAULT] = peers.stager(False, False, False, False)
    if device == "cuda":
        stagers[ALL] = peers.stager()
    else:
        stagers[SHARED] = peers.stager(False, True, True, False)
    return stagers


def _writer(gate: threading.Event, seen: list[tuple[str, Any]] | None) -> Any:
    """A writer that asks for all items, behind a gate; it notes them, or drops them."""
    from torch.distributed.checkpoint.storage import StorageWriter
    from torch.futures import Future

    class Reading(StorageWriter):
        def reset(self, checkpoint_id: Any = None) -> None:
            pass

        def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
            pass

        def prepare_local_plan(self, plan: Any) -> Any:
            return plan

        def prepare_global_plan(self, plans: Any) -> Any:
            return plans

        def write_data(self, plan: Any, planner: Any) -> Any:
            gate.wait()
            for item in plan.items:
                data = planner.resolve_data(item)
                if seen is not None:
                    seen.append((item.index.fqn, data))
            done: Any = Future()
            done.set_result([])
            return done

        def finish(self, metadata: Any, results: Any) -> None:
            pass

        @classmethod
        def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
            return True

    return Reading()


def _save(state: dict[str, Any], stager: Any, writer: Any) -> tuple[float, float, Any]:
    """Seconds in async_save, seconds until the state may be changed, and the future of the upload."""
    from torch.distributed.checkpoint.state_dict_saver import async_save

    _wait()
    began = time.perf_counter()
    saved = async_save(state, storage_writer=writer, checkpoint_id="a", async_stager=stager, no_dist=True)
    called = time.perf_counter() - began
    staging = getattr(saved, "staging_completion", None)
    if staging is not None:
        staging.result()
    whole = time.perf_counter() - began
    return called, whole, getattr(saved, "upload_completion", saved)


def _lap(state: dict[str, Any], stager: Any) -> tuple[float, float]:
    gate = threading.Event()
    gate.set()
    called, whole, upload = _save(state, stager, _writer(gate, None))
    upload.result()
    return called, whole


def _checked(state: dict[str, Any], stager: Any) -> int:
    """The tensors that are not what the state was at the call, when it has been changed since."""
    import torch

    gate, seen = threading.Event(), []  # type: ignore[var-annotated]
    expected = {name: tensor.sum(dtype=torch.float64).item() for name, tensor in _named(state, "")}
    some = list(_named(state, ""))[:: max(1, len(expected) // 64)]
    exact = {name: tensor.to("cpu", copy=True) for name, tensor in some}
    _, _, upload = _save(state, stager, _writer(gate, seen))
    for tensor in _tensors(state):
        tensor.add_(1)
    _wait()
    gate.set()
    upload.result()
    got = {name: data for name, data in seen if isinstance(data, torch.Tensor)}
    differ = len(expected.keys() - got.keys())
    for name, data in got.items():
        same = name not in exact or torch.equal(data, exact[name])
        total = data.sum(dtype=torch.float64).item()
        differ += not same or abs(total - expected[name]) > 1e-6 * max(1.0, abs(total))
    seen.clear()  # the writer's class refers to it in a circle, and would keep the stager's memory lent
    return differ


def _named(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The tensors by the names that DCP gives them."""
    if isinstance(node, dict):
        for key, child in node.items():
            yield from _named(child, f"{path}.{key}" if path else key)
    elif hasattr(node, "nbytes"):
        yield path, node


def _copies(nbytes: int, rounds: int, device: str) -> Iterator[float]:
    """Seconds of one copy of as many bytes into memory that is ready."""
    import torch

    source = torch.ones(nbytes, dtype=torch.uint8, device=device)  # pages that were never written are all one page
    slab = torch.zeros(nbytes, dtype=torch.uint8)
    if device == "cuda":
        cudart: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        assert int(cudart.cudaHostRegister(slab.data_ptr(), nbytes, 0)) == 0
    try:
        for number in range(rounds + 1):
            _wait()
            began = time.perf_counter()
            slab.copy_(source, non_blocking=True)
            _wait()
            if number:
                yield time.perf_counter() - began
    finally:
        if device == "cuda":
            cudart.cudaHostUnregister(slab.data_ptr())


def _wait() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()
