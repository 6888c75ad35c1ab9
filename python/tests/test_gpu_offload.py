"""Saved tensors leave a GPU and come back as they were, whatever the streams do; their memory is free meanwhile."""

import contextlib
import gc
import os
import random
import textwrap
import threading
from pathlib import Path

import pytest

import velocpy
from velocpy import errors

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

from velocpy.offloading import offload as Offload  # noqa: E402
from velocpy.offloading import slab  # noqa: E402
from velocpy.offloading.transfer import CudaTransport  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::UserWarning")]

functional = torch.nn.functional
MIB = 1 << 20


@pytest.fixture(autouse=True)
def deterministic():
    """The same kernels, and no memory of other tests."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    slab.trim()


@pytest.fixture
def offload():
    """Makes contexts, and closes them."""
    made = []

    def make(**given):
        context = velocpy.offload(**{"host": "1GiB", "min_offload_size": "16KiB"} | given)
        made.append(context)
        return context

    yield make
    for context in made:
        context.close()


class Block(torch.nn.Module):
    """A block of a transformer without dropout, with plain attention."""

    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


def model_of(layers=4, width=256, dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(*(Block(width) for _ in range(layers))).to("cuda", dtype)


def step(model, context, *, recompute=False, autocast=False, retain=False, batch=4, length=128, width=256):
    model.zero_grad(set_to_none=True)
    generator = torch.Generator("cuda").manual_seed(3)
    dtype = next(model.parameters()).dtype
    x = torch.randn(batch, length, width, device="cuda", generator=generator, dtype=dtype, requires_grad=True)
    with context, torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        y = x
        for block in model:
            y = checkpoint(block, y, use_reentrant=False) if recompute else block(y)
        loss = y.float().square().mean()
    loss.backward(retain_graph=retain)
    if retain:
        loss.backward()
    return [x.grad, *(parameter.grad for parameter in model.parameters())]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def none():
    return contextlib.nullcontext()


# --- gradients


@pytest.mark.parametrize("device", [0, "8MiB", "auto"])
@pytest.mark.parametrize("how", ["plain", "recompute", "autocast", "retain", "no_streams", "pageable", "half"])
def test_gradients_are_bitwise_those_without(offload, device, how):
    options = {"no_streams": {"use_streams": False}, "pageable": {"use_pin_memory": False}}.get(how, {})
    given = {how: True} if how in ("recompute", "autocast", "retain") else {}
    model = model_of(dtype=torch.bfloat16 if how == "half" else torch.float32)
    context = offload(device=device, stash="4MiB", **options)
    wanted = step(model, none(), **given)
    assert same(wanted, step(model, none(), **given)), "the model itself is not deterministic here"
    for _ in range(3):
        assert same(wanted, step(model, context, **given))
    stats = context.stats()
    if device == "auto":
        assert stats["moved"] == 0
    elif how != "recompute" or device == 0:
        assert stats["moved"] > 0
    torch.cuda.synchronize()
    stats = context.stats()
    assert stats["held_bytes"] == stats["alive_bytes"] == stats["used_bytes"] == 0


def test_second_derivatives(offload):
    x = torch.randn(128, 128, device="cuda", requires_grad=True)

    def run(context):
        x.grad = None
        with context:
            y = (x @ x).sin().exp().mean()
            (first,) = torch.autograd.grad(y, x, create_graph=True)
            first.square().sum().backward()
        return [first.detach(), x.grad]

    wanted = run(none())
    context = offload(device=0, stash=0)
    for _ in range(3):
        assert same(wanted, run(context))
    assert context.stats()["fetched"] > 0


def test_host_memory_that_is_full_leads_to_the_disk(offload, tmp_path):
    model = model_of()
    wanted = step(model, none())
    context = offload(device=0, stash="2MiB", host="16MiB", path=tmp_path, disk="1GiB")
    for _ in range(3):
        assert same(wanted, step(model, context))
    stats = context.stats()
    assert stats["pinned_bytes"] <= 16 * MIB
    assert stats["moved_bytes"] > 3 * 32 * MIB
    assert stats["refused"] == 0


def test_host_memory_that_is_full_without_a_disk_keeps_storages(offload):
    model = model_of()
    wanted = step(model, none())
    context = offload(device=0, stash="2MiB", host="16MiB")
    assert same(wanted, step(model, context))
    assert context.stats()["refused"] > 0
    assert context.stats()["pinned_bytes"] <= 16 * MIB


def test_a_change_in_place_is_noticed(offload):
    context = offload(device=0, stash=0)
    x = torch.randn(256, 256, device="cuda", requires_grad=True)
    with context:
        y = x * 2
        z = (y * y).sum()
        (y * 3).exp()
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(errors.SavedTensorChanged):
        z.backward()


def in_a_process(run_python, root, code):
    """Runs code with the helpers of this file in a process of its own: what the libraries leave behind goes with it."""
    head = "import sys\nsys.path.insert(0, sys.argv[1])\nfrom test_gpu_offload import *\n"
    done = run_python(head + textwrap.dedent(code), str(root / "python/tests"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_models(run_python, root, backend):
    in_a_process(
        run_python,
        root,
        f"""
        model = model_of(2)
        compiled = torch.compile(model, backend={backend!r})
        x = torch.randn(2, 64, 256, device="cuda")

        def run(context):
            model.zero_grad()
            with context:
                loss = compiled(x).square().mean()
            loss.backward()
            return [parameter.grad.clone() for parameter in model.parameters()]

        wanted = run(none())
        context = velocpy.offload(device=0, stash=0, min_offload_size="16KiB", host="256MiB")
        for _ in range(3):
            assert same(wanted, run(context))
        assert context.stats()["moved"] > 0
        """,
    )


def test_fsdp_and_ddp_of_one_process(run_python, root):
    in_a_process(
        run_python,
        root,
        """
        distributed = torch.distributed
        from torch.distributed.fsdp import fully_shard

        torch.cuda.set_device(0)
        wanted = step(model_of(3), none())[1:]
        distributed.init_process_group("nccl", store=distributed.HashStore(), rank=0, world_size=1)
        context = velocpy.offload(device=0, stash=0, min_offload_size="16KiB", host="256MiB")
        sharded = model_of(3)
        for block in sharded:
            fully_shard(block)
        for _ in range(3):
            found = [grad.to_local() for grad in step(sharded, context)[1:]]
            assert all(torch.equal(a.flatten(), b.flatten()) for a, b in zip(wanted, found, strict=True))
        moved = context.stats()["moved"]
        assert moved > 0
        parallel = torch.nn.parallel.DistributedDataParallel(model_of(3), device_ids=[0])
        generator = torch.Generator("cuda").manual_seed(3)
        x = torch.randn(4, 128, 256, device="cuda", generator=generator, requires_grad=True)
        for _ in range(2):
            parallel.zero_grad()
            with context:
                loss = parallel(x).square().mean()
            loss.backward()
        found = [parameter.grad for parameter in parallel.module.parameters()]
        assert all(torch.equal(a, b) for a, b in zip(wanted, found, strict=True))
        assert context.stats()["moved"] > moved
        distributed.destroy_process_group()
        """,
    )


def test_graphs_of_cuda_are_left_alone(offload):
    context = offload(device=0, stash=0)
    x = torch.randn(256, 256, device="cuda", requires_grad=True)
    with context:
        (x.sin().exp()).sum().backward()
    torch.cuda.synchronize()
    moved = context.stats()["moved"]
    x.grad = None
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        x.sin().exp().sum().backward()
        x.grad = None
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph), context:
        x.sin().exp().sum().backward()
    graph.replay()
    torch.cuda.synchronize()
    assert context.stats()["moved"] == moved
    wanted = x.grad.clone()
    x.grad = None
    x.sin().exp().sum().backward()
    assert torch.allclose(wanted, x.grad)
    del graph


# --- memory


def peak(model, context, **given):
    """The most bytes that one step has beyond those that are there before, after steps that warm up."""
    for _ in range(2):
        step(model, context, **given)
    model.zero_grad(set_to_none=True)
    gc.collect()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step(model, context, **given)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def test_the_peak_is_lower(offload):
    model = model_of(16, dtype=torch.bfloat16)
    given = {"batch": 16, "length": 256}
    whole = peak(model, none(), **given)
    context = offload(device=0, stash="32MiB", host="4GiB")
    moved = peak(model, context, **given)
    assert moved <= 0.6 * whole, (moved, whole)
    saved = context.stats()["moved_bytes"] / 3
    budget = int(saved / 2)
    half = peak(model, offload(device=budget, stash="32MiB", host="4GiB"), **given)
    assert moved < half < whole


def test_nothing_is_moved_that_fits(offload):
    model = model_of(8)
    context = offload()
    for _ in range(3):
        step(model, context)
    stats = context.stats()
    assert stats["moved"] == stats["pinned_bytes"] == 0
    assert stats["hits"] > 0
    assert stats["misses"] == 0


def test_only_what_does_not_fit_is_moved(offload):
    model = model_of(8)
    probe = offload(device="64GiB")
    with probe:
        y = model(torch.randn(4, 128, 256, device="cuda"))
    total = probe.stats()["alive_bytes"]
    del y
    budget = total * 3 // 4
    context = offload(device=budget, stash="4MiB")
    step(model, context)
    before = context.stats()["moved_bytes"]
    step(model, context)
    moved = context.stats()["moved_bytes"] - before
    assert total - budget - 4 * MIB <= moved <= (total - budget) * 1.3
    assert context.stats()["misses"] <= 2


def test_pinned_memory_is_that_of_the_budget(offload):
    model = model_of(8)
    context = offload(device=0, host="96MiB", stash="4MiB")
    for _ in range(2):
        step(model, context)
    stats = context.stats()
    assert 0 < stats["pinned_bytes"] == stats["host_bytes"] <= 96 * MIB * 1.02


def test_a_thousand_steps_without_growth(offload):
    context = offload(device="256KiB", stash="256KiB", host="64MiB")
    model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(4))).cuda()
    x = torch.randn(128, 128, device="cuda")

    def run(steps):
        for index in range(steps):
            with context:
                loss = model(x).square().mean()
                model(x).exp()
            if index % 7:
                loss.backward()
        del loss
        model.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        gc.collect()
        context.stats()
        return torch.cuda.memory_allocated(), threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    run(30)
    before = run(30)
    pinned = context.stats()["pinned_bytes"]
    after = run(1000)
    assert after[0] <= before[0]
    assert after[1:] == before[1:]
    assert context.stats()["pinned_bytes"] == pinned


def test_a_kept_graph_holds_no_device_memory(offload):
    context = offload(device=0, stash=0)
    x = torch.randn(1024, 1024, device="cuda", requires_grad=True)
    with context:
        y = x
        for _ in range(8):
            y = y.sin()
        loss = y.sum()
    del y
    wanted = None
    for _ in range(3):
        (grad,) = torch.autograd.grad(loss, x, retain_graph=True)
        wanted = grad if wanted is None else wanted
        assert torch.equal(grad, wanted)
        torch.cuda.synchronize()
        assert context.stats()["held_bytes"] == 0


def test_steps_that_fit_are_not_accounted_for(offload):
    context = offload()
    model = model_of()
    wanted = step(model, none())
    for number in range(4):
        assert same(wanted, step(model, context))
        assert (context._spare > 0) == (number > 0)
    x = torch.randn(256, 256, device="cuda", requires_grad=True)
    with context:
        y = x * 2
        z = (y * y).sum()
        assert context.stats()["held_bytes"] == 0
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(errors.SavedTensorChanged):
        z.backward()
    with context:
        context._spare = 1 << 18  # the step becomes larger than what is left
        outs = [(torch.exp(x) * number).sum() for number in range(4)]
    assert 0 < context.stats()["held_bytes"] < 4 << 18
    sum(outs).backward()
    del outs
    assert context.stats()["held_bytes"] == context.stats()["moved"] == 0


# --- races


class Checked(torch.autograd.Function):
    """Saves a tensor that is full of one number, and counts the elements that come back with another one."""

    bad: list = []  # noqa: RUF012

    @staticmethod
    def forward(ctx, x, data, value):
        ctx.save_for_backward(data)
        ctx.value = value
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        (data,) = ctx.saved_tensors
        Checked.bad.append((data != ctx.value).sum())
        return grad * 1, None, None


class Delayed(CudaTransport):
    """Each copy comes late by chance."""

    random = random.Random(0)

    def _copy(self, target, source):
        self._late()
        super()._copy(target, source)
        self._late()

    def _late(self):
        if self.random.random() < 0.5:
            torch.cuda._sleep(self.random.randrange(200_000))


class OneStream(Delayed):
    """Takes the stream that was current first for the current one."""

    first = None

    def stream(self):
        if self.first is None:
            self.first = super().stream()
        return self.first


class ReadsEarly(Delayed):
    """Copies a source before it is computed."""

    def _order_send(self, block, slot):
        pass


class FetchesEarly(Delayed):
    """Does not put a copy to the device behind the one from it."""

    def _order_send(self, block, slot):
        super()._order_send(block, slot)
        torch.cuda._sleep(2_000_000)

    def _order_fetch(self, block, compute):
        pass


class UsesEarly(Delayed):
    """Puts the copy's own stream behind the copy, and not the stream that uses the bytes."""

    def _late(self):
        torch.cuda._sleep(2_000_000)  # a slow processor calls later than a shorter delay ends

    def _order_use(self, block, compute):
        with torch.cuda.stream(self._up):
            torch.cuda.current_stream().wait_event(block.reading)


class ReleasesEarly(Delayed):
    """Gives a source back to the allocator while it is copied."""

    def order_release(self, block):
        return True


class ReusesSlots(Delayed):
    """Gives a slot to the next storage while it has the bytes of this one."""

    def send(self, block):
        sent = super().send(block)
        copy = type(block.slot)(block.slot.segment, block.slot.start, block.slot.nbytes, [])
        self.slab.give(copy, [])
        return sent

    def bury(self, slot, key, events):
        pass


class WritesUndrained(Delayed):
    """Lets the disk read a slot before the device has written it."""

    def _order_send(self, block, slot):
        super()._order_send(block, slot)
        torch.cuda._sleep(20_000_000)

    def _drain(self, block):
        pass


class Racing(Offload):
    kind = Delayed

    def _cuda_transport(self, device):
        made = super()._cuda_transport(device)
        return self.kind(device, made.slab, self._stored, self._uses_streams)


def race(kind, runs, seed, **given):
    """The number of elements that came back wrong."""
    chance = random.Random(seed)
    Delayed.random = random.Random(seed + 1)
    context = type("Of", (Racing,), {"kind": kind})(
        **{"device": 0, "stash": 2 * MIB, "host": "64MiB", "min_offload_size": 1024} | given
    )
    streams = [torch.cuda.current_stream(), *(torch.cuda.Stream() for _ in range(3))]
    x = torch.ones(8, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    Checked.bad.clear()
    wrong = 0
    kept = []
    for run in range(runs):
        outs = list(kept)
        kept = []
        with context:
            for index in range(chance.randrange(2, 10)):
                stream = chance.choice(streams) if run % 2 else streams[0]
                with torch.cuda.stream(stream):
                    value = run * 10 + index
                    if chance.random() < 0.5:
                        torch.cuda._sleep(chance.randrange(300_000))
                    size = chance.choice((64, 256, 1024)) << 8
                    data = torch.full((size,), float(value), device="cuda")
                    outs.append((Checked.apply(x, data, value), stream))
                    del data
                    for _ in range(chance.randrange(3)):  # takes memory that has been given back
                        torch.full((chance.choice((64, 256, 1024)) << 8,), -1.0, device="cuda")
        if chance.random() < 0.8:
            chance.shuffle(outs) if chance.random() < 0.3 else outs.reverse()
        for out, stream in outs:
            fate = chance.random()
            if fate < 0.05:
                kept.append((out, stream))
            elif fate < 0.9:
                with torch.cuda.stream(stream):
                    twice = chance.random() < 0.2
                    torch.autograd.grad(out.sum(), x, retain_graph=twice)
                    if twice:
                        torch.autograd.grad(out.sum(), x)
        if run % 20 == 19:
            torch.cuda.synchronize()
            wrong += sum(int(each) for each in Checked.bad)
            Checked.bad.clear()
            kept = kept[-4:]
        del outs, out
    torch.cuda.synchronize()
    wrong += sum(int(each) for each in Checked.bad)
    Checked.bad.clear()
    kept.clear()
    stats = context.stats()
    context.close()
    assert stats["moved"] > runs
    return wrong


def test_a_thousand_random_schedules():
    assert race(Delayed, 700, 1) == 0
    assert race(Delayed, 200, 2, stash=0) == 0
    assert race(Delayed, 100, 3, device=2 * MIB, stash=MIB) == 0


def test_random_schedules_with_a_disk(tmp_path):
    assert race(Delayed, 60, 4, host="6MiB", path=tmp_path, disk="1GiB") == 0


@pytest.mark.parametrize("bug", [OneStream, ReadsEarly, FetchesEarly, UsesEarly, ReleasesEarly, ReusesSlots])
def test_each_race_is_found(bug):
    for seed in range(8):
        if race(bug, 60, seed, stash=0 if bug in (ReleasesEarly, FetchesEarly) else 2 * MIB) > 0:
            return
    pytest.fail(f"{bug.__name__} was not found")


def test_a_race_with_the_disk_is_found(tmp_path):
    for seed in range(8):
        if race(WritesUndrained, 40, seed, host="6MiB", path=tmp_path / str(seed), disk="1GiB") > 0:
            return
    pytest.fail("the disk's race was not found")
