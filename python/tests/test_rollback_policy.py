"""When a training takes snapshots, which losses it refuses, and how it goes back."""

from __future__ import annotations

import logging
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import velocpy
from velocpy import errors
from velocpy.training import Checkpointer, LossGuard, RollbackPolicy
from velocpy.training.policy import scale_rates

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("frozen_imports")


def test_losses_that_are_no_numbers_are_refused_at_once() -> None:
    guard = LossGuard(warmup=1000)
    for loss in (math.nan, math.inf, -math.inf, torch.tensor(math.nan), torch.tensor([math.inf], requires_grad=True)):
        assert str(guard.refuses(loss)).startswith("the loss is ")
    assert guard.refuses(1e30) is None


def test_a_spike_is_refused_after_the_warmup_alone() -> None:
    guard = LossGuard(window=20, warmup=10, threshold=6)
    losses = [3 + 0.1 * math.sin(step) for step in range(40)]
    assert guard.refuses(30) is None
    assert [guard.refuses(loss) for loss in losses].count(None) == 40
    assert "median of the last 20" in str(guard.refuses(30))
    assert guard.refuses(3.05) is None
    assert guard.refuses(0.0) is None  # no loss is too small
    assert LossGuard(threshold=None, warmup=0).refuses(1e9) is None


def test_losses_of_nothing_tell_nothing() -> None:
    guard = LossGuard(window=10, warmup=0)
    assert [guard.refuses(0.0) for _ in range(10)].count(None) == 10
    assert guard.refuses(1e-9) is None


def test_a_loss_that_hardly_moves_may_rise_a_little() -> None:
    guard = LossGuard(window=10, warmup=0, threshold=5, floor=0.02)
    for _ in range(10):
        assert guard.refuses(1.0) is None
    assert guard.refuses(1.09) is None
    assert guard.refuses(1.2) is not None


@given(
    losses=st.lists(st.floats(0.5, 2.0), min_size=1, max_size=60),
    odd=st.sampled_from([math.nan, math.inf, 1e6]),
    at=st.integers(0, 60),
)
@settings(max_examples=200, deadline=None)
def test_refused_losses_change_nothing(losses: list[float], odd: float, at: int) -> None:
    """A guard that has refused a loss judges what follows as if that loss had never come."""
    plain, disturbed = LossGuard(window=8, warmup=0), LossGuard(window=8, warmup=0)
    for number, loss in enumerate(losses):
        if number == at:
            before = disturbed.state_dict()["accepted"]
            if disturbed.refuses(odd) is None:
                return  # with one loss before it nothing is known of the deviation
            assert disturbed.state_dict()["accepted"] == before
        assert disturbed.refuses(loss) == plain.refuses(loss)


def test_a_guard_goes_back_with_the_training() -> None:
    guard, model = LossGuard(window=5, warmup=0), torch.nn.Linear(1, 1)
    with Checkpointer(model=model, guard=guard, host="16MiB") as checkpointer:
        for loss in (1.0, 1.1, 0.9):
            guard.refuses(loss)
        checkpointer.save(0)
        for loss in (0.5, 0.4, 0.3):
            guard.refuses(loss)
        checkpointer.rollback()
        assert guard.state_dict() == {"accepted": [1.0, 1.1, 0.9], "seen": 3}


@pytest.mark.parametrize(
    "options", [{"window": 1}, {"threshold": 0}, {"floor": -1}, {"floor": math.nan}, {"warmup": -1}]
)
def test_arguments_of_a_guard(options: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidArgument):
        LossGuard(**options)


class Descent:
    """A training of one weight, whose gradient is spoilt at given steps."""

    def __init__(self, bad: dict[int, float]) -> None:
        self.bad = bad
        self.model = torch.nn.Linear(1, 1, bias=False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.SequentialLR(
            self.optimizer,
            [
                torch.optim.lr_scheduler.ConstantLR(self.optimizer, 0.5, 4),
                torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.9),
            ],
            milestones=[4],
        )

    def step(self, number: int) -> Any:
        self.optimizer.zero_grad()
        loss = (self.model(torch.ones(1, 1)) - 1).square().sum()
        loss.backward()
        self.model.weight.grad += self.bad.get(number, 0)
        self.optimizer.step()
        self.scheduler.step()
        return loss

    def checkpointer(self, **options: Any) -> Checkpointer:
        return Checkpointer(
            model=self.model, optimizer=self.optimizer, scheduler=self.scheduler, host="16MiB", **options
        )


def test_a_spoilt_snapshot_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """The gradient of step 8 makes weights of no value, which a snapshot takes before a loss tells of it."""
    training = Descent({8: math.nan})
    with training.checkpointer(keep=3) as checkpointer:
        policy = RollbackPolicy(checkpointer, every=4)
        policy.before_steps(0)
        back = []
        with caplog.at_level(logging.WARNING, "velocpy"):
            for number in range(1, 16):
                back.append(policy.after_step(number, training.step(number)))
        assert [step for step in back if step is not None] == [8, 4]
        assert back[8:10] == [8, 4]  # the loss of steps 9 and 10
        assert training.model.weight.isfinite().all()
        assert policy.rollbacks == 2
        assert [record.message for record in caplog.records] == [
            "step 9: the loss is nan; the training goes back to step 8",
            "step 10: the loss is nan; the training goes back to step 4",
        ]
        assert checkpointer.steps == (0, 4, 12)


def test_rates_are_scaled_once_for_each_way_back() -> None:
    training = Descent({})
    with training.checkpointer(keep=9) as checkpointer:
        policy = RollbackPolicy(checkpointer, every=5, backoff=0.5, guard=LossGuard(warmup=1000), most=9)
        policy.before_steps(0)
        rates, back = [], []
        for number in range(1, 9):
            loss = training.step(number)
            back.append(policy.after_step(number, math.nan if number in (3, 4, 7) else loss))
            rates.append(training.scheduler._schedulers[0].base_lrs[0])
            assert training.optimizer.param_groups[0]["initial_lr"] == rates[-1]
        assert back == [None, None, 0, 0, None, None, 5, None]
        assert rates == [0.1, 0.1, 0.05, 0.025, 0.025, 0.025, 0.0125, 0.0125]


def test_snapshots_of_an_earlier_training_are_not_gone_back_to() -> None:
    with velocpy.open(host="16MiB") as store:
        old = Descent({})
        with Checkpointer(store, model=old.model, keep=9) as checkpointer:
            for step in (0, 5, 20):
                checkpointer.save(step)
        new = Descent({})
        with Checkpointer(store, model=new.model, keep=9) as checkpointer:
            policy = RollbackPolicy(checkpointer, every=4)
            weight = new.model.weight.item()
            policy.before_steps(0)
            policy.before_steps(0)
            assert policy.after_step(3, math.nan) == 0
            assert new.model.weight.item() == weight
            assert policy.after_step(4, 1.0) is None
            assert policy.after_step(7, math.nan) == 4
            assert checkpointer.steps == (0, 4)


def test_a_training_that_was_resumed_needs_no_first_snapshot() -> None:
    training = Descent({})
    with training.checkpointer() as checkpointer:
        checkpointer.save(7)
        before = checkpointer.history.meta(7)
        checkpointer.save(7, meta="resumed")
        RollbackPolicy(checkpointer).before_steps(7)
        assert (before, checkpointer.history.meta(7)) == (None, "resumed")


def test_a_snapshot_that_the_policy_did_not_take_has_its_own_rates() -> None:
    training = Descent({})
    with training.checkpointer() as checkpointer:
        policy = RollbackPolicy(checkpointer, every=100, backoff=0.5, guard=LossGuard(warmup=1000), most=9)
        policy.before_steps(0)
        assert policy.after_step(1, math.nan) == 0
        checkpointer.save(2)  # its rates are halved already
        assert policy.after_step(2, 1.0) is None
        assert policy.after_step(3, math.nan) == 2
        assert training.optimizer.param_groups[0]["initial_lr"] == 0.025
        assert policy.after_step(4, math.nan) == 0
        assert training.optimizer.param_groups[0]["initial_lr"] == 0.0125


def test_without_a_snapshot_the_training_ends() -> None:
    training = Descent({})
    with training.checkpointer() as checkpointer:
        policy = RollbackPolicy(checkpointer, every=100)
        with pytest.raises(errors.TrainingDiverged, match="no snapshot to go back to"):
            policy.after_step(1, math.nan)
        assert policy.rollbacks == 0


def test_too_many_rollbacks_end_the_training() -> None:
    training = Descent({})
    with training.checkpointer() as checkpointer:
        policy = RollbackPolicy(checkpointer, every=1, most=2)
        policy.before_steps(0)
        for number in (1, 3):
            assert policy.after_step(number, math.nan) == number - 1
            assert policy.after_step(number + 1, 1.0) is None
        weight = training.model.weight.item()
        training.step(9)
        with pytest.raises(
            errors.TrainingDiverged, match=r"after 2 rollbacks\. The training is back at step 4"
        ) as error:
            policy.after_step(5, math.inf)
        assert error.value.key == 4
        assert training.model.weight.item() == weight


@pytest.mark.parametrize("options", [{"every": 0}, {"most": -1}, {"backoff": 0}, {"backoff": 2}])
def test_arguments_of_a_policy(options: dict[str, Any]) -> None:
    with Checkpointer(model=torch.nn.Linear(1, 1), host="16MiB") as checkpointer, pytest.raises(errors.InvalidArgument):
        RollbackPolicy(checkpointer, **options)


def test_rates_that_are_one_tensor_are_scaled_once() -> None:
    rate = torch.tensor(0.5)
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=rate, foreach=True)
    optimizer.param_groups[0]["initial_lr"] = optimizer.param_groups[0]["lr"]
    scale_rates(optimizer, 0.5)
    assert optimizer.param_groups[0]["lr"].item() == 0.25
    scale_rates(object(), 0.5)
