"""velocpy.adjoint.checkpointed: a time loop has the results and the gradients of plain autograd, to the last bit."""

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import RunPython
from hypothesis import given, settings
from hypothesis import strategies as st

import velocpy
from velocpy.adjoint import GraphError, ScheduleError, checkpointed
from velocpy.errors import InvalidArgument, InvalidType

torch = pytest.importorskip("torch")
cs = pytest.importorskip("checkpoint_schedules")

from velocpy.adjoint.timeloop import layout  # noqa: E402  (it imports torch)

#: The package says this of its largest table.
pytestmark = [
    pytest.mark.usefixtures("frozen_imports"),
    pytest.mark.filterwarnings("ignore:Numba not available:RuntimeWarning"),
]

RAM = cs.StorageType.RAM


def periodic(steps: int) -> Any:
    """It prints its period when it is made."""
    with contextlib.redirect_stdout(io.StringIO()):
        return cs.PeriodicDiskRevolve(steps, 3)


SCHEDULES: dict[str, Callable[[int], Any]] = {
    "every state": lambda n: None,
    "revolve": lambda n: cs.Revolve(n, 4),
    "multistage": lambda n: cs.MultistageCheckpointSchedule(n, 2, 3),
    "mixed, disk": lambda n: cs.MixedCheckpointSchedule(n, 4),
    "mixed, memory": lambda n: cs.MixedCheckpointSchedule(n, 5, storage=RAM),
    "h-revolve": lambda n: cs.HRevolve(max(n, 2), 2, 3) if n > 1 else cs.Revolve(n, 2),
    "disk revolve": lambda n: cs.DiskRevolve(n, 2),
    "periodic disk revolve": periodic,
    "two level": lambda n: cs.TwoLevelCheckpointSchedule(5, 2),
    "two level, memory": lambda n: cs.TwoLevelCheckpointSchedule(4, 2, binomial_storage=RAM),
    "single memory": lambda n: cs.SingleMemoryStorageSchedule(),
    "single disk": lambda n: cs.SingleDiskStorageSchedule(),
    "single disk, moving": lambda n: cs.SingleDiskStorageSchedule(move_data=True),
}


def small_store() -> velocpy.Store:
    """Too small to hold the states of a loop in memory."""
    return velocpy.open(host="128KiB", disk="64MiB")


@pytest.fixture
def store() -> Iterator[velocpy.Store]:
    with small_store() as opened:
        yield opened


@pytest.fixture
def history(store: velocpy.Store) -> Iterator[velocpy.History]:
    made = store.history("loop")
    yield made
    assert len(made) == 0, "checkpoints were left"


# --- problems ---------------------------------------------------------------------------------------------------------

#: A step, the first state, and the tensors that the step uses beside it.
Problem = tuple[Callable[[int, Any], Any], Any, Any]


class Pair(NamedTuple):
    u: Any
    v: Any


def values(*shape: int, dtype: Any = torch.float32, grad: bool = False) -> Any:
    return (torch.randn(shape, dtype=dtype) / 2).requires_grad_(grad)


def tensor(dtype: Any) -> Problem:
    """One tensor; two parameters, each used several times in a step."""
    a, b = values(9, 9, dtype=dtype, grad=True), values(9, dtype=dtype, grad=True)

    def step(i: int, u: Any) -> Any:
        v = torch.tanh(u @ a + b) if u.dtype != torch.bfloat16 else torch.tanh((u[:, :, None] * a).sum(1) + b)
        w = v * b + v.roll(1, 0) * (a[0] + b * b)
        return torch.sin(w + u * a[i % 9]) * b

    return step, values(7, 9, dtype=dtype, grad=True), [a, b]


def nested(dtype: Any) -> Problem:
    """A nested state; some of it is of integers, without gradients, passed through, from nothing, or a view."""
    a, unused, fixed = values(6, dtype=dtype, grad=True), values(2, grad=True), values(6, dtype=dtype)

    def step(i: int, state: Any) -> Any:
        (u, rest), count, steady = state["pair"], state["count"], state["steady"]
        u = u * a + rest[0] * steady + fixed
        rest = [torch.cos(u + a)[1:].repeat(2)[:6], torch.full_like(a, i)]
        u[0] = 0
        u.mul_(a + 1)
        return {
            "pair": Pair(u, rest),
            "count": count + 1,
            "steady": steady,
            "mask": state["mask"] * 0.5,
            "view": state["view"].roll(1)[:3] + u[3:] * count.to(u.dtype),
        }

    state = {
        "pair": Pair(values(6, dtype=dtype), [values(6, dtype=dtype, grad=True), values(6, dtype=dtype)]),
        "count": torch.tensor(1),
        "steady": values(6, dtype=dtype, grad=True),
        "mask": values(6, dtype=dtype),
        "view": values(3, dtype=dtype),
    }
    return step, state, [a, unused, fixed]


def same_twice(dtype: Any) -> Problem:
    """One tensor at several places of the state, from the start and from each step; one is a parameter."""
    a = values(5, dtype=dtype, grad=True)

    def step(i: int, state: Any) -> Any:
        u, v, w = state
        x = u * v + torch.sin(u) * a
        y = x - v * w * u + x * v
        return [x * u, y, w] if i % 3 == 2 else [y, y, a]

    u = values(5, dtype=dtype, grad=True)
    return step, [u, u, a], [a]


def strided(dtype: Any) -> Problem:
    """States that are transposed, conjugated, repeated, and cut out of larger ones."""
    a = values(8, 8, dtype=dtype, grad=True)

    def step(i: int, state: Any) -> Any:
        u, repeated, cut = state
        u = u @ a if u.dtype != torch.bfloat16 else u * a
        u = (torch.tanh(u) + repeated.sum(1) * cut.sum(1)).t().conj()
        return u, u.sum(1, keepdim=True).sin().expand(8, 8), torch.cat([u, u * a], 1)[:, ::2]

    return step, (values(8, 8, dtype=dtype, grad=True), values(8, 8, dtype=dtype), values(8, 8, dtype=dtype)), [a]


def module(dtype: Any) -> Problem:
    """A module with dropout; its weights are needed twice."""
    net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Dropout(0.4)).to(dtype)

    def step(i: int, state: Any) -> Any:
        u, v = state
        return net(net(u) + v), net(v) + torch.randn(6, dtype=dtype)

    return step, (values(4, 6, dtype=dtype), values(4, 6, dtype=dtype)), net


PROBLEMS = {f.__name__: f for f in (tensor, nested, same_twice, strided, module)}
REAL = [torch.float32, torch.float64, torch.bfloat16]
DTYPES = {"module": REAL}


def bits(tensor: Any) -> Any:
    if tensor is None:
        return None
    plain = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.detach().reshape(-1))
    return tensor.shape, tensor.dtype, plain.view(torch.uint8).numpy().tobytes()


def leaves(state: Any) -> list[Any]:
    if isinstance(state, torch.Tensor):
        return [state]
    parts = state.values() if isinstance(state, dict) else state
    return [leaf for part in parts for leaf in leaves(part)]


Loop = Callable[..., Any]


def plain(step: Any, n: int, state: Any, parameters: Any = None) -> Any:
    for i in range(n):
        state = step(i, state)
    return state


def outcome(make: Callable[[], Problem], n: int, loop: Loop) -> Any:
    """What a loop gives: the last state, which of it requires gradients, the gradients, and the next random numbers."""
    torch.manual_seed(1)
    step, state, parameters = make()
    named = list(parameters.parameters()) if isinstance(parameters, torch.nn.Module) else parameters
    before = [bits(t) for t in leaves(state)]
    final = loop(step, n, state, parameters=parameters)
    drawn = torch.rand(3)
    ends = leaves(final)
    found = [(bits(t), t.requires_grad) for t in ends]
    differentiable = [t for t in {id(t): t for t in ends}.values() if t.requires_grad]
    torch.autograd.backward(differentiable, [torch.randn_like(t) for t in differentiable])
    assert [bits(t) for t in leaves(state)] == before, "an input was modified"
    gradients = [bits(t.grad) for t in (*leaves(state), *named) if t.is_leaf]
    return type(final), found, gradients, bits(drawn), bits(torch.rand(3))


def in_history(history: Any, schedule: Any, **options: Any) -> Loop:
    def loop(step: Any, n: int, state: Any, parameters: Any) -> Any:
        return checkpointed(step, n, state, history=history, schedule=schedule, parameters=parameters, **options)

    return loop


# --- gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULES)
def test_gradients_are_those_of_plain_autograd(history: Any, name: str) -> None:
    for problem, n in itertools.product(PROBLEMS, (1, 2, 17)):

        def make(problem: str = problem) -> Problem:
            return PROBLEMS[problem](torch.float32)

        assert outcome(make, n, in_history(history, SCHEDULES[name](n))) == outcome(make, n, plain), (problem, n)
        assert len(history) == 0


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([(p, d) for p in PROBLEMS for d in DTYPES.get(p, [*REAL, torch.complex64, torch.complex128])]),
    st.sampled_from(sorted(SCHEDULES)),
    st.integers(1, 14),
)
def test_any_dtype_length_and_schedule(of: tuple[str, Any], name: str, n: int) -> None:
    problem, dtype = of

    def make() -> Problem:
        return PROBLEMS[problem](dtype)

    with small_store() as store:
        history = store.history("any")
        assert outcome(make, n, in_history(history, SCHEDULES[name](n))) == outcome(make, n, plain)
        assert len(history) == 0


def sines(n: int = 1) -> Any:
    """A step with one parameter, that is used twice."""
    torch.manual_seed(n)
    a = values(50, grad=True)
    return a, lambda i, u: torch.sin(u * a) + a * i


def same_gradient(history: Any, n: int, make: Callable[[], Any], **options: Any) -> None:
    """Of a step and parameters by ``make``, from a random state."""
    found = []
    for loop in (plain, in_history(history, None, **options)):
        torch.manual_seed(7)
        step, parameters = make()
        u = values(6, grad=True)
        end = loop(step, n, u, parameters=parameters)
        (end * torch.randn_like(end)).sum().backward()
        found.append([bits(end), bits(u.grad), *(bits(p.grad) for p in parameters)])
    assert found[0] == found[1]


def test_states_move_to_the_disk(store: Any, history: Any) -> None:
    a, step = sines()
    end = checkpointed(step, 200, values(50), history=history, parameters=[a])
    assert len(history) == 199
    end.sum().backward()
    assert store.stats()["tiers"]["disk"]["written_bytes"] > 0


def test_no_lease_is_written() -> None:
    for name in ("every state", "single disk", "mixed, memory", "two level"):
        with velocpy.open(host="128KiB", disk="64MiB", debug=True) as store:
            loop = in_history(store.history("loop"), SCHEDULES[name](11))
            make = lambda: nested(torch.float32)  # noqa: E731
            assert outcome(make, 11, loop) == outcome(make, 11, plain)


def test_numbers_that_are_none(history: Any) -> None:
    def make() -> Any:
        a = torch.tensor([0.0, -0.0, -1.0, float("inf"), 1e-40, 2.0], requires_grad=True)
        return lambda i, u: torch.log(u * a) + torch.sqrt(a) / a * u, [a]

    same_gradient(history, 5, make)


def test_a_step_that_differentiates(history: Any) -> None:
    def make() -> Any:
        a = values(6, grad=True)

        def step(i: int, u: Any) -> Any:
            with torch.enable_grad():
                x = u if u.requires_grad else u.detach().requires_grad_()
                (force,) = torch.autograd.grad((torch.sin(x * a) * a).sum(), x, create_graph=True)
            return u + 0.1 * force

        return step, [a]

    same_gradient(history, 9, make)


def test_a_step_with_a_checkpoint_of_torch(history: Any) -> None:
    def make() -> Any:
        a = values(6, grad=True)

        def inner(u: Any) -> Any:
            return torch.nn.functional.dropout(torch.sin(u * a), 0.3) * a

        return lambda i, u: torch.utils.checkpoint.checkpoint(inner, u, use_reentrant=False) + a, [a]

    same_gradient(history, 9, make)


def test_a_loop_in_a_step(history: Any) -> None:
    a = values(6, grad=True)

    def step(i: int, u: Any) -> Any:
        return torch.sin(u * a)

    def steps(i: int, u: Any) -> Any:
        return checkpointed(step, 5, u, history=history, parameters=[a])

    u = values(6)
    (expected,) = torch.autograd.grad(plain(step, 20, u).sum(), a)
    end = checkpointed(steps, 4, u, history=history, parameters=[a])
    assert bits(end) == bits(plain(step, 20, u))
    (gradient,) = torch.autograd.grad(end.sum(), a)
    torch.testing.assert_close(gradient, expected)


def test_computed_parameters(history: Any) -> None:
    raw = values(6, grad=True)

    def make() -> Any:
        raw.grad = None
        a, b = torch.exp(raw).split(3)
        return lambda i, u: torch.cat([torch.sin(u[:3] * a) * a, u[3:] * b + a * b]), [a, b]

    found = []
    for loop in (plain, in_history(history, None)):
        step, parameters = make()
        loop(step, 8, torch.ones(6), parameters=parameters).sum().backward()
        found.append(bits(raw.grad))
    assert found[0] == found[1]


def test_a_control_for_each_step(history: Any) -> None:
    def make() -> Any:
        controls = [values(6, grad=True) for _ in range(20)]
        return lambda i, u: torch.sin(u + controls[i] * u) * controls[i - 1], controls

    same_gradient(history, 20, make)


def test_gradients_begin_in_the_middle(history: Any) -> None:
    """No tensor of the state requires a gradient before step 3; one never does."""
    found = []
    for loop in (plain, in_history(history, SCHEDULES["revolve"](9))):
        a = torch.full((4,), 0.7, requires_grad=True)

        def step(i: int, state: Any, a: Any = a) -> Any:
            u, v = state
            assert not v.requires_grad
            return (torch.sin(u * a) if i >= 3 else u + 1), torch.from_numpy(v.numpy() * 2)

        u, v = loop(step, 9, (torch.ones(4), torch.ones(4)), parameters=[a])
        assert (u.requires_grad, v.requires_grad) == (True, False)
        u.sum().backward()
        found.append(bits(a.grad))
    assert found[0] == found[1]


def test_only_some_results_are_used(history: Any) -> None:
    found = []
    for loop in (plain, in_history(history, None)):
        torch.manual_seed(3)
        step, state, parameters = nested(torch.float64)
        end = loop(step, 7, state, parameters=parameters)
        of = [parameters[0], state["pair"].v[0], state["steady"]]
        found.append([bits(g) for g in torch.autograd.grad(end["view"].sum(), of, allow_unused=True)])
    assert found[0] == found[1]


def test_hooks_see_the_whole_gradient_once(history: Any) -> None:
    calls: list[Any] = []

    def make() -> Any:
        a = values(6, grad=True)
        a.register_hook(lambda g: calls.append(bits(g)) or g * 2)
        return lambda i, u: torch.sin(u * a) * a, [a]

    same_gradient(history, 6, make)
    assert len(calls) == 2
    assert calls[0] == calls[1]


def test_uses_outside_of_the_loop(history: Any) -> None:
    """Before the loop: the same bits. After it: the loop's gradient is added as a whole."""
    found: dict[bool, list[Any]] = {False: [], True: []}
    for after, loop in itertools.product((False, True), (plain, in_history(history, None))):
        a, step = sines()
        u = torch.cos(a) * a
        end = loop(step, 12, u, parameters=[a])
        loss = end.sum() + (a**3).sum() if after else end.sum()
        loss.backward()
        found[after].append(a.grad)
    assert bits(found[False][0]) == bits(found[False][1])
    torch.testing.assert_close(*found[True])


def test_results_may_be_written(history: Any) -> None:
    """Also those that the last step passed through."""
    found = []
    for loop in (plain, in_history(history, cs.SingleMemoryStorageSchedule())):
        torch.manual_seed(5)
        a = values(4, grad=True)
        u, v = loop(lambda i, s, a=a: (s[0] * s[1] * a, s[1]), 5, (torch.ones(4), values(4)), parameters=[a])
        if loop is not plain:
            v.zero_()
        u.sum().backward()
        found.append(bits(a.grad))
    assert found[0] == found[1]


# --- generators and autocast ------------------------------------------------------------------------------------------


def test_generators_are_left_alone_on_request(history: Any) -> None:
    a, step = sines()
    end = checkpointed(lambda i, u: step(i, u), 9, values(50), history=history, parameters=[a], preserve_rng=False)
    with history.restore(next(iter(history))) as regions:
        assert not [name for name in regions if "generator" in name]
    end.sum().backward()


def test_generators_stand_where_they_stood(history: Any) -> None:
    a = values(6, grad=True)
    end = checkpointed(lambda i, u: u * a + torch.rand(6), 9, values(6), history=history, parameters=[a])
    before = torch.get_rng_state()
    end.sum().backward()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("inside", [False, True])
def test_autocast(history: Any, inside: bool) -> None:
    """The steps are computed again under the autocast of the forward sweep, wherever the backward pass runs."""
    found = []
    for loop in (plain, in_history(history, SCHEDULES["revolve"](6))):
        torch.manual_seed(2)
        net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
        dtypes = set()

        def step(i: int, u: Any, net: Any = net, dtypes: Any = dtypes) -> Any:
            v = net(u)
            dtypes.add(v.dtype)
            return u + net(v).float()

        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
            end = loop(step, 6, values(3, 8), parameters=net)
            if inside:
                end.sum().backward()
        if not inside:
            end.sum().backward()
        assert dtypes == {torch.bfloat16}
        found.append([bits(p.grad) for p in net.parameters()])
    assert found[0] == found[1]


def test_the_cache_of_autocast_hides_no_weight(history: Any) -> None:
    """A cast that was cached without a graph would cut the weight off from what follows the loop."""
    net = torch.nn.Linear(8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        end = checkpointed(lambda i, u: net(u).float(), 6, values(3, 8), history=history, parameters=net)
        after = net(end.detach()).float()
    after.sum().backward()
    assert net.weight.grad is not None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        end.sum().backward()


# --- nothing is left --------------------------------------------------------------------------------------------------


def test_a_graph_that_is_freed_drops_its_checkpoints(history: Any) -> None:
    a, step = sines()
    end = checkpointed(step, 9, values(50), history=history, parameters=[a])
    assert len(history) == 8
    del end
    assert len(history) == 0


def test_a_result_that_the_step_can_reach_is_freed(history: Any) -> None:
    class Solver:
        def __init__(self) -> None:
            self.a = values(5, grad=True)
            self.end = checkpointed(self.step, 9, values(5), history=history, parameters=[self.a])

        def step(self, i: int, u: Any) -> Any:
            return u * self.a

    solver = Solver()
    assert len(history) == 8
    del solver
    gc.collect()
    assert len(history) == 0


@pytest.mark.parametrize("name", ["every state", "h-revolve", "single disk", "two level"])
def test_what_a_step_raises_passes_through(history: Any, name: str) -> None:
    a, step = sines()
    calls: list[int] = []

    def fails_at(call: int) -> Callable[[int, Any], Any]:
        def failing(i: int, u: Any) -> Any:
            calls.append(i)
            if len(calls) == call:
                raise ZeroDivisionError("on purpose")
            return step(i, u)

        calls.clear()
        return failing

    def run(failing: Any) -> Any:
        schedule = SCHEDULES[name](11)
        return checkpointed(failing, 11, values(50), history=history, schedule=schedule, parameters=[a])

    for call in (1, 8):
        with pytest.raises(ZeroDivisionError, match="on purpose"):
            run(fails_at(call))
        assert len(history) == 0
    end = run(fails_at(16))
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        end.sum().backward()
    assert len(history) == 0


def test_a_backward_pass_that_failed_hints_nothing_more(history: Any) -> None:
    class Listening:
        def __getattr__(self, name: str) -> Any:
            return getattr(history, name)

        def hint(self, plan: Any) -> None:
            self.plan = plan
            self.first = next(plan)

    listening, calls = Listening(), itertools.count()
    u = values(5, grad=True)
    end = checkpointed(lambda i, u: u * (1 // (next(calls) != 12)), 10, u, history=listening)
    with pytest.raises(ZeroDivisionError):
        end.sum().backward()
    assert listening.first.key.endswith("ram/restart/8")
    assert list(listening.plan) == []


def test_where_nothing_needs_a_gradient_nothing_is_stored(store: Any, history: Any) -> None:
    a, step = sines()
    u = values(50)
    expected = bits(plain(step, 9, u))
    for context in (torch.no_grad(), torch.inference_mode()):
        with context:
            end = checkpointed(step, 9, u, history=history, parameters=[a])
        assert bits(end) == expected
        assert not end.requires_grad
    end = checkpointed(lambda i, u: torch.sin(u), 9, u, history=history)
    assert not end.requires_grad
    assert store.stats()["tiers"]["host"]["written_bytes"] == 0


def test_no_steps(history: Any) -> None:
    u = values(3, grad=True)
    assert checkpointed(lambda i, u: u * 2, 0, u, history=history) is u


def test_several_loops_share_a_history(history: Any) -> None:
    expected, found = {}, {}
    for loop, results in ((plain, expected), (in_history(history, None), found)):
        made = [sines(k) for k in range(3)]
        ends = [loop(step, 9 + k, torch.ones(50), parameters=[a]) for k, (a, step) in enumerate(made)]
        for k in (1, 2, 0):
            ends[k].sum().backward()
            results[k] = bits(made[k][0].grad)
    assert found == expected


def test_other_keys_of_the_history_stay(history: Any) -> None:
    history.checkpoint("mine", u=torch.arange(3))
    a, step = sines()
    checkpointed(step, 9, values(50), history=history, parameters=[a]).sum().backward()
    assert list(history) == ["mine"]
    history.clear()


# --- what cannot be ---------------------------------------------------------------------------------------------------


def test_a_second_backward_pass_is_refused(history: Any) -> None:
    a, step = sines()
    loss = checkpointed(step, 9, values(50), history=history, parameters=[a]).sum()
    loss.backward(retain_graph=True)
    before = bits(a.grad)
    with pytest.raises(GraphError, match="has run already"):
        loss.backward()
    assert bits(a.grad) == before


def test_a_second_derivative_is_refused(history: Any) -> None:
    a, step = sines()
    loss = checkpointed(step, 9, values(50), history=history, parameters=[a]).sum()
    (gradient,) = torch.autograd.grad(loss, a, create_graph=True)
    with pytest.raises(GraphError, match="second derivative"):
        gradient.sum().backward()


def test_parameters_written_before_the_backward_pass_are_refused(history: Any) -> None:
    a, step = sines()
    end = checkpointed(step, 9, values(50), history=history, parameters=[a])
    with torch.no_grad():
        a.add_(1)
    with pytest.raises(GraphError, match=r"parameter 0 .* was written"):
        end.sum().backward()
    del end


def test_a_computed_parameter_that_retains_its_gradient_is_refused(history: Any) -> None:
    a = values(5, grad=True).sin()
    end = checkpointed(lambda i, u: u * a, 9, values(5), history=history, parameters=[a])
    a.retain_grad()
    with pytest.raises(GraphError, match="retains its gradient"):
        end.sum().backward()
    del end


def test_a_tensor_that_is_not_named_is_told(history: Any) -> None:
    """At the first step, or when the backward pass comes to the step that uses it."""
    leaf, other = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for used, named in (
        (leaf, []),
        (leaf, [other]),
        (leaf * 2, [leaf]),
        (leaf * other, [leaf]),
        (torch.cat([leaf, other]).split(3)[0], [torch.cat([leaf, other]).split(3)[1]]),
    ):
        for begin, state in ((0, torch.ones(3)), (0, torch.ones(3, requires_grad=True)), (4, other * 1)):

            def step(i: int, u: Any, used: Any = used, begin: int = begin) -> Any:
                return u * used if i >= begin else u * 2

            with pytest.raises(InvalidArgument, match="name it in parameters="):
                checkpointed(step, 9, state, history=history, parameters=named).sum().backward()
            assert len(history) == 0


def test_a_step_that_returns_something_else_is_told(history: Any) -> None:
    for returned, message in (
        (lambda s: s["u"], "another structure than it was given: state is of type Tensor"),
        (lambda s: {"u": s["u"]}, "state has 1 parts, where 2 belong"),
        (lambda s: {"u": s["u"], "x": s["v"]}, "state has no 'v'"),
        (lambda s: {"u": s["u"], "v": None}, r"state\['v'\] is of type NoneType"),
        (lambda s: {"u": s["u"][:2], "v": s["v"]}, r"state\['u'\] as float32 of shape \(2,\) on cpu; it was .* \(3,\)"),
        (lambda s: {"u": s["u"], "v": s["v"].double()}, r"state\['v'\] as float64 of shape"),
        (lambda s: s["v"].add_(1) is None or s, r"step\(4, …\) wrote into state\['v'\]"),
    ):
        for grad in (True, False):
            state = {"u": values(3, grad=grad), "v": values(3)}
            with pytest.raises(InvalidArgument, match=message) as told:
                checkpointed(lambda i, s, r=returned: r(s) if i == 4 else s, 9, state, history=history)
            assert "step(4, …)" in str(told.value)
            assert len(history) == 0


def test_the_first_step_cannot_write_into_the_callers_state(history: Any) -> None:
    u = torch.ones(3)
    a = torch.ones(3, requires_grad=True)
    for options in ({}, {"parameters": [a]}):
        with pytest.raises(InvalidArgument, match=r"step\(0, …\) wrote into state, "):
            checkpointed(lambda i, u: u.mul_(2), 9, u, history=history, **options)
        assert u.tolist() == [1, 1, 1]


def test_wrong_arguments_are_typed_errors(history: Any) -> None:
    arguments: dict[str, Any] = {"step": lambda i, u: u * 2, "n": 9, "state": torch.ones(3), "history": history}
    wrong: dict[str, Any]
    error: type[Exception]
    for wrong, error in (
        ({"n": -1}, InvalidArgument),
        ({"n": True}, InvalidType),
        ({"n": 2.0}, InvalidType),
        ({"step": 5}, InvalidType),
        ({"history": 5}, InvalidType),
        ({"state": 5}, InvalidType),
        ({"state": {"u": None}}, InvalidType),
        ({"state": {}}, InvalidArgument),
        ({"state": [torch.ones(3).to_sparse()]}, InvalidType),
        ({"schedule": 5}, InvalidType),
        ({"schedule": cs.Revolve(8, 2)}, ScheduleError),
        ({"schedule": cs.NoneCheckpointSchedule()}, ScheduleError),
        ({"parameters": torch.ones(3)}, InvalidType),
        ({"parameters": 5}, InvalidType),
        ({"parameters": [5]}, InvalidType),
    ):
        with pytest.raises(error):
            checkpointed(**(arguments | wrong))


def test_a_started_schedule_is_refused(history: Any) -> None:
    schedule = cs.Revolve(9, 2)
    next(schedule)
    with pytest.raises(ScheduleError, match="started"):
        checkpointed(lambda i, u: u * 2, 9, values(3, grad=True), history=history, schedule=schedule)


def test_torch_is_imported_when_it_is_used(run_python: RunPython) -> None:
    done = run_python(
        """
        import sys
        from velocpy.adjoint import checkpointed
        assert "torch" not in sys.modules
        sys.modules["torch"] = None
        try:
            checkpointed(print, 1, None, history=None)
        except ImportError as error:
            print(type(error).__name__, error)
        """
    )
    assert done.stdout.startswith("MissingExtra velocpy.adjoint.checkpointed needs torch"), done.stderr


def test_the_example_of_the_page_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (root / "docs" / "adjoint.md").read_text()
    (code,) = (code for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "checkpointed" in code)
    exec(code, {})
    assert capsys.readouterr().out == "True\n"


# --- layouts ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([torch.float32, torch.complex64, torch.int16]))
def test_layouts_come_back(data: st.DataObject, dtype: Any) -> None:
    shape = data.draw(st.lists(st.integers(0, 4), max_size=4))
    tensor = torch.arange(torch.Size(shape).numel()).to(dtype).reshape(shape)
    if dtype.is_complex:
        tensor = (tensor * (1 + 2j)).conj()
    for axis, size in enumerate(shape):
        tensor = tensor[(slice(None),) * axis + (slice(0, None, data.draw(st.integers(1, 2))),)]
        if size and data.draw(st.booleans()):
            tensor = tensor.narrow(axis, 0, 1).expand(*tensor.shape[:axis], 3, *tensor.shape[axis + 1 :])
    tensor = tensor.permute(data.draw(st.permutations(range(len(shape)))))
    stored = layout.packed(tensor)
    assert not stored.is_conj()
    for bare in (stored, stored.contiguous(), stored.clone()):
        again = layout.unpacked(bare, layout.layout_of(tensor))
        assert bits(again) == bits(tensor)
        assert again.is_conj() == tensor.is_conj()
        if tensor.numel():
            strides = zip(again.stride(), tensor.stride(), tensor.shape, strict=True)
            assert all(one == other for one, other, size in strides if size > 1)


def test_overlapping_elements_keep_their_values() -> None:
    tensor = torch.arange(9.0).unfold(0, 4, 1)
    again = layout.unpacked(layout.packed(tensor).clone(), layout.layout_of(tensor))
    assert torch.equal(again, tensor)
