"""Saved tensors leave, come back as they were, and leave nothing behind; on the CPU, with a stand-in for CUDA."""

import contextlib
import gc
import threading
import time
import warnings
from types import SimpleNamespace
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import velocpy
from velocpy import errors

torch = pytest.importorskip("torch")

from offloaded import Fails, OnStandIn, Race, StandIn, in_threads  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from velocpy.offloading import slab as slabs  # noqa: E402
from velocpy.offloading import space as spaces  # noqa: E402
from velocpy.offloading.order import Order  # noqa: E402
from velocpy.offloading.residency import Residency  # noqa: E402

pytestmark = pytest.mark.usefixtures("frozen_imports")

functional = torch.nn.functional


@pytest.fixture(scope="module", autouse=True)
def warmed():
    """What PyTorch makes once, in one thread: several of them spin beside other tests, and tensors are small here."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    x = torch.ones(8, 8, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        (x @ x).sum().backward()
    functional.layer_norm(x, (8,)).sum().backward()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def on_disk(tmp_path):
    """A context that moves all tensors of the host that have 64 bytes and more to a disk."""
    made = []

    def make(**given):
        given = {"host": "1MiB", "stash": 0, "min_offload_size": 64, "disk": "64MiB"} | given
        context = velocpy.offload(cpu=True, path=tmp_path, **given)
        made.append(context)
        return context

    yield make
    for context in made:
        context.close()


def same(one, other):
    return len(one) == len(other) and all(
        (a is None and b is None) or torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))
        for a, b in zip(one, other, strict=True)
    )


def compare(context, program, *arguments):
    """Runs a program without and with the context; what it returns has to be the same bits."""
    torch.default_generator.manual_seed(1)
    wanted = program(contextlib.nullcontext(), *arguments)
    torch.default_generator.manual_seed(1)
    found = program(context, *arguments)
    assert same(wanted, found)


def layers(context, count=6, width=32, retain=False):
    modules = [torch.nn.Linear(width, width) for _ in range(count)]
    x = torch.randn(16, width)
    with context:
        for module in modules:
            x = functional.layer_norm(functional.gelu(module(x)), (width,))
        loss = x.square().sum()
    loss.backward(retain_graph=retain)
    if retain:
        loss.backward()
    return [parameter.grad for module in modules for parameter in module.parameters()]


# --- graphs drawn by chance

OPERATIONS = {
    "exp": lambda t, w: (t / 8).exp(),
    "gelu": lambda t, w: functional.gelu(t),
    "linear": lambda t, w: t @ w,
    "norm": lambda t, w: functional.layer_norm(t, t.shape[-1:]),
    "softmax": lambda t, w: t.softmax(-1),
    "transposed": lambda t, w: (t.t() * t.t().sin()).t(),
    "halves": lambda t, w: torch.cat([part * part.cos() for part in t.chunk(2, -1)], -1),
    "every_other": lambda t, w: t * functional.pad(t[:, ::2].tanh(), (0, t.shape[1] - t[:, ::2].shape[1])),
    "expanded": lambda t, w: t * t.sum(0, keepdim=True).expand_as(t).sigmoid(),
    "in_place": lambda t, w: t.clone().mul_(0.5).relu_(),
    "dropout": lambda t, w: functional.dropout(t, 0.3),
    "checkpointed": lambda t, w: checkpoint(lambda u: (u @ w).sin().exp(), t, use_reentrant=False),
    "reentrant": lambda t, w: checkpoint(lambda u: (u @ w).sin().exp(), t, use_reentrant=True),
    "autocast": lambda t, w: _autocast(t, w),
    "custom": lambda t, w: Twice.apply(t, w),
    "dead": lambda t, w: _dead(t),
    "residual": lambda t, w: t + functional.silu(t @ w),
    "double": lambda t, w: t.double().sin().float() * t,
    "complex": lambda t, w: torch.fft.fft(t.to(torch.complex64)).abs() / 8,
    "max": lambda t, w: t.max(-1, keepdim=True).values + t,
    "scatter": lambda t, w: t.gather(1, t.argsort(1)),
}


def _autocast(t, w):
    with torch.autocast("cpu", torch.bfloat16):
        return (t @ w).relu().float()


def _dead(t):
    t.exp().sin()
    with torch.no_grad():
        t.exp()
    return t


class Twice(torch.autograd.Function):
    """Reads its saved tensors twice, and saves an output."""

    @staticmethod
    def forward(ctx, t, w):
        out = (t @ w).tanh()
        ctx.save_for_backward(t, w, out, t[:, 1:])
        return out

    @staticmethod
    def backward(ctx, grad):
        t, w, out, _ = ctx.saved_tensors
        again, _, _, part = ctx.saved_tensors
        assert torch.equal(t, again)
        assert torch.equal(part, t[:, 1:])
        grad = grad * (1 - out * out)
        return grad @ w.t(), t.t() @ grad


def drawn(context, names, passes):
    weights = [torch.nn.Parameter(torch.randn(12, 12) / 4) for _ in range(3)]
    x = start = torch.randn(10, 12, requires_grad=True)
    with context:
        for index, name in enumerate(names):
            x = OPERATIONS[name](x, weights[index % 3])
        loss = x.float().square().mean()
    for _ in range(passes - 1):
        loss.backward(retain_graph=True)
    if loss.requires_grad:
        loss.backward()
    return [start.grad, *(weight.grad for weight in weights)]


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(
    names=st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=1, max_size=14),
    budget=st.sampled_from([0, 700, 3000, 1 << 30]),
    stash=st.sampled_from([0, 1000, 1 << 20]),
    streams=st.booleans(),
    passes=st.integers(1, 2),
    seed=st.integers(0, 1 << 16),
)
def test_gradients_are_bitwise_those_without(names, budget, stash, streams, passes, seed):
    if passes > 1 and "reentrant" in names:
        names = [name for name in names if name != "reentrant"] or ["exp"]
    context = OnStandIn(seed=seed, budget=budget, stash=stash, host="1MiB", use_streams=streams)
    for _ in range(3):
        compare(context, drawn, names, passes)
    context.queues.run_all()
    stats = context.stats()
    assert stats["held_bytes"] == stats["alive_bytes"] == stats["used_bytes"] == 0
    context.close()


def test_tensors_of_the_host_go_to_a_disk(on_disk):
    context = on_disk(host="64KiB")
    for _ in range(3):
        compare(context, layers, 8, 64)
    stats = context.stats()
    assert stats["moved"] > 20
    assert stats["fetched"] > 20
    end = time.monotonic() + 60
    while stats["held_bytes"] and time.monotonic() < end:  # the store still reads what left last
        time.sleep(0.01)
        stats = context.stats()
    assert stats["alive_bytes"] == stats["held_bytes"] == 0


def test_memory_is_bounded_on_the_host(on_disk):
    context = on_disk(host="1MiB", stash="128KiB")
    x = torch.ones(1 << 14, requires_grad=True)  # 64 KiB
    most = 0
    with context:
        y = x
        for _ in range(100):
            y = (y / 2).exp()
            most = max(most, context.stats()["held_bytes"])
    assert context.stats()["alive_bytes"] >= 100 << 16
    assert most <= 1 << 20
    y.sum().backward()


def test_a_store_of_the_caller_stays_open():
    with velocpy.open(host="64MiB") as store:
        for _ in range(2):
            context = velocpy.offload(cpu=True, store=store, host="1KiB", min_offload_size=64)
            compare(context, layers)
            assert context.stats()["moved"] > 0
            context.close()
        assert not store.closed
        assert sum(len(history) for history in store.histories) == 0


def test_what_finds_no_room_in_host_memory_goes_to_the_disk(tmp_path):
    context = OnStandIn(host="16KiB", disk="64MiB", path=tmp_path, stash=4096)
    for _ in range(3):
        compare(context, layers, 12, 32, True)
    stats = context.stats()
    assert stats["refused"] == 0
    assert stats["moved_bytes"] > 3 * 16 << 10
    assert stats["host_bytes"] <= 16 << 10
    assert stats["used_bytes"] == 0
    context.close()


def test_without_room_anywhere_storages_stay():
    context = OnStandIn(host="8KiB", stash=4096)
    compare(context, layers, 12)
    stats = context.stats()
    assert stats["refused"] > 0
    assert stats["host_bytes"] <= 8 << 10
    context.close()


def test_a_disk_that_is_full_keeps_storages(on_disk):
    context = on_disk(host="64KiB", disk="4MiB")
    x = torch.ones(1 << 17, requires_grad=True)  # 512 KiB
    with context:
        y = x
        for _ in range(20):
            y = (y / 2).exp()
    y.sum().backward()
    assert context.stats()["refused"] > 0


# --- what is saved once, and what comes back


class Keep(torch.autograd.Function):
    """Saves tensors as they are, and shows what comes back."""

    seen: ClassVar[list] = []

    @staticmethod
    def forward(ctx, x, *others):
        ctx.save_for_backward(*others)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        Keep.seen = list(ctx.saved_tensors)
        return (grad, *(None for _ in Keep.seen))


@pytest.fixture
def kept():
    yield Keep
    Keep.seen = []


def restored(context, *others):
    x = torch.ones(3, requires_grad=True)
    with context:
        y = Keep.apply(x, *others)
    y.sum().backward()
    seen, Keep.seen = Keep.seen, []
    return seen


def test_views_of_a_storage_come_back_as_views_of_a_storage(kept):
    context = OnStandIn(stash=0)
    base = torch.arange(400.0).view(20, 20)
    views = [base, base.t(), base[3:, ::2], base[5], base.view(-1)[7:9], base[:, :1].expand(20, 5)]
    seen = restored(context, *views)
    for view, back in zip(views, seen, strict=True):
        assert torch.equal(view, back)
        assert (view.stride(), view.storage_offset(), view.dtype) == (back.stride(), back.storage_offset(), back.dtype)
    assert len({back.untyped_storage().data_ptr() for back in seen}) == 1
    stats = context.stats()
    assert stats["moved"] == 1
    assert stats["moved_bytes"] == 1600
    assert stats["saved"] == len(views)
    assert seen[0].data_ptr() != base.data_ptr()
    del seen, back
    context.close()


def test_elements_of_all_types_come_back(kept):
    context = OnStandIn()
    random = torch.Generator().manual_seed(0)
    raw = torch.randint(0, 256, (1024,), dtype=torch.uint8, generator=random)
    kinds = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int64, torch.complex64]
    kinds += [getattr(torch, name) for name in ("float8_e4m3fn", "uint16", "uint64") if hasattr(torch, name)]
    tensors = [raw.clone().view(kind) for kind in kinds] + [raw > 100]
    seen = restored(context, *tensors)
    assert same(tensors, seen)
    assert [t.dtype for t in tensors] == [t.dtype for t in seen]
    assert context.stats()["moved"] == len(tensors)
    del seen
    context.close()


class Odd(torch.Tensor):
    """A subclass that nobody knows."""


def test_what_stays_by_rule(kept):
    context = OnStandIn()
    weight = torch.nn.Parameter(torch.randn(64, 64))
    frozen = torch.nn.Parameter(torch.randn(64, 64), requires_grad=False)
    leaf = torch.randn(64, 64, requires_grad=True)
    stays = [
        weight,
        weight.t(),
        weight[3:],
        frozen,
        frozen.t(),
        leaf,
        torch.tensor(1.0),
        torch.ones(8),
        torch.eye(64).to_sparse(),
        torch.randn(64, dtype=torch.complex64).conj(),
        torch.empty(0, 64),
        torch.randn(64, 64).as_subclass(Odd),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stays.append(torch.quantize_per_tensor(torch.randn(64), 0.1, 0, torch.qint8))
    seen = restored(context, *stays)
    stats = context.stats()
    assert (stats["moved"], stats["passed"]) == (0, len(stays))
    assert [type(a) for a in seen] == [type(a) if type(a) is Odd else torch.Tensor for a in stays]
    del seen
    context.close()


def test_modules_and_tensors_that_are_to_stay(kept):
    module = torch.nn.BatchNorm1d(128)
    other = torch.randn(64, 64)
    context = OnStandIn(keep=[module, other])
    del restored(context, module.running_mean, other, other[3])[:]
    assert context.stats()["moved"] == 0
    context.close()
    with pytest.raises(errors.InvalidType, match="modules and tensors"):
        velocpy.offload(keep=[3])


def test_a_subclass_that_is_not_known_is_named(kept):
    context = OnStandIn(strict=True)
    with pytest.raises(errors.InvalidType, match=r"saved tensor 1 .*Odd of shape \(64, 64\), float32 on cpu"):
        restored(context, torch.ones(64), torch.randn(64, 64).as_subclass(Odd))
    compare(context, layers)
    context.close()


def test_tied_weights_and_buffers():
    def program(context):
        embedding = torch.nn.Embedding(50, 16)
        head = torch.nn.Linear(16, 50, bias=False)
        head.weight = embedding.weight
        norm = torch.nn.BatchNorm1d(16)
        tokens = torch.randint(0, 50, (32,))
        with context:
            loss = functional.cross_entropy(head(norm(embedding(tokens))), tokens)
        loss.backward()
        return [embedding.weight.grad, norm.weight.grad, norm.running_mean]

    context = OnStandIn()
    for _ in range(2):
        compare(context, program)
    context.close()


# --- changes in place


@pytest.mark.parametrize("budget", [0, 1 << 30])
@pytest.mark.parametrize("of", ["saved", "view", "small", "parameter"])
def test_a_change_in_place_is_noticed(budget, of):
    context = OnStandIn(budget=budget)
    weight = torch.nn.Parameter(torch.randn(32, 32))
    x = torch.randn(32, 32, requires_grad=True)
    with context:
        y = x * 2
        small = (x[0, :4] * 2).exp()
        z = (y @ weight).sum() + (y * y).sum() + small.sum()
    with torch.no_grad():
        {"saved": y, "view": y[3], "small": small, "parameter": weight}[of].add_(1)
    with pytest.raises(errors.SavedTensorChanged, match="changed in place"):
        z.backward()
    assert issubclass(errors.SavedTensorChanged, RuntimeError)
    del z, y, small
    context.close()


def test_a_storage_that_is_saved_again_after_a_change_is_moved_again(kept):
    context = OnStandIn(stash=0)
    x = torch.ones(3, requires_grad=True)
    data = torch.zeros(1000)
    outs = []
    with context:
        for _ in range(4):
            with torch.no_grad():
                data += 1
            outs.append(Keep.apply(x, data))
    with pytest.raises(errors.SavedTensorChanged):
        outs[0].sum().backward()
    outs[-1].sum().backward()
    assert bool((Keep.seen[0] == 4).all())
    outs.clear()
    Keep.seen = []
    context.close()


def test_numbers_of_storages_that_are_used_again(kept):
    """PyTorch gives the address of a storage that has gone to a new one: the block of the old one must not have it."""
    context = OnStandIn(stash=0)
    x = torch.ones(3, requires_grad=True)
    for _ in range(20):
        outs = []
        with context:
            for value in range(50):
                outs.append(Keep.apply(x, torch.full((100,), float(value))))
        for value, out in reversed(list(enumerate(outs))):
            out.sum().backward(retain_graph=value % 2 == 0)
            assert bool((Keep.seen[0] == value).all())
    Keep.seen = []
    del out, outs
    context.close()


def test_a_tensor_that_came_back_and_was_written_is_another_one(kept):
    """The storage that takes the place of the saved one may be written, and saved again."""
    context = OnStandIn(stash=0)
    x = torch.ones(3, requires_grad=True)
    data = torch.zeros(1000)
    data += 1  # at version 1
    with context:
        y = Keep.apply(x, data)
    y.sum().backward(retain_graph=True)
    (back,) = Keep.seen
    back += 1
    with context:
        z = Keep.apply(x, back)
    z.sum().backward()
    assert bool((Keep.seen[0] == 2).all())
    y.sum().backward()
    assert bool((Keep.seen[0] == 1).all())
    Keep.seen = []
    del y, z, back
    context.close()


# --- graphs that are used twice, or never


def test_a_second_derivative():
    def program(context):
        x = torch.randn(20, 20, requires_grad=True)
        with context:
            y = (x @ x).sin().exp().sum()
            (first,) = torch.autograd.grad(y, x, create_graph=True)
            loss = first.square().sum()
            loss.backward()
        return [first.detach(), x.grad]

    for budget in (0, 2000):
        context = OnStandIn(budget=budget)
        for _ in range(3):
            compare(context, program)
        context.close()


def test_a_graph_that_is_kept_holds_no_device_memory():
    context = OnStandIn()
    x = torch.randn(32, 32, requires_grad=True)
    with context:
        y = x
        for _ in range(10):
            y = y.sin()
        loss = y.sum()
    wanted = None
    for _ in range(4):
        (grad,) = torch.autograd.grad(loss, x, retain_graph=True)
        wanted = grad if wanted is None else wanted
        assert torch.equal(grad, wanted)
        assert context.stats()["held_bytes"] == 0
    assert context.stats()["alive_bytes"] > 0
    del loss, y
    assert context.stats()["used_bytes"] == 0
    context.close()


def test_graphs_that_are_dropped_leave_nothing():
    context = OnStandIn(stash=1 << 20)
    for step in range(50):
        x = torch.randn(32, 32, requires_grad=True)
        with contextlib.suppress(ZeroDivisionError), context:
            y = x.sin().exp().cos()
            if step % 3 == 0:
                raise ZeroDivisionError
        del y
    context.queues.run_all()
    stats = context.stats()
    assert stats["alive_bytes"] == stats["used_bytes"] == stats["held_bytes"] == 0
    context.close()


def test_an_exception_in_the_backward_pass():
    context = OnStandIn()

    for _ in range(5):
        x = torch.randn(32, 32, requires_grad=True)
        with context:
            y = Fails.apply(x.sin()).cos().exp().sum()
        with pytest.raises(ZeroDivisionError):
            y.backward()
        del y
        compare(context, layers)
    assert context.stats()["used_bytes"] == 0
    context.close()


def test_a_thousand_steps_without_growth():
    context = OnStandIn(budget=4000)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 16), torch.nn.GELU())
    x = torch.randn(8, 16)

    def run(steps):
        for step in range(steps):
            with context:
                loss = model(x).square().mean()
                model(x).exp()  # a branch without a gradient
            if step % 7:
                loss.backward()
        gc.collect()
        space = context._spaces[torch.device("cpu")]
        held = (space._known, space._staying, space._leaving, space._coming, space._clean, space._lingering)
        return [len(each) for each in held], len(gc.get_objects()), threading.active_count()

    run(20)
    before = run(20)
    after = run(1000)
    assert all(a <= b + 8 for a, b in zip(after[0], before[0], strict=True)), (before, after)
    assert after[1] <= before[1] + 50
    assert after[2] == before[2]
    context.close()


def test_steps_on_a_disk_without_growth(on_disk):
    context = on_disk(host="8KiB")
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 32))
    x = torch.randn(32, 32)
    for _ in range(300):
        with context:
            loss = model(x).square().mean()
        loss.backward()
    assert context.stats()["moved"] > 300
    assert context.stats()["alive_bytes"] == 0 or loss is not None


def test_a_context_that_is_closed():
    context = OnStandIn(stash=0)
    x = torch.randn(32, 32, requires_grad=True)
    with context:
        y = x.sin().exp().sum()
    context.close()
    context.close()
    assert context.closed
    with pytest.raises(errors.StoreClosed, match="closed before the backward"):
        y.backward()
    with pytest.raises(errors.StoreClosed), context:
        pass
    del y
    assert context.stats()["saved"] > 0


def test_a_context_of_each_step():
    for _ in range(3):
        compare(OnStandIn(budget=1000), layers)


# --- contexts in contexts, threads and libraries


def test_contexts_in_contexts():
    context = OnStandIn()
    other = OnStandIn(budget=3000)

    def program(within):
        x = torch.randn(32, 32, requires_grad=True)
        with within:
            y = x.sin()
            with context:
                y = y.exp()
                with other, context:
                    y = y.cos()
                y = y.sin()
            loss = y.square().sum()
        loss.backward()
        return [x.grad]

    compare(context, program)
    assert context.stats()["moved"] > 0
    assert other._spaces == {}
    for each in (context, other):
        each.close()


def test_other_hooks_come_first():
    seen = []

    def pack(tensor):
        seen.append(tensor.shape)
        return tensor.double() if tensor.dtype is torch.float32 else (tensor,)

    def unpack(packed):
        return packed.float() if isinstance(packed, torch.Tensor) else packed[0]

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, unpack)
    for given_hooks in (hooks, (pack, unpack), "outer"):
        context = OnStandIn(compose_with=given_hooks)
        seen.clear()
        if given_hooks == "outer":
            with hooks:
                compare(context, layers)
        else:
            compare(context, layers)
        assert seen
        assert context.stats()["moved"] > 0
        context.close()
    with pytest.raises(errors.InvalidType, match="compose_with"):
        velocpy.offload(compose_with=3)


def test_many_threads():
    context = OnStandIn(budget=5000, eagerness=0.5)

    def work(_):
        for _ in range(10):
            x = torch.randn(16, 32, generator=torch.Generator().manual_seed(1), requires_grad=True)
            grads = []
            for within in (contextlib.nullcontext(), context):
                x.grad = None
                with within:
                    loss = functional.layer_norm(functional.gelu(x.sin() @ x.t()).exp(), (16,)).square().sum()
                loss.backward()
                grads.append(x.grad)
            assert torch.equal(*grads)

    in_threads(4, work)
    context.close()


def test_micro_batches_that_overlap():
    def program(context):
        weight = torch.nn.Parameter(torch.randn(32, 32) / 8)
        waiting = []
        for step in range(6):
            x = torch.randn(8, 32)
            with context:
                for _ in range(4):
                    x = functional.gelu(x @ weight)
                waiting.append(x.sum())
            if step >= 2:
                waiting.pop(0).backward()
        for loss in waiting:
            loss.backward()
        return [weight.grad]

    for budget in (0, 6000):
        context = OnStandIn(budget=budget)
        for _ in range(3):
            compare(context, program)
        context.close()


def test_a_generator_under_the_context():
    context = OnStandIn()

    def batches():
        with context:
            for _ in range(3):
                yield torch.randn(8, 8)

    x = torch.randn(8, 8, requires_grad=True)
    loss = sum((x * batch).sin().sum() for batch in batches())
    loss.backward()
    assert x.grad is not None
    del loss
    context.close()


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_models_of_transformers(kind, on_disk):
    transformers = pytest.importorskip("transformers")
    if kind == "gpt2":
        config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64, n_positions=32)
        make = transformers.GPT2LMHeadModel
    else:
        config = transformers.LlamaConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, vocab_size=64
        )
        make = transformers.LlamaForCausalLM

    def program(context, recompute):
        model = make(config)
        model.train()
        if recompute:
            with warnings.catch_warnings():  # it has another name in later versions
                warnings.simplefilter("ignore")
                model.gradient_checkpointing_enable({"use_reentrant": False})
        tokens = torch.randint(0, 64, (2, 16))
        with context:
            loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        return [parameter.grad for parameter in model.parameters()]

    for context in (OnStandIn(), OnStandIn(budget=50_000), on_disk(host="64KiB")):
        for recompute in (False, True, False):
            compare(context, program, recompute)
        assert context.stats()["moved"] > 0
        context.close()


def test_compiled_modules(run_python, root):
    """The hooks see what a compiled region saves; the region itself is compiled as without them."""
    done = run_python(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import torch
        from offloaded import OnStandIn

        context = OnStandIn()
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 32))
        x = torch.randn(16, 32)
        compiled = torch.compile(model, backend="aot_eager")
        compiled(x).square().sum().backward()
        wanted = [parameter.grad.clone() for parameter in model.parameters()]
        for _ in range(3):
            model.zero_grad()
            with context:
                loss = compiled(x).square().sum()
            loss.backward()
            assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), wanted))

        @torch.compile(backend="aot_eager")
        def within(x):
            with context:
                return model(x).square().sum()

        model.zero_grad()
        within(x).backward()
        assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), wanted))
        print("moved" if context.stats()["moved"] else "passed")
        """,
        str(root / "python/tests"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "moved\n"


def test_transforms_of_functions_say_what_to_do():
    context = OnStandIn()
    with pytest.raises(errors.InvalidArgument, match=r"outside of torch\.func"):
        torch.func.grad(lambda x: _entered(context, x))(torch.ones(3))
    context.close()


def _entered(context, x):
    with context:
        return x.sin().sum()


def test_a_forked_child_is_told(run_python):
    done = run_python(
        """
        import os, warnings
        import torch, velocpy
        warnings.simplefilter("ignore")
        x = torch.ones(1000, requires_grad=True)
        with velocpy.offload(cpu=True, host="1KiB", disk="64MiB", stash=0, min_offload_size=64) as context:
            y = x.exp().sin().cos()
        assert context.stats()["moved"] > 0
        child = os.fork()
        if child == 0:
            told = []
            for use in (lambda: y.grad_fn._saved_self, context.__enter__):
                try:
                    use()
                except velocpy.errors.ForkedProcessError:
                    told.append(True)
            os._exit(0 if len(told) == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0
        y.sum().backward()
        assert x.grad is not None
        context.close()
        """
    )
    assert done.returncode == 0, done.stderr


# --- what cannot be


@pytest.mark.parametrize(
    ("given_arguments", "message"),
    [
        ({"device": "much"}, "device"),
        ({"device": -1}, "device"),
        ({"device": "120%"}, "share"),
        ({"host": None}, "host is None"),
        ({"cpu": True}, "disk"),
        ({"cpu": 1}, "cpu is True or False"),
        ({"max_fwd_stash_size": 0}, "max_fwd_stash_size"),
        ({"min_offload_size": "x"}, "min_offload_size"),
        ({"store": SimpleNamespace(), "disk": "1GiB"}, "not both"),
    ],
)
def test_arguments_that_cannot_be(given_arguments, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        velocpy.offload(**given_arguments)


def test_without_a_device_nothing_is_moved():
    context = velocpy.offload()
    compare(context, layers)
    assert context.stats()["saved"] == context.stats()["passed"] > 0
    assert "0 storages moved" in repr(context)
    context.close()
    assert "closed" in repr(context)


def test_without_torch_one_sentence_tells_it(run_python):
    done = run_python(
        """
        import sys
        import velocpy
        assert "torch" not in sys.modules
        assert "offload" in dir(velocpy)
        sys.modules["torch"] = None
        try:
            velocpy.offload()
        except ImportError as error:
            print(error)
        """
    )
    assert done.stdout == (
        "velocpy.offload needs torch, which is not installed: pip install 'velocpy[torch]', or '.[torch]' in a "
        "checkout\n"
    ), done.stderr


# --- races that the stand-in finds


class UsesBeforeArrival(StandIn):
    def _order_use(self, block, compute):
        pass


class ReleasesEarly(StandIn):
    def order_release(self, block):
        return True


def test_a_number_that_is_used_again_is_found(kept, monkeypatch):
    """Without a weak reference PyTorch reuses the number of a storage that has left."""
    monkeypatch.setattr(spaces, "_weak_reference", lambda storage: None)
    with pytest.raises(AssertionError):
        test_numbers_of_storages_that_are_used_again(kept)
    Keep.seen = []
    gc.collect()


def test_an_identity_without_a_version_is_found(kept, monkeypatch):
    """Taking a storage for saved whatever was written into it gives the bytes of the first save."""
    monkeypatch.setattr(spaces.Space, "_known_block", lambda space, reference, *_: reference())
    with pytest.raises(AssertionError):
        test_a_storage_that_is_saved_again_after_a_change_is_moved_again(kept)
    Keep.seen = []
    gc.collect()


@pytest.mark.parametrize("bug", [UsesBeforeArrival, ReleasesEarly])
def test_the_stand_in_finds_races(bug):
    def broken():
        for seed in range(60):
            context = OnStandIn(seed=seed, transport=bug, eagerness=0.2, stash=3000, host="64KiB")
            for _ in range(3):
                compare(context, layers, 6)
            assert not context.transport.lost

    with pytest.raises((AssertionError, Race)):
        broken()
    gc.collect()


# --- the parts alone


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60_000), min_size=1, max_size=40),
    frees=st.lists(st.integers(0, 1 << 16), max_size=40),
)
def test_slots_do_not_overlap(sizes, frees):
    slab = slabs.Slab(1 << 18, None)
    taken = []
    for index, size in enumerate(sizes):
        slot = slab.take(size)
        if slot is not None:
            assert len(slot.buffer) == size
            taken.append(slot)
        if index < len(frees) and taken:
            slab.give(taken.pop(frees[index] % len(taken)), [])
        ranges = sorted((each.address, each.address + each.nbytes) for each in taken)
        assert all(one[1] <= other[0] for one, other in zip(ranges, ranges[1:], strict=False))
        assert slab.mapped <= 1 << 18
    for slot in taken:
        slab.give(slot, [])
    assert slab.used == 0
    assert all(segment.empty for segment in slab.segments)
    slab.end(False)


def test_memory_is_mapped_to_the_byte_of_the_budget():
    slab = slabs.Slab((100 << 20) + 12345, None)
    taken = [slab.take(1 << 20) for _ in range(101)]
    assert taken[-1] is None
    assert slab.mapped == (100 << 20) + 12345
    slab.end(False)


def test_segments_are_used_again():
    slabs.trim()
    pinned = []

    def register(address, nbytes):
        pinned.append(address)
        return lambda: pinned.remove(address)

    for _ in range(3):
        slab = slabs.Slab(64 << 20, register)
        slab.give(slab.take(1000), [])
        slab.end(True)
    assert len(pinned) == 1
    assert slabs.trim() == 64 << 20
    assert not pinned


def test_what_stays_is_what_fits():
    account = Residency(lambda held: 1000, 1 << 30)
    assert [account.save(300) for _ in range(5)] == [False] * 5
    assert account.excess == 500
    account.alive = account.held = 0
    account.begin_step()
    assert account.to_move == 500
    moved = []
    for _ in range(5):
        moved.append(account.save(300))
        account.away += 300 * moved[-1]
    assert moved == [True, False, True, False, False]  # spread over the pass, and the last ones stay


def test_a_step_behind_one_that_fitted_needs_no_account():
    left = 1000
    account = Residency(lambda held: left, 1 << 30, measured=True)
    assert account.spare == 0
    account.save(800)
    account.alive = account.held = 0
    account.begin_step()
    assert account.spare == 1000
    account.save(800)
    left, account.alive, account.held = 700, 0, 0
    account.begin_step()
    assert (account.to_move, account.spare) == (100, 0)


def test_orders():
    numbered = [SimpleNamespace(ordinal=i, nbytes=8, saves=[(10 + i, 10 + i, i)]) for i in range(6)]
    numbered[0].saves.append((13, 14, 6))
    order = Order()

    def forecast(node=99, nodes=None, **given):
        found, source = order.forecast(numbered, node, nodes, **given)
        return [each.ordinal for each in found], source

    def ask(step, *ordinals, form=1):
        order.begin(form, step)
        for i in ordinals:
            order.note(numbered[i])

    assert forecast() == ([5, 4, 0, 3, 2, 1], "reversed")
    assert forecast(node=13) == ([3, 0, 2, 1], "reversed")
    assert forecast(nodes={14, 12, 10}) == ([4, 0, 2, 0], "predicted")
    ask(1, 5, 3, 4, 1)
    ask(1)
    assert forecast() == ([5, 3, 4, 1], "learnt")
    assert forecast(nodes={12, 11}) == ([2, 1], "predicted")
    assert forecast(anew=True) == ([5, 4, 0, 3, 2, 1], "reversed")
    ask(1, 5, 3, 4, 1)
    assert not order.steady
    ask(2, 5, 3, 4, 1)
    assert order.steady
    ask(3, form=2)
    assert forecast() == ([5, 4, 0, 3, 2, 1], "reversed")  # the step is another one
    ask(3, 5, form=2)
    assert not order.steady
    ask(4, form=2)
    assert forecast() == ([5, 4, 0, 3, 2, 1], "reversed")  # the last pass has asked for too little


class Times(torch.autograd.Function):
    """Saves a buffer that no operation of autograd has made."""

    @staticmethod
    def forward(ctx, w, kv):
        ctx.save_for_backward(kv)
        return (w * kv).sum()

    @staticmethod
    def backward(ctx, grad):
        (kv,) = ctx.saved_tensors
        return grad * kv, None


def test_a_buffer_that_is_filled_further_without_a_new_version(on_disk):
    """As collective operations and kernels of other libraries do: what was saved before has left by then."""

    def gradient(context):
        w = torch.zeros(1 << 16, requires_grad=True)
        buffer = torch.zeros(2, 1 << 16)
        with context:
            buffer[0] = 1
            out = Times.apply(w, buffer[0])
            for _ in range(8):
                out = out + (torch.randn(1 << 16) * w).sum() * 0
            buffer.numpy()[1] = 2
            out = out + Times.apply(w, buffer[1])
            again = Times.apply(w, buffer[0][:8].repeat(1 << 13))
            del buffer
        (out + again).backward()
        return w.grad

    context = on_disk(host="64KiB")
    assert torch.equal(gradient(context), gradient(contextlib.nullcontext()))
    assert context.stats()["moved"] > 2
    standing = OnStandIn()
    assert torch.equal(gradient(standing), gradient(contextlib.nullcontext()))
    standing.close()


class Fills(torch.autograd.Function):
    """Writes a column of a buffer without a new version, and returns the buffer, as Runge-Kutta solvers do."""

    @staticmethod
    def forward(ctx, buffer, value, column):
        ctx.column = column
        buffer.data[:, column] = value
        return buffer

    @staticmethod
    def backward(ctx, grad):
        return grad, grad[:, ctx.column], None


def test_a_buffer_that_an_autograd_function_fills_column_by_column(on_disk):
    """Each stage of a Runge-Kutta step saves the columns of the stages before, whose storage has left by then."""

    def gradient(context):
        w = torch.linspace(0, 1, 1 << 12, requires_grad=True)
        with context:
            stages = torch.zeros(1 << 12, 4)
            y = w
            for column in range(4):
                stages = Fills.apply(stages, torch.cos(y), column)
                y = (stages[:, : column + 1] * w[:, None]).sum(dim=1)
        y.sum().backward()
        return w.grad

    context = on_disk(host="4KiB")
    assert torch.equal(gradient(context), gradient(contextlib.nullcontext()))
    assert context.stats()["moved"] > 4
    standing = OnStandIn()
    assert torch.equal(gradient(standing), gradient(contextlib.nullcontext()))
    standing.close()


def test_a_backward_pass_that_changes_restored_bytes_is_noticed():
    class Doubles(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x.mul_(2)

    def gradient(context):
        w = torch.full((64,), 3.0, requires_grad=True)
        with context:
            x = w * 1.0
            loss = (x * x).sum() + Doubles.apply(x).sum()
            del x
        loss.backward()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradient(contextlib.nullcontext())
    context = OnStandIn(stash=0)
    with pytest.raises(errors.SavedTensorChanged, match="changed in place by a backward pass"):
        gradient(context)
    context.close()


def test_a_step_that_outgrew_its_allowance_is_accounted_for():
    account = Residency(lambda held: 1000, 1 << 30, measured=True)
    account.begin_step()
    assert account.spare == 1000
    account.outgrown = True
    account.begin_step()
    assert account.spare == 0
    account.save(1500)
    account.alive = account.held = 0
    account.begin_step()
    assert (account.to_move, account.spare) == (500, 0)


def test_what_is_alive_ends_the_allowance():
    context = OnStandIn()
    x = torch.randn(32, 32, requires_grad=True)
    with context:
        y = x.sin().exp().sum()
    (space,) = context._spaces.values()
    space.residency.spare = 1000
    with context:
        assert space.residency.spare == context._spare == 0
    del y
    context.close()


def test_memory_that_cannot_be_mapped_leaves_storages_where_they_are(monkeypatch, caplog):
    def refused(*given):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(slabs, "Segment", refused)
    context = OnStandIn()
    x = torch.randn(32, 32, requires_grad=True)
    with context:
        loss = x.sin().exp().sum()
    loss.backward()
    stats = context.stats()
    assert stats["moved"] == 0 < stats["refused"]
    assert sum("cannot be mapped" in record.message for record in caplog.records) == 1
    context.close()
