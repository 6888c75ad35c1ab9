"""A training that goes back to a snapshot continues bit by bit as it did the first time."""

from __future__ import annotations

import copy
import random
from collections import Counter, OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RunPython
from hypothesis import given, settings
from hypothesis import strategies as st

import velocpy
from velocpy import errors
from velocpy.training import Checkpointer, encoding, restoring

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("frozen_imports")


class Sampler:
    """Batches in a random order, with a position in it."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(5)
        self.left: list[int] = []

    def next(self) -> int:
        if not self.left:
            self.left = torch.randperm(7, generator=self.generator).tolist()
        return self.left.pop()

    def state_dict(self) -> dict[str, Any]:
        return {"generator": self.generator.get_state(), "left": list(self.left)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.generator.set_state(state["generator"])
        self.left = list(state["left"])


class Net(torch.nn.Module):
    """Layers with parameters, buffers, random numbers, a tied weight and elements of several dtypes."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, width)
        self.norm = torch.nn.BatchNorm1d(width)
        self.drop = torch.nn.Dropout(0.3)
        self.second = torch.nn.Linear(width, width, bias=False)
        self.tied = torch.nn.Linear(width, width, bias=False)
        self.tied.weight = self.second.weight
        self.scale = torch.nn.Parameter(torch.full((width,), 0.5, dtype=torch.bfloat16))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        self.seen += 1
        x = self.drop(self.norm(self.first(x)))
        return self.tied(torch.tanh(self.second(x))) * self.scale


OPTIMIZERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw, fused": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True, fused=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "plain sgd": lambda p: torch.optim.SGD(p, lr=0.01),
    "tensor lr": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.01), capturable=False, foreach=False),
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=2, history_size=3),
}

SCHEDULERS = {
    "steps": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [2, 2, 5], gamma=0.5),
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10),
    "lambda": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda n: 0.9**n),
    "sequence": lambda o: torch.optim.lr_scheduler.SequentialLR(
        o,
        [torch.optim.lr_scheduler.ConstantLR(o, 0.1, 3), torch.optim.lr_scheduler.ExponentialLR(o, 0.9)],
        milestones=[3],
    ),
}


class Training:
    """A small training with everything that a step depends on."""

    def __init__(self, optimizer: str = "adam", scheduler: str = "steps", width: int = 8) -> None:
        torch.manual_seed(1)
        np.random.seed(2)
        random.seed(3)
        self.model = Net(width)
        self.optimizer = OPTIMIZERS[optimizer](list(self.model.parameters()))
        self.scheduler = SCHEDULERS[scheduler](self.optimizer)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
        self.sampler = Sampler()
        self.noise = np.random.default_rng(4)
        self.dice = random.Random(6)

    def parts(self) -> dict[str, Any]:
        names = ("model", "optimizer", "scheduler", "scaler", "sampler", "noise", "dice")
        return {name: getattr(self, name) for name in names}

    def step(self) -> None:
        shift = self.sampler.next() + self.noise.normal() + self.dice.random() + random.random() + np.random.rand()
        x = torch.randn(6, 4) + shift / 10

        def closure() -> Any:
            self.optimizer.zero_grad()
            loss = self.model(x).square().mean()
            (loss if isinstance(self.optimizer, torch.optim.LBFGS) else self.scaler.scale(loss)).backward()
            return loss

        if isinstance(self.optimizer, torch.optim.LBFGS):
            self.optimizer.step(closure)
        else:
            closure()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.scheduler.step()

    def run(self, steps: int) -> Any:
        for _ in range(steps):
            self.step()
        return self.seen()

    def seen(self) -> Any:
        """A copy of everything, to be compared."""
        states = {name: part.state_dict() for name, part in self.parts().items() if hasattr(part, "state_dict")}
        drawn = (
            self.noise.bit_generator.state,
            self.dice.getstate(),
            random.getstate(),
            np.random.get_state(legacy=False),
        )
        return copy.deepcopy((states, drawn, torch.get_rng_state()))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bool((bits(a) == bits(b)).all())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a)


def bits(tensor: Any) -> Any:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def test_what_lies_on_a_device_is_filled_by_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of tensors on a device, with tensors of the host in their place."""
    monkeypatch.setattr(restoring, "on_host", lambda tensor: False)
    training = Training("adamw, fused")
    with velocpy.open(host="64MiB") as store:
        checkpointer = Checkpointer(store, **training.parts())
        saved = training.run(2)
        checkpointer.save(2)
        first = training.run(3)
        checkpointer.restore()
        assert same(training.seen(), saved)
        assert same(training.run(3), first)
        wider = Training(width=9)
        error = before_and_after(wider, Checkpointer(store, **wider.parts()))
        assert error.type is errors.StateMismatch
        assert "(9,)" in str(error.value)
        assert "Nothing was restored" in str(error.value)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_training_continues_bit_by_bit(optimizer: str) -> None:
    scheduler = list(SCHEDULERS)[list(OPTIMIZERS).index(optimizer) % len(SCHEDULERS)]
    training = Training(optimizer, scheduler)
    with Checkpointer(**training.parts(), host="64MiB", keep=4) as checkpointer:
        states = {}
        for step in (0, 1, 4):
            states[step] = training.run({0: 0, 1: 1, 4: 3}[step])
            checkpointer.save(step)
        first = training.run(4)
        for step, more in ((4, 4), (1, 7), (0, 8), (0, 8)):
            training.run(2)
            assert checkpointer.restore(step) == step
            assert same(training.seen(), states[step]), step
            assert same(training.run(more), first), step
        assert checkpointer.rollback(to=1) == 1
        assert checkpointer.steps == (0, 1)
        assert checkpointer.latest() == 1


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "lbfgs"])
def test_a_training_that_starts_anew_continues_bit_by_bit(optimizer: str, tmp_path: Path) -> None:
    training = Training(optimizer)
    with Checkpointer(path=tmp_path, **training.parts(), host="64MiB", durable_every=3) as checkpointer:
        for step in range(4):
            checkpointer.save(step)
            training.step()
        first = training.run(2)
    training = Training(optimizer)
    with Checkpointer(path=tmp_path, **training.parts(), host="64MiB") as checkpointer:
        assert checkpointer.resume() == 3
        assert same(training.run(3), first)


def test_tensors_stay_where_they_are() -> None:
    training = Training("adamw, fused")
    training.run(2)
    with Checkpointer(**training.parts(), host="64MiB") as checkpointer:
        checkpointer.save(2)
        training.run(1)
        held = [*training.model.parameters(), *training.model.buffers()]
        held += [value for each in training.optimizer.state.values() for value in each.values()]
        places = [tensor.data_ptr() for tensor in held]
        checkpointer.rollback()
        assert [tensor.data_ptr() for tensor in held] == places
        now = [value for each in training.optimizer.state.values() for value in each.values()]
        assert all(a is b for a, b in zip(held[-len(now) :], now, strict=True))
        assert training.model.tied.weight is training.model.second.weight


def test_tied_weights_are_captured_once() -> None:
    model = torch.nn.ModuleList([torch.nn.Linear(64, 64, bias=False) for _ in range(2)])
    model[1].weight = model[0].weight
    with Checkpointer(model=model, host="64MiB", random=False) as checkpointer:
        checkpointer.save(0)
        assert checkpointer.history.size(0) == 64 * 64 * 4
        weights = model[0].weight.detach().clone()
        with torch.no_grad():
            model[0].weight.zero_()
        checkpointer.restore()
        assert torch.equal(model[0].weight, weights)


def test_a_snapshot_before_the_first_step_empties_the_optimizer() -> None:
    training = Training("adam")
    with Checkpointer(**training.parts(), host="64MiB") as checkpointer:
        checkpointer.save(0)
        training.run(3)
        checkpointer.rollback()
        assert not training.optimizer.state


def test_what_the_module_adds_to_its_state_comes_back() -> None:
    class Counted(torch.nn.Linear):
        calls = 0

        def get_extra_state(self) -> Any:
            return {"calls": self.calls, "table": torch.arange(3)}

        def set_extra_state(self, state: Any) -> None:
            self.calls = state["calls"]
            self.table = state["table"]

    model = Counted(2, 2)
    weights = model.weight.detach().clone()
    with Checkpointer(model=model, host="64MiB") as checkpointer:
        model.calls = 7
        checkpointer.save(0)
        model.calls = 9
        with torch.no_grad():
            model.weight.zero_()
        checkpointer.restore()
        assert model.calls == 7
        assert model.table.tolist() == [0, 1, 2]
        assert torch.equal(model.weight, weights)


def test_a_module_whose_state_is_a_copy_is_set_through_it() -> None:
    model = torch.nn.Linear(3, 3)
    model._register_state_dict_hook(lambda module, state, prefix, meta: {key: 2 * v for key, v in state.items()})
    model.register_load_state_dict_pre_hook(
        lambda module, state, *_: state.update({key: value / 2 for key, value in state.items()})
    )
    weights = model.weight.detach().clone()
    with Checkpointer(model=model, host="64MiB") as checkpointer:
        checkpointer.save(0)
        with torch.no_grad():
            model.weight.zero_()
        checkpointer.restore()
    assert torch.equal(model.weight, weights)


def test_a_module_whose_state_is_set_as_a_whole_is_not_converted() -> None:
    class Versioned(torch.nn.Linear):
        _version = 2

        def get_extra_state(self) -> int:
            return 1

        def set_extra_state(self, state: Any) -> None:
            pass

        def _load_from_state_dict(self, state: Any, prefix: str, metadata: Any, *rest: Any) -> None:
            if metadata.get("version", 1) < 2:
                state[prefix + "weight"] = state[prefix + "weight"] * 2
            super()._load_from_state_dict(state, prefix, metadata, *rest)

    model = Versioned(3, 3)
    weights = model.weight.detach().clone()
    with Checkpointer(model=model, host="64MiB") as checkpointer:
        checkpointer.save(0)
        checkpointer.restore()
    assert torch.equal(model.weight, weights)


def test_buffers_that_are_expanded_or_overlap_come_back() -> None:
    model, base = torch.nn.Linear(2, 2), torch.arange(6.0)
    for name, buffer in {"wide": torch.ones(3, 1).expand(3, 4), "head": base[:4], "tail": base[2:]}.items():
        model.register_buffer(name, buffer)
    before = copy.deepcopy(model.state_dict())
    with velocpy.open(host="64MiB") as store:
        checkpointer = Checkpointer(store, model=model)
        checkpointer.save(0)
        with torch.no_grad():
            for each in (model.weight, model.wide[:, :1], base):
                each.add_(1)
        checkpointer.restore()
        assert same(model.state_dict(), before)
        assert model.wide.stride() == (1, 0)

        model.wide = torch.arange(12.0).reshape(3, 4)
        checkpointer.save(1)
        model.wide = torch.ones(3, 1).expand(3, 4)
        with torch.no_grad():
            model.weight.zero_()
        with pytest.raises(errors.StateMismatch, match=r"'model\.wide' is an expanded tensor"):
            checkpointer.restore()
        assert not model.weight.any()


def test_an_optimizer_with_state_that_belongs_to_no_parameter() -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.state["round"] = 3
    before = copy.deepcopy(optimizer.state_dict())
    with Checkpointer(optimizer=optimizer, host="64MiB") as checkpointer:
        checkpointer.save(0)
        optimizer.state["round"] = 4
        optimizer.step()
        checkpointer.restore()
    assert same(optimizer.state_dict(), before)


def test_what_a_subclass_adds_to_the_state_of_an_optimizer_comes_back() -> None:
    class Counting(torch.optim.SGD):
        rounds = 3

        def state_dict(self) -> dict[str, Any]:
            return {**super().state_dict(), "rounds": self.rounds}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.rounds = state["rounds"]
            super().load_state_dict({key: state[key] for key in ("state", "param_groups")})

    model = torch.nn.Linear(2, 2)
    optimizer = Counting(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    before = copy.deepcopy(optimizer.state_dict())
    with Checkpointer(optimizer=optimizer, host="64MiB") as checkpointer:
        checkpointer.save(0)
        optimizer.rounds = 4
        optimizer.step()
        checkpointer.restore()
    assert same(optimizer.state_dict(), before)


def test_a_tensor_at_two_places_of_a_state_stays_one() -> None:
    class Holder:
        def __init__(self) -> None:
            shared = torch.ones(3)
            self.state = {"a": shared, "b": [shared]}

        def state_dict(self) -> Any:
            return self.state

        def load_state_dict(self, state: Any) -> None:
            self.state = state

    holder = Holder()
    with Checkpointer(holder=holder, host="64MiB") as checkpointer:
        checkpointer.save(0)
        held = holder.state["a"]
        checkpointer.restore()
    assert holder.state["a"] is holder.state["b"][0]
    assert holder.state["a"] is not held


# --- what stays ---


def test_tensors_that_begin_at_one_address() -> None:
    base = torch.arange(6.0)
    halves, empty = base.view(2, 3), torch.empty(0)
    state = [base, base[:3], halves, halves.t(), base[:3], base[:0], base, halves.t(), empty, empty]
    state.append(base.view(torch.int32))
    written = encoding.encode(state)
    stand_elsewhere = {number: each["of"] for number, each in enumerate(written) if isinstance(each, dict)}
    assert stand_elsewhere == {4: [1], 6: [0], 7: [3]}
    assert all(one is other for one, other in zip(written, state, strict=True) if not isinstance(one, dict))


def test_what_another_checkpointer_has_saved_as_durable_stays(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    with velocpy.open(tmp_path, host="64MiB", disk="64MiB") as store:
        first, second = (Checkpointer(store, model=model, keep=2) for _ in range(2))
        second.save(0, durable=True)
        second.save(1)
        for step in range(2, 6):
            first.save(step)
        assert first.steps == (0, 4, 5)


def test_the_ring_and_the_durable_ones(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    with Checkpointer(
        path=tmp_path, model=model, host="64MiB", keep=2, durable_every=4, keep_durable=2
    ) as checkpointer:
        for step in range(14):
            ticket = checkpointer.save(step)
        assert checkpointer.steps == (8, 12, 13)
        ticket = checkpointer.save(15, durable=True)
        ticket.wait("disk")
        assert checkpointer.steps == (12, 13, 15)
        checkpointer.save(17)
        assert checkpointer.steps == (12, 15, 17)
    with Checkpointer(path=tmp_path, model=model, host="64MiB", keep=1) as checkpointer:
        assert checkpointer.steps == (12, 15, 17)  # the latest one is written down when a checkpointer is closed
        assert checkpointer.resume() == 17
        checkpointer.save(18)
        assert checkpointer.steps == (12, 15, 18)  # of 17 it was known that it was but the latest
        checkpointer.rollback(to=12)
        assert checkpointer.steps == (12,)


def test_only_durable_snapshots_are_written_down(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    with Checkpointer(path=tmp_path, model=model, host="64MiB", keep=5, durable_every=3) as checkpointer:
        tickets = [checkpointer.save(step) for step in range(5)]
        for step in (0, 3):
            tickets[step].wait("disk", timeout=60)
        assert [ticket.durable("disk") for ticket in tickets] == [True, False, False, True, False]


def test_old_snapshots_make_room_where_memory_is_full() -> None:
    model = torch.nn.Linear(1024, 1024, bias=False)  # 4 MiB
    with Checkpointer(model=model, host="14MiB", keep=10, random=False) as checkpointer:
        for step in range(6):
            checkpointer.save(step)
        assert checkpointer.steps[-1] == 5
        assert 2 <= len(checkpointer.steps) <= 3
        checkpointer.restore(checkpointer.steps[0])


def test_a_snapshot_that_does_not_fit_is_an_error() -> None:
    small, large = torch.nn.Linear(8, 8), torch.nn.Linear(4096, 1024)
    with velocpy.open(host="8MiB") as store:
        checkpointer = Checkpointer(store, model=small)
        checkpointer.save(3)
        checkpointer.save(4)
        with pytest.raises(errors.TierFull):
            Checkpointer(store, model=large).save(5)
        assert checkpointer.restore() == 4


def test_a_store_that_was_given_stays_open() -> None:
    model = torch.nn.Linear(2, 2)
    with velocpy.open(host="64MiB") as store:
        with Checkpointer(store, model=model, history="a") as a, Checkpointer(store, model=model, history="b") as b:
            a.save(1)
            b.save(2)
        assert (a.steps, b.steps) == ((1,), (2,))
        assert not store.closed
        with pytest.raises(errors.InvalidArgument, match="not both"):
            Checkpointer(store, path="x", model=model)
        with pytest.raises(errors.InvalidArgument, match="outlives"):
            Checkpointer(store, model=model, durable_every=2)
        with pytest.raises(errors.InvalidArgument, match="outlives"):
            a.save(3, durable=True)


def test_a_frozen_layer_takes_room_once(tmp_path: Path) -> None:
    frozen, live = torch.nn.Linear(512, 512), torch.nn.Linear(64, 64)
    used = {}
    for reduce in ("raw", "tree"):
        with Checkpointer(
            path=tmp_path / reduce, host="64MiB", disk="256MiB", keep=1, durable_every=1, reduce=reduce,
            frozen=frozen, live=live,
        ) as checkpointer:  # fmt: skip
            for step in range(8):
                with torch.no_grad():
                    live.weight.add_(1)
                checkpointer.save(step).wait("disk")
            used[reduce] = checkpointer.store.stats()["tiers"]["disk"]["used"]
            weights = [each.detach().clone() for each in (*frozen.parameters(), live.bias)]
            with torch.no_grad():
                for each in (*frozen.parameters(), live.bias):
                    each.zero_()
            checkpointer.restore(0)
            assert all(map(torch.equal, (*frozen.parameters(), live.bias), weights))
    assert used["tree"] * 4 < used["raw"]


# --- what does not fit ---


class Marked(torch.Tensor):
    """A subclass that nobody knows."""


def before_and_after(training: Training, checkpointer: Checkpointer, **options: Any) -> pytest.ExceptionInfo[Any]:
    """The error of a restore that leaves the training as it was."""
    before = training.seen()
    with pytest.raises(errors.VelocError) as caught:
        checkpointer.restore(**options)
    assert same(training.seen(), before)
    return caught


def test_the_checkpoint_of_another_model_changes_nothing() -> None:
    with velocpy.open(host="64MiB") as store:
        Checkpointer(store, **Training(width=8).parts()).save(1)
        wider = Training(width=9)
        error = before_and_after(wider, Checkpointer(store, **wider.parts()))
        assert error.type is errors.StateMismatch
        assert "'model.scale' is bfloat16 (9,) in this training, and bfloat16 (8,) in" in str(error.value)
        assert (error.value.history, error.value.key) == ("training", 1)

        other = Training()
        other.model = torch.nn.Sequential(torch.nn.Linear(4, 8))
        error = before_and_after(other, Checkpointer(store, **other.parts()))
        assert "'model.0.weight' is something in this training, and nothing in the checkpoint" in str(error.value)

        other = Training()
        other.optimizer = torch.optim.Adam([{"params": [p]} for p in other.model.parameters()])
        error = before_and_after(other, Checkpointer(store, **other.parts()))
        assert "has groups of" in str(error.value)

        other = Training()
        error = before_and_after(other, Checkpointer(store, **other.parts(), ema=torch.nn.Linear(1, 1)))
        assert "has no 'ema'; it has model, optimizer" in str(error.value)

        untied = Training()
        untied.model.tied.weight = torch.nn.Parameter(untied.model.second.weight.detach().clone())
        error = before_and_after(untied, Checkpointer(store, model=untied.model))
        assert "tied.weight" in str(error.value)


def test_parts_can_be_restored_alone() -> None:
    training = Training()
    with velocpy.open(host="64MiB") as store:
        checkpointer = Checkpointer(store, **training.parts())
        training.run(2)
        saved = training.seen()
        checkpointer.save(2)
        later = training.run(2)
        checkpointer.restore(parts=["model"])
        now = training.seen()
        assert same(now[0]["model"], saved[0]["model"])
        assert same(now[0]["optimizer"], later[0]["optimizer"])
        assert same(now[1:], later[1:])
        alone = Net()
        Checkpointer(store, model=alone, random=False).restore()
        assert same(alone.state_dict(), saved[0]["model"])
        with pytest.raises(errors.InvalidArgument, match="no part 'modell'"):
            checkpointer.restore(parts="modell")


def test_a_damaged_snapshot_changes_nothing(run_python: RunPython) -> None:
    done = run_python(
        """
import copy
import torch, velocpy

model = torch.nn.Linear(64, 64)
optimizer = torch.optim.Adam(model.parameters())
def step():
    model(torch.randn(4, 64)).square().sum().backward()
    optimizer.step()
def seen():
    return copy.deepcopy((model.state_dict(), optimizer.state_dict(), torch.get_rng_state()))
HOST = 1
with velocpy.Checkpointer(model=model, optimizer=optimizer, host="16MiB") as checkpointer:
    step()
    checkpointer.save(1)
    step()
    for at in (100, 30_000, 52_000):
        checkpointer.history._core.corrupt(1, HOST, at)
        before = seen()
        try:
            checkpointer.rollback()
        except velocpy.errors.CorruptCheckpoint as error:
            assert error.key == 1, error
        else:
            raise AssertionError("the damage was not found")
        assert str(seen()) == str(before)
        assert all(torch.equal(a, b) for a, b in zip(seen()[0].values(), before[0].values()))
        checkpointer.history._core.corrupt(1, HOST, at)
    checkpointer.rollback()
""",
        env={"VELOCPY_TEST_HOOKS": "1"},
    )
    assert done.returncode == 0, done.stderr


def test_a_part_that_refuses_its_state_is_named() -> None:
    class Stubborn(Sampler):
        def load_state_dict(self, state: dict[str, Any]) -> None:
            raise KeyError("epoch")

    model, sampler = torch.nn.Linear(2, 2), Stubborn()
    with Checkpointer(model=model, sampler=sampler, host="64MiB") as checkpointer:
        checkpointer.save(1)
        with pytest.raises(
            errors.StateMismatch, match="'sampler' did not take the state of step 1: KeyError: 'epoch'"
        ) as e:
            checkpointer.restore()
        assert e.value.restored == ("model",)
        assert isinstance(e.value.__cause__, KeyError)
        assert checkpointer.steps == (1,)


@pytest.mark.parametrize(
    ("state", "entry"),
    [
        ({"a": {"b": object()}}, "sampler.a.b"),
        ({"a": [torch.zeros(2).to_sparse()]}, "sampler.a.0"),
        ({"a": torch.zeros(2, device="meta")}, "sampler.a"),
        ({"a": torch.zeros(2).as_subclass(Marked)}, "sampler.a"),
        ({("a", "b"): 1}, "sampler"),
        ({"x": {encoding.KIND: 1}}, "sampler.x"),
    ],
)
def test_a_state_with_objects_names_them(state: Any, entry: str) -> None:
    class Odd(Sampler):
        def state_dict(self) -> dict[str, Any]:
            return state  # type: ignore[no-any-return]

    with Checkpointer(model=torch.nn.Linear(1, 1), sampler=Odd(), host="64MiB") as checkpointer:
        with pytest.raises(errors.InvalidType, match=f"'{entry}'"):
            checkpointer.save(0)
        assert checkpointer.steps == ()


def test_arguments() -> None:
    model = torch.nn.Linear(1, 1)
    with pytest.raises(errors.InvalidArgument, match="needs something to save"):
        Checkpointer(model=None)
    with pytest.raises(errors.InvalidType, match=r"model\.1 is a int, which has no state_dict"):
        Checkpointer(model=[model, 3])
    with pytest.raises(errors.InvalidArgument, match="keep"):
        Checkpointer(model=model, keep=0)
    with pytest.raises(errors.InvalidType, match="give a generator of your own another name"):
        Checkpointer(model=model, random=random.Random(1))  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidArgument, match=r"two parts have the name 'models\.1'"):
        Checkpointer(models={1: model, "1": model})
    lazy, refused = torch.nn.LazyLinear(2), r"'model\.weight' is a parameter of a lazy module"
    with Checkpointer(model=lazy, host="64MiB") as checkpointer, pytest.raises(errors.InvalidType, match=refused):
        checkpointer.save(0)
    with Checkpointer(model=model, optimizer=None, host="64MiB") as checkpointer:
        with pytest.raises(errors.CheckpointNotFound, match="no snapshot to go back to"):
            checkpointer.rollback()
        assert checkpointer.resume() is None
        checkpointer.save(np.int64(4))
        with pytest.raises(errors.CheckpointNotFound):
            checkpointer.rollback(to=3)
        for step in (-1, 1.5, True, "last"):
            with pytest.raises(errors.InvalidArgument):
                checkpointer.save(step)  # type: ignore[arg-type]
        assert checkpointer.rollback() == 4
        assert "model" in repr(checkpointer)


def test_several_optimizers_and_generators() -> None:
    models = {"g": torch.nn.Linear(2, 2), "d": torch.nn.Linear(2, 2)}
    optimizers = [torch.optim.Adam(m.parameters()) for m in models.values()]
    generator, legacy = torch.Generator().manual_seed(3), np.random.RandomState(4)
    with Checkpointer(
        models=models, optimizers=optimizers, generator=generator, legacy=legacy, host="64MiB"
    ) as checkpointer:
        legacy.normal()
        checkpointer.save(0)
        drawn, numbers = torch.rand(3, generator=generator), legacy.normal(size=3)
        checkpointer.rollback()
        assert (legacy.normal(size=3) == numbers).all()
        assert torch.equal(torch.rand(3, generator=generator), drawn)
        assert "models.g" in repr(checkpointer)
        assert "optimizers.1" in repr(checkpointer)


# --- objects in trees ---

_keys = st.one_of(st.text(max_size=4).filter(lambda key: key != encoding.KIND), st.integers(-9, 9))
_atoms = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5),
    st.binary(max_size=9), st.complex_numbers(allow_nan=False),
    st.sampled_from([torch.float16, torch.device("cpu"), torch.Size([2, 3])]),
    st.dictionaries(_keys, st.integers(0, 9), max_size=3).map(Counter),
    st.sets(st.integers(), max_size=3), st.frozensets(st.text(max_size=3), max_size=3),
    st.lists(st.integers(), max_size=3).map(lambda items: deque(items, 5)),
    st.integers(0, 5).map(lambda n: torch.arange(n, dtype=torch.float64)),
    st.integers(0, 5).map(lambda n: np.arange(n)),
)  # fmt: skip
_states = st.recursive(
    _atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(_keys, inner, max_size=3),
        st.dictionaries(_keys, inner, max_size=3).map(OrderedDict),
    ),
    max_leaves=12,
)


@given(state=_states)
@settings(max_examples=200, deadline=None)
def test_states_come_back_as_they_were(state: Any) -> None:
    assert same(encoding.decode(encoding.encode(state)), state)


@given(state=_states)
@settings(max_examples=50, deadline=None)
def test_states_come_back_through_a_store(state: Any) -> None:
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        history.checkpoint(0, {"state": encoding.encode(state, ("state",)), "more": np.zeros(1)})
        with history.restore(0) as lease:
            assert same(encoding.decode(lease.tree["state"]), state)


@pytest.mark.parametrize("state", [(0, -1), (0, 1), (0, 0), (3, 17, 0), (1,), (1, 2, 3, 4), (True, False), (1.0, 2)])
def test_a_state_of_plain_numbers_is_no_memory(state: tuple[Any, ...]) -> None:
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        history.checkpoint(0, {"sampler": encoding.encode(state, ("sampler",)), "more": np.zeros(1)})
        with history.restore(0) as lease:
            assert same(encoding.decode(lease.tree["sampler"]), state)


def test_a_default_dict_becomes_a_dict() -> None:
    back = encoding.decode(encoding.encode(defaultdict(list, a=[1])))
    assert type(back) is dict
    assert back == {"a": [1]}


@pytest.mark.parametrize("kind", ["nothing", "torch.dtype"])
def test_what_no_version_wrote_is_corrupt(kind: str) -> None:
    with pytest.raises(errors.CorruptCheckpoint):
        encoding.decode({encoding.KIND: kind, "of": "zeros"})
    with pytest.raises(errors.CorruptCheckpoint):
        encoding.decode({encoding.KIND: encoding.SAME, "of": ["x"]})
