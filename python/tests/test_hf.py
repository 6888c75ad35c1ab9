"""A Trainer of transformers that goes back to a snapshot, with a model made from a configuration."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import velocpy
from velocpy import errors
from velocpy.training import LossGuard, RollbackPolicy

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from velocpy.integrations.hf import RollbackCallback  # noqa: E402

#: What transformers says of its own parts.
pytestmark = [
    pytest.mark.usefixtures("frozen_imports"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    yield
    transformers.logging.set_verbosity(level)


class Spoilt(transformers.GPT2LMHeadModel):  # type: ignore[misc,name-defined]
    """A language model whose loss is spoilt in given forward passes."""

    def __init__(self, bad: dict[int, float]) -> None:
        super().__init__(
            transformers.GPT2Config(
                vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0,
                loss_type="ForCausalLM",
            )
        )  # fmt: skip
        self.bad = bad
        self.passes = 0

    def forward(self, input_ids: Any = None, labels: Any = None, **options: Any) -> Any:
        output = super().forward(input_ids=input_ids, labels=labels, **options)
        self.passes += 1
        if output.loss is not None:
            output["loss"] = output.loss * self.bad.get(self.passes, 1.0)
        return output


def trainer(tmp_path: Path, model: Any, callback: Any, steps: int = 12, **options: Any) -> Any:
    torch.manual_seed(0)
    tokens = torch.randint(0, 32, (40, 16))
    arguments = transformers.TrainingArguments(
        str(tmp_path), per_device_train_batch_size=2, max_steps=steps, logging_steps=1, report_to=[], seed=1,
        save_strategy="no", disable_tqdm=True, use_cpu=True, **options,
    )  # fmt: skip
    data = [{"input_ids": each, "labels": each} for each in tokens]
    return transformers.Trainer(model, arguments, train_dataset=data, callbacks=[callback])


def is_finite(model: Any) -> bool:
    return all(bool(each.isfinite().all()) for each in model.parameters())


def test_without_the_callback_the_model_is_lost(tmp_path: Path) -> None:
    model = Spoilt({7: math.nan})
    trainer(tmp_path, model, transformers.TrainerCallback()).train()
    assert not is_finite(model)


def test_a_nan_costs_the_steps_since_the_last_snapshot(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model, callback = Spoilt({7: math.nan}), RollbackCallback(every=4, host="64MiB", keep=2)
    with caplog.at_level(logging.WARNING, "velocpy"):
        trainer(tmp_path, model, callback).train()
    assert is_finite(model)
    assert callback.rollbacks == 1
    assert callback.checkpointer is None
    assert "step 7: the loss is nan; the training goes back to step 4" in caplog.messages
    assert not model._forward_hooks


def test_accumulated_gradients_have_one_loss_a_step(tmp_path: Path) -> None:
    model, callback = Spoilt({11: math.inf}), RollbackCallback(every=2, host="64MiB")
    trainer(tmp_path, model, callback, steps=6, gradient_accumulation_steps=3).train()
    assert is_finite(model)
    assert (callback.rollbacks, model.passes) == (1, 18)


def test_a_spike_is_found(tmp_path: Path) -> None:
    model = Spoilt({9: 100.0})
    callback = RollbackCallback(every=3, guard=LossGuard(warmup=3, window=6), backoff=0.5, host="64MiB")
    made = trainer(tmp_path, model, callback, lr_scheduler_type="constant")
    made.train()
    assert callback.rollbacks == 1
    assert set(made.lr_scheduler.base_lrs) == {made.args.learning_rate / 2}
    assert made.optimizer.param_groups[0]["lr"] == made.args.learning_rate / 2


def test_without_a_loss_of_the_model_gradients_and_log_are_looked_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    passes = iter(range(1, 100))

    def loss_of(output: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        loss = torch.nn.functional.cross_entropy(output.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return loss * {6: math.nan, 10: 100}.get(next(passes), 1)

    guard = LossGuard(warmup=3, window=6)
    model, callback = Spoilt({}), RollbackCallback(every=2, guard=guard, host="64MiB")
    made = trainer(tmp_path, model, callback)
    made.compute_loss_func = loss_of
    with caplog.at_level(logging.WARNING, "velocpy"):
        made.train()
    assert callback.rollbacks == 2
    assert ["goes back to step 4" in each for each in caplog.messages] == [True, False]
    assert "is nan" in caplog.messages[0]
    assert "median" in caplog.messages[1]
    assert is_finite(model)


def test_a_training_in_the_store_of_an_earlier_one_goes_back_to_its_own_start(tmp_path: Path) -> None:
    with velocpy.open(host="64MiB") as store:
        trainer(tmp_path, Spoilt({}), RollbackCallback(every=5, store=store)).train()
        model = Spoilt({2: math.nan})
        made = trainer(tmp_path, model, RollbackCallback(every=5, store=store), steps=2, learning_rate=0.0)
        before = [each.detach().clone() for each in model.parameters()]
        made.train()
        assert all(map(torch.equal, model.parameters(), before))


def test_gradients_of_fp16_are_left_to_the_scaler(tmp_path: Path) -> None:
    model, callback = Spoilt({}), RollbackCallback()
    for each in model.parameters():
        each.grad = torch.full_like(each, math.inf)
    arguments = trainer(tmp_path, model, callback).args
    with velocpy.Checkpointer(model=model, host="64MiB") as checkpointer:
        callback._policy = RollbackPolicy(checkpointer)
        for arguments.fp16, spoilt in ((False, True), (True, False)):
            callback._spoilt = False
            callback.on_pre_optimizer_step(arguments, None, None, model=model)
            assert callback._spoilt is spoilt


def test_too_many_rollbacks_are_an_error_and_leave_a_good_model(tmp_path: Path) -> None:
    model = Spoilt(dict.fromkeys(range(7, 99), math.nan))
    callback = RollbackCallback(every=2, most=2, host="64MiB")
    made = trainer(tmp_path, model, callback)
    with pytest.raises(errors.TrainingDiverged):
        made.train()
    assert is_finite(model)
    callback.close()
    assert callback.checkpointer is None
    assert not model._forward_hooks


def test_a_second_training_begins_anew(tmp_path: Path) -> None:
    model, callback = Spoilt({3: math.nan, 20: math.nan}), RollbackCallback(every=2, host="64MiB")
    for _ in range(2):
        trainer(tmp_path, model, callback).train()
        assert callback.rollbacks == 1
        assert is_finite(model)


def test_bad_options_of_the_policy_leave_no_store_open(tmp_path: Path) -> None:
    callback = RollbackCallback(every=0, host="64MiB")
    before = velocpy.stores()
    with pytest.raises(errors.InvalidArgument, match="every"):
        trainer(tmp_path, Spoilt({}), callback).train()
    assert velocpy.stores() == before
