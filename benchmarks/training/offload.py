"""Steps of a transformer whose saved tensors leave the device, beside other ways to need less memory.

Every way trains the same model with the same numbers in one process, in turns; gradients are compared bit by bit.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click

import velocpy
from benchmarks.engines.contenders import has_gpu
from benchmarks.engines.software import software
from velocpy.bench.report import Report
from velocpy.bench.timing import by_turns, median

MIB, GIB = 1 << 20, 1 << 30


class Setting(NamedTuple):
    """A model and its input, and whether its blocks are computed again in the backward pass."""

    name: str
    layers: int
    width: int
    batch: int
    length: int
    recomputes: bool
    #: Part of the saved bytes that "velocpy part" keeps on the device, so that the link has time for the rest.
    stays: float = 0.75


SETTINGS = (
    Setting("long sequences", 8, 4096, 1, 8192, False),
    Setting("short sequences", 12, 2048, 32, 512, False, stays=0.9),
    Setting("recomputed blocks", 16, 4096, 2, 4096, True),
)
STEPS = 2
"""Steps of one measurement."""
HOST = 40 * GIB
STASH = 512 * MIB

_COPIED = 256 * MIB
_TENSORS = 500
"""Saved tensors of the graph by which the host's time is measured."""


class Way(NamedTuple):
    """How a step is done: the context of the forward pass, and whether blocks are computed again."""

    name: str
    context: Callable[[], Any]
    recomputes: bool
    pinned: Callable[[], int]


def run(
    settings: tuple[Setting, ...] = SETTINGS,
    rounds: int = 3,
    limit: float = 150,
    host: int = HOST,
    stash: int = STASH,
) -> Report:
    """Steps in bf16 by all ways. The settings share ``limit`` seconds: each has its share, and one round that counts.

    On host memory, where there is no GPU, tensors go to a disk, and no figure means anything.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise click.ClickException("offload needs torch: pip install torch") from error
    on_gpu = has_gpu() and torch.cuda.is_available()
    report = Report("offload", {"rounds": rounds, "steps of a round": STEPS, "dtype": "bfloat16"} | software())
    report.settings |= {"device": torch.cuda.get_device_name() if on_gpu else "host memory"}
    if on_gpu:
        report.measure(_link(torch))
    began = time.monotonic()
    with _deterministic(torch):
        for number, setting in enumerate(settings, start=1):
            _play(torch, report, setting, rounds, began + limit * number / len(settings), host, stash, on_gpu)
            gc.collect()
            if on_gpu:
                torch.cuda.empty_cache()
    if on_gpu:
        _overhead(torch, report)
    else:
        report.drop_measured()
    report.notes += [
        "'step' is the time of forward and backward pass, a median of rounds; 'by none' compares medians. 'peak' is "
        "what a step needs beyond parameters and gradients that were there. 'moved' are bytes of a step. 'velocpy all' "
        "keeps nothing on the device; 'velocpy part' keeps 75 % of what is saved in long sequences, and 90 % in short "
        "ones, so that the link has time; 'velocpy auto' keeps what fits, which here is all."
    ]
    return report


@contextlib.contextmanager
def _deterministic(torch: Any) -> Iterator[None]:
    """Attention has a deterministic backward pass; memory that is not initialised stays so."""
    fills = torch.utils.deterministic.fill_uninitialized_memory
    before = torch.are_deterministic_algorithms_enabled()
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        torch.utils.deterministic.fill_uninitialized_memory = fills


def _model(torch: Any, setting: Setting, device: str) -> Any:
    functional = torch.nn.functional

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            width = setting.width
            self.heads = max(1, width // 128)
            self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.qkv(self.first(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.second(x))))

    torch.manual_seed(0)
    with torch.device(device):
        return torch.nn.ModuleList(Block().to(_dtype(torch, device)) for _ in range(setting.layers))


def _dtype(torch: Any, device: str) -> Any:
    """bfloat16, which takes processors a hundred times as long."""
    return torch.bfloat16 if device == "cuda" else torch.float32


def _step(torch: Any, model: Any, x: Any, way: Way) -> None:
    model.zero_grad(set_to_none=False)
    with way.context():
        y = x
        for block in model:
            y = torch.utils.checkpoint.checkpoint(block, y, use_reentrant=False) if way.recomputes else block(y)
        loss = y.float().square().mean()
    loss.backward()


def _play(
    torch: Any,
    report: Report,
    setting: Setting,
    rounds: int,
    until: float,
    host: int,
    stash: int,
    on_gpu: bool,
) -> None:
    device = "cuda" if on_gpu else "cpu"
    model = _model(torch, setting, device)
    x = torch.randn(setting.batch, setting.length, setting.width, dtype=_dtype(torch, device), device=device)
    plain = Way("none", contextlib.nullcontext, setting.recomputes, lambda: 0)
    with contextlib.ExitStack() as stack:
        _step(torch, model, x, plain)
        wanted = [parameter.grad.clone() for parameter in model.parameters()]
        _step(torch, model, x, plain)
        repeats = _same(torch, wanted, model)
        if not repeats:
            report.remark(
                f"{setting.name}: two steps without offload differ on this device: gradients are not compared."
            )
        saved = _saved(torch, model, x, setting, on_gpu)
        ways = _ways(torch, stack, report, setting, saved, host, stash, on_gpu, plain)
        differ = 0
        rows: dict[str, dict[str, Any]] = {}
        for way in ways:
            row: dict[str, Any] = {"setting": setting.name, "way": way.name}
            before = _moved(way)
            for _ in range(2):
                _step(torch, model, x, way)
            between = _moved(way)
            row["peak MiB"] = _peak(torch, functools.partial(_step, torch, model, x, way), on_gpu) / MIB
            row["moved MiB"] = (_moved(way) - between) / MIB if between > before else 0.0
            row["pinned MiB"] = way.pinned() / MIB
            equal = not repeats or _same(torch, wanted, model)
            differ += not equal
            row["gradients"] = "equal" if equal else "differ"
            rows[way.name] = row

        def timed(way: Way) -> Callable[[], float]:
            def measured() -> float:
                _wait(torch, on_gpu)
                began = time.perf_counter()
                for _ in range(STEPS):
                    _step(torch, model, x, way)
                _wait(torch, on_gpu)
                return (time.perf_counter() - began) / STEPS

            return measured

        laps = by_turns({way.name: timed(way) for way in ways}, rounds, seconds=max(0.0, until - time.monotonic()))
        report.settings["rounds"] = min(report.settings["rounds"], *map(len, laps.values()))  # of every setting
        steps = {name: median(taken) for name, taken in laps.items()}
        for way in ways:
            row = rows[way.name]
            row |= {"step ms": steps[way.name] * 1e3, "by none": steps[way.name] / steps["none"]}
            row |= {"peak by none": row["peak MiB"] / max(rows["none"]["peak MiB"], 1e-9)}
            row |= {"rounds counted": len(laps[way.name]), "step s of rounds": laps[way.name]}
            report.rows.append(row)
        report.never(f"{setting.name}: ways with gradients that differ", differ)
        _bars(report, setting, rows, steps, host)


def _bars(
    report: Report, setting: Setting, rows: dict[str, dict[str, Any]], steps: dict[str, float], host: int
) -> None:
    timely = "velocpy all" if setting.recomputes else "velocpy part"
    name = setting.name
    ours, none = steps[timely], steps["none"]
    report.bar(f"{name}: step of {timely} by none", ours / none, 1.03, at_least=False)
    report.bar(f"{name}: step of velocpy auto by none", steps["velocpy auto"] / none, 1.03, at_least=False)
    if setting.recomputes:
        theirs = steps["save_on_cpu"] - none
        report.bar(
            f"{name}: overhead of save_on_cpu by that of {timely}",
            theirs / max(ours - none, 1e-3 * none),
            3,
            at_least=True,
        )
    else:
        report.bar(f"{name}: peak of velocpy all by none", rows["velocpy all"]["peak by none"], 0.6, at_least=False)
    if "OffloadActivations" in steps:
        report.bar(
            f"{name}: step of velocpy all by OffloadActivations",
            steps["velocpy all"] / steps["OffloadActivations"],
            1.0,
            at_least=False,
        )
    pinned = rows["velocpy all"]["pinned MiB"] * MIB
    report.bar(f"{name}: pinned bytes by the host budget", pinned / host, 1.02, at_least=False)


def _ways(
    torch: Any,
    stack: contextlib.ExitStack,
    report: Report,
    setting: Setting,
    saved: int,
    host: int,
    stash: int,
    on_gpu: bool,
    plain: Way,
) -> list[Way]:
    again = setting.recomputes

    def ours(name: str, device: Any) -> Way:
        if on_gpu:
            made: Any = velocpy.offload(device=device, host=host, stash=stash)
        else:
            room = "1GiB" if device == "auto" else max(64 << 10, saved // 4)
            made = velocpy.offload(cpu=True, host=room, disk="4GiB", min_offload_size=4096)
        stack.callback(made.close)

        def context() -> Any:
            return made

        context.stats = made.stats  # type: ignore[attr-defined]
        return Way(name, context, again, lambda: int(made.stats()["pinned_bytes"]))

    before = _torch_pinned(torch, on_gpu)

    def save_on_cpu() -> Any:
        return torch.autograd.graph.save_on_cpu(pin_memory=on_gpu)

    ways = [plain, Way("save_on_cpu", save_on_cpu, again, lambda: _torch_pinned(torch, on_gpu) - before)]
    peer = _peer()
    if peer is not None and on_gpu:
        made = peer(use_pin_memory=True, use_streams=True)
        ways.append(Way("OffloadActivations", lambda: made, again, lambda: _torch_pinned(torch, on_gpu) - before))
    elif on_gpu:
        report.remark("OffloadActivations of TRL or torchtune is not installed here: it was not played.")
    if not again:
        ways.append(Way("recomputed blocks", contextlib.nullcontext, True, lambda: 0))
        ways.append(ours("velocpy part", int(saved * setting.stays)))
    return [*ways, ours("velocpy all", 0), ours("velocpy auto", "auto")]


def _peer() -> Any:
    """OffloadActivations, of TRL or of torchtune."""
    for module in ("trl.models.activation_offloading", "torchtune.training._activation_offloading"):
        with contextlib.suppress(ImportError, AttributeError, RuntimeError):
            return importlib.import_module(module).OffloadActivations
    return None


def _saved(torch: Any, model: Any, x: Any, setting: Setting, on_gpu: bool) -> int:
    """Bytes that a step saves and that could move."""
    probe = velocpy.offload(device=1 << 50) if on_gpu else velocpy.offload(cpu=True, host="1TiB", disk="1MiB")
    with contextlib.closing(probe):
        with probe:
            y = x
            for block in model:
                y = torch.utils.checkpoint.checkpoint(block, y, use_reentrant=False) if setting.recomputes else block(y)
        return int(probe.stats()["alive_bytes"])


def _moved(way: Way) -> int:
    stats = getattr(way.context, "stats", None)
    return 0 if stats is None else int(stats()["moved_bytes"])


def _same(torch: Any, wanted: list[Any], model: Any) -> bool:
    return all(torch.equal(a, b.grad) for a, b in zip(wanted, model.parameters(), strict=True))


def _wait(torch: Any, on_gpu: bool) -> None:
    if on_gpu:
        torch.cuda.synchronize()


def _peak(torch: Any, work: Callable[[], None], on_gpu: bool) -> int:
    if not on_gpu:
        work()
        return 0
    gc.collect()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)


def _torch_pinned(torch: Any, on_gpu: bool) -> int:
    """Bytes of pinned memory that PyTorch's allocator has."""
    if not on_gpu or not hasattr(torch.cuda, "host_memory_stats"):
        return 0
    stats = torch.cuda.host_memory_stats()
    return int(stats.get("allocated_bytes.current", stats.get("allocated_bytes.allocated", 0)))


def _link(torch: Any) -> dict[str, float]:
    """The rates of pinned copies, in GB/s: the ceiling of what can be moved."""
    device = torch.empty(_COPIED, dtype=torch.uint8, device="cuda")
    pinned = torch.empty(_COPIED, dtype=torch.uint8, pin_memory=True)
    rates = {}
    for name, target, source in (("to the host", pinned, device), ("to the device", device, pinned)):
        best = float("inf")
        for _ in range(5):
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(4):
                target.copy_(source, non_blocking=True)
            torch.cuda.synchronize()
            best = min(best, (time.perf_counter() - began) / 4)
        rates[f"{name} GB/s"] = round(_COPIED / best / 1e9, 2)
    return rates


def _overhead(torch: Any, report: Report) -> None:
    """The host's time for a saved tensor that stays on the device."""
    x = torch.zeros(64, 1024, device="cuda", requires_grad=True)

    def lap(context: Any) -> Callable[[], float]:
        def measured() -> float:
            torch.cuda.synchronize()
            began = time.perf_counter()
            with context:
                y = x
                for _ in range(_TENSORS):
                    y = y.exp()
            y.backward(torch.ones_like(y))
            took = time.perf_counter() - began
            torch.cuda.synchronize()
            return took / _TENSORS

        return measured

    with contextlib.closing(velocpy.offload(min_offload_size=1)) as made:
        laps = by_turns({"none": lap(contextlib.nullcontext()), "velocpy": lap(made)}, 15)
    cost = (min(laps["velocpy"]) - min(laps["none"])) * 1e6
    report.measure({"host µs of a saved tensor that stays": round(cost, 2)})
    report.bar("host µs of a saved tensor that stays on the device", cost, 8, at_least=False)
