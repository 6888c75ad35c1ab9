"""A Trainer of Lightning that goes back to snapshots, and one that keeps its checkpoints in a store."""

from __future__ import annotations

import json
import logging
import math
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bits import alike

import velocpy
from velocpy import errors
from velocpy.ticket import Ticket
from velocpy.training import LossGuard

torch = pytest.importorskip("torch")
pl = pytest.importorskip("lightning.pytorch")

from lightning.fabric.plugins.io import TorchCheckpointIO  # noqa: E402
from lightning.fabric.utilities.data import AttributeDict  # noqa: E402
from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402
from lightning.pytorch.plugins.environments import LightningEnvironment  # noqa: E402
from lightning.pytorch.plugins.precision import MixedPrecision  # noqa: E402
from lightning.pytorch.strategies import FSDPStrategy  # noqa: E402

from velocpy.integrations.lightning import RollbackCallback, VelocCheckpointIO, load_checkpoint  # noqa: E402
from velocpy.integrations.lightning.content import checkpoint_of, placement, tree_of  # noqa: E402
from velocpy.integrations.lightning.removals import Removals  # noqa: E402

#: What Lightning, and torch below it, say of their own parts.
pytestmark = [
    pytest.mark.usefixtures("frozen_imports"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]

BATCHES = 8
SIZES: dict[str, Any] = {"host": "64MiB", "disk": "256MiB"}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


class Regression(pl.LightningModule):  # type: ignore[misc,name-defined]
    """A model whose loss is spoilt in given training steps, counted from 1 over all epochs."""

    def __init__(self, bad: dict[int, float] | None = None, **hyper: Any) -> None:
        super().__init__()
        self.save_hyperparameters(hyper)
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
        self.bad = bad or {}
        self.passes = 0
        self.losses: list[float] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.passes += 1
        loss = self.layers(batch[0]).square().mean() * self.bad.get(self.passes, 1.0)
        self.losses.append(float(loss))
        return {"loss": loss, "extra": 1} if self.passes % 2 else loss

    def test_step(self, batch: Any, batch_idx: int) -> None:
        self.log("test_loss", self.layers(batch[0]).square().mean())

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)]

    def is_finite(self) -> bool:
        return all(bool(each.isfinite().all()) for each in self.parameters())


class Manual(Regression):
    """The same with two optimizers, and no loss returned."""

    def __init__(self, bad: dict[int, float] | None = None) -> None:
        super().__init__(bad)
        self.automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> None:
        self.passes += 1
        for optimizer in self.optimizers():
            optimizer.zero_grad()
            self.manual_backward(self.layers(batch[0]).square().mean() * self.bad.get(self.passes, 1.0))
            optimizer.step()

    def configure_optimizers(self) -> Any:
        return [torch.optim.Adam(self.layers[at].parameters(), lr=0.01) for at in (0, 2)]


class Seen(LossGuard):
    """A guard that notes the losses that it is asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []

    def refuses(self, loss: Any) -> str | None:
        self.losses.append(float(loss))
        return super().refuses(loss)


class At(pl.Callback):  # type: ignore[misc,name-defined]
    """Calls a function after a batch, with the Trainer."""

    def __init__(self, batch: int, call: Callable[[Any], None]) -> None:
        self.batch, self.call, self.batches = batch, call, 0

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        self.batches += 1
        if self.batches == self.batch:
            self.call(trainer)


def data(batches: int = BATCHES) -> Any:
    inputs = torch.randn(2 * batches, 4, generator=torch.Generator().manual_seed(1))
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs), batch_size=2)


def trainer(folder: Path, *callbacks: Any, epochs: int = 1, plugins: tuple[Any, ...] = (), **options: Any) -> Any:
    # Lightning looks for MPI unless it is told where it runs, and MPI stays in the process.
    return pl.Trainer(
        accelerator="cpu", devices=1, max_epochs=epochs, logger=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=folder, callbacks=list(callbacks),
        enable_checkpointing=any(isinstance(each, ModelCheckpoint) for each in callbacks),
        plugins=[LightningEnvironment(), *plugins], **options,
    )  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Whether two states have the same structure, types and bits."""
    return alike(one, other, lambda a, b: torch.equal(a, b) if isinstance(a, torch.Tensor) else bool(a == b))


# Rollback.


def test_without_the_callback_the_model_is_lost(tmp_path: Path) -> None:
    model = Regression({6: math.nan})
    trainer(tmp_path).fit(model, data())
    assert not model.is_finite()


def test_a_nan_costs_the_steps_since_the_last_snapshot(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model, callback = Regression({6: math.nan}), RollbackCallback(every=4, host="64MiB", keep=2)
    made = trainer(tmp_path, callback)
    with caplog.at_level(logging.WARNING, "velocpy"):
        made.fit(model, data())
    assert model.is_finite()
    assert (callback.rollbacks, callback.checkpointer) == (1, None)
    assert "step 6: the loss is nan; the training goes back to step 4" in caplog.messages
    assert made.global_step == BATCHES


def test_accumulated_gradients_have_one_loss_a_step(tmp_path: Path) -> None:
    model, guard = Regression({5: math.inf}), Seen()
    callback = RollbackCallback(every=1, guard=guard, host="64MiB")
    trainer(tmp_path, callback, accumulate_grad_batches=3).fit(model, data())
    assert model.is_finite()
    assert callback.rollbacks == 1
    losses = model.losses
    assert guard.losses[1] == math.inf
    assert np.allclose([guard.losses[0], guard.losses[2]], [np.mean(losses[:3]), np.mean(losses[6:])])  # two are left


def test_manual_optimization_without_a_loss_is_judged_by_its_parameters(tmp_path: Path) -> None:
    model, callback = Manual({6: math.nan}), RollbackCallback(every=4, host="64MiB")
    made = trainer(tmp_path, callback)
    made.fit(model, data())
    assert model.is_finite()
    assert callback.rollbacks == 1
    assert made.global_step == 2 * BATCHES


def test_the_scaler_is_part_of_the_state(tmp_path: Path) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=1)
    found: list[Any] = []
    callback = RollbackCallback(every=4, host="64MiB")

    def look(_: Any) -> None:
        assert callback.checkpointer is not None
        found.extend(callback.checkpointer.holders())
        found.append(scaler.get_scale())

    precision = MixedPrecision("16-mixed", "cpu", scaler)
    model = Regression({5: math.nan})
    trainer(tmp_path, callback, At(5, look), plugins=(precision,)).fit(model, data())
    assert any(each is scaler for each in found)
    assert found[-1] == 256.0 * 2**4  # as after step 4, not half of it
    assert callback.rollbacks == 1


def test_an_exception_closes_the_checkpointer(tmp_path: Path) -> None:
    def fail(_: Any) -> None:
        raise ZeroDivisionError

    callback = RollbackCallback(host="64MiB", path=tmp_path / "store", durable_every=1)
    with pytest.raises(ZeroDivisionError):
        trainer(tmp_path, callback, At(3, fail)).fit(Regression(), data())
    assert callback.checkpointer is None
    assert velocpy.stores() == ()


def test_too_many_rollbacks_are_an_error_and_leave_a_good_model(tmp_path: Path) -> None:
    model = Regression(dict.fromkeys(range(4, 99), math.nan))
    callback = RollbackCallback(every=2, most=2, host="64MiB")
    with pytest.raises(errors.TrainingDiverged):
        trainer(tmp_path, callback).fit(model, data())
    assert model.is_finite()
    assert (callback.rollbacks, callback.checkpointer) == (3, None)


def test_a_second_training_begins_anew(tmp_path: Path) -> None:
    model, callback = Regression({3: math.nan, BATCHES + 3: math.nan}), RollbackCallback(every=2, host="64MiB")
    for _ in range(2):
        trainer(tmp_path, callback).fit(model, data())
        assert callback.rollbacks == 1
        assert model.is_finite()


def test_sharded_strategies_are_refused() -> None:
    fake = SimpleNamespace(strategy=object.__new__(FSDPStrategy))
    with pytest.raises(errors.InvalidArgument, match="does not work with FSDPStrategy"):
        RollbackCallback().on_train_start(fake, None)


# Checkpoints of a Trainer.


def test_a_resumed_training_goes_on_bit_by_bit(tmp_path: Path) -> None:
    whole = Regression()
    trainer(tmp_path / "whole", epochs=2).fit(whole, data())
    folder = tmp_path / "run"
    for epochs in (1, 2):
        io = VelocCheckpointIO(folder / "store", **SIZES)
        model, checkpoints = Regression(), ModelCheckpoint(folder / "files", save_last=True)
        trainer(folder, checkpoints, epochs=epochs, plugins=(io,)).fit(model, data(), ckpt_path="last")
        assert model.passes == BATCHES
    assert same(model.state_dict(), whole.state_dict())


def test_a_checkpoint_is_the_one_that_torch_would_have_saved(tmp_path: Path) -> None:
    loaded = []
    for io in (TorchCheckpointIO(), VelocCheckpointIO(tmp_path / "store", **SIZES)):
        checkpoints = ModelCheckpoint(tmp_path / "files", filename=type(io).__name__)
        trainer(tmp_path, checkpoints, plugins=(io,)).fit(Regression(width=3, betas=(0.9, 0.99)), data())
        saved = io.load_checkpoint(checkpoints.best_model_path)
        saved.pop("callbacks")  # which name the file
        loaded.append(saved)
    assert same(*loaded)
    assert loaded[1]["hyper_parameters"] == {"width": 3, "betas": (0.9, 0.99)}
    assert loaded[1]["state_dict"]._metadata == loaded[0]["state_dict"]._metadata


@pytest.mark.parametrize("last", [True, "link"])
def test_old_checkpoints_go_and_the_last_one_stays(tmp_path: Path, last: Any) -> None:
    files = tmp_path / "files"
    io = VelocCheckpointIO(tmp_path / "store", **SIZES)
    checkpoints = ModelCheckpoint(files, save_top_k=1, save_last=last, every_n_train_steps=1)
    trainer(tmp_path, checkpoints, plugins=(io,)).fit(Regression(), data())
    assert {each.name for each in files.iterdir()} == {f"epoch=0-step={BATCHES}.ckpt", "last.ckpt"}
    for path in (checkpoints.best_model_path, checkpoints.last_model_path):
        assert io.load_checkpoint(path)["global_step"] == BATCHES
    with velocpy.open(tmp_path / "store", mode="r") as store:
        assert len(store.history("lightning")) == (1 if last == "link" else 2)


def test_one_plugin_serves_fit_and_test_and_fit(tmp_path: Path) -> None:
    io = VelocCheckpointIO(tmp_path / "store", **SIZES)
    model = Regression()
    made = trainer(tmp_path, ModelCheckpoint(tmp_path / "files"), plugins=(io,))
    made.fit(model, data())
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    torch.nn.init.zeros_(model.layers[2].weight)
    made.test(model, data(), ckpt_path="best", verbose=False)
    assert same(dict(model.state_dict()), weights)
    made.fit_loop.max_epochs = 2
    made.fit(model, data(), ckpt_path="best")
    assert made.global_step == 2 * BATCHES
    assert velocpy.stores() == ()
    made.save_checkpoint(tmp_path / "end.ckpt")
    assert len(velocpy.stores()) == 1
    assert load_checkpoint(tmp_path / "end.ckpt")["epoch"] == 2  # it need not be durable yet
    io.teardown()


def test_a_given_store_stays_open(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "store", **SIZES) as store:
        for run in ("a", "b"):
            io = VelocCheckpointIO(store=store, history=run)
            trainer(tmp_path, ModelCheckpoint(tmp_path / run), plugins=(io,)).fit(Regression(), data())
        assert [len(store.history(run)) for run in ("a", "b")] == [1, 1]


# Crashes.

KILLED = """
    import os, signal, sys
    from pathlib import Path
    from test_lightning import At, ModelCheckpoint, Regression, VelocCheckpointIO, data, load_checkpoint, trainer

    folder = Path(sys.argv[1])
    print(load_checkpoint(folder / "moved" / "first.ckpt")["epoch"], flush=True)
    io = VelocCheckpointIO(folder / "store", host="64MiB", disk="256MiB")
    checkpoints = ModelCheckpoint(folder / "files", save_top_k=1, save_last=True, every_n_train_steps=1)
    kill = At(30, lambda trainer: os.kill(os.getpid(), signal.SIGKILL))
    trainer(folder, checkpoints, kill, epochs=9, plugins=(io,)).fit(Regression(), data())
"""


def test_another_process_loads_by_the_marker_and_leaves_checkpoints_when_killed(tmp_path: Path) -> None:
    io = VelocCheckpointIO(tmp_path / "made" / "store", **SIZES)
    io.save_checkpoint({"epoch": 5}, tmp_path / "made" / "first.ckpt")
    io.teardown()
    (tmp_path / "made").rename(tmp_path / "moved")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(KILLED), str(tmp_path)],
        cwd=Path(__file__).parent, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "5\n"), done.stderr
    markers = list((tmp_path / "files").glob("*.ckpt"))
    loaded = []
    for marker in markers:
        try:
            loaded.append(load_checkpoint(marker)["global_step"])
        except errors.CheckpointNotFound:
            continue
    assert loaded
    last = load_checkpoint(tmp_path / "files" / "last.ckpt")
    assert 1 <= last["global_step"] <= 29  # the checkpoint of the step that was killed was not begun


class Disk:
    """Keeps the flushes of a lazy store back: nothing asks for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held = False
        wait = Ticket.wait

        def held(ticket: Ticket, tier: Any = None, timeout: float | None = None) -> None:
            if self.held:
                raise errors.WaitTimeout
            wait(ticket, tier, timeout)

        monkeypatch.setattr(Ticket, "wait", held)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def lazy(tmp_path: Path) -> Iterator[Any]:
    with velocpy.open(tmp_path / "run" / "store", **SIZES, tuning=velocpy.Tuning(flush="lazy")) as store:
        yield store


def crashed(tmp_path: Path) -> Path:
    """The folder of a run as a crash at this moment would leave it."""
    return Path(shutil.copytree(tmp_path / "run", tmp_path / "crashed"))


def test_a_removal_waits_until_later_checkpoints_are_durable(tmp_path: Path, lazy: Any, disk: Disk) -> None:
    io, run = VelocCheckpointIO(store=lazy), tmp_path / "run"
    io.save_checkpoint({"epoch": 0}, run / "a.ckpt")
    lazy.wait("disk")
    disk.held = True
    io.save_checkpoint({"epoch": 1}, run / "b.ckpt")
    io.remove_checkpoint(run / "a.ckpt")
    assert io.load_checkpoint(run / "b.ckpt") == {"epoch": 1}
    left = crashed(tmp_path)
    assert load_checkpoint(left / "a.ckpt") == {"epoch": 0}
    with pytest.raises(errors.CheckpointNotFound, match=r"before it was durable.*load by its file: '\.\./a\.ckpt'"):
        load_checkpoint(left / "b.ckpt")
    disk.held = False
    lazy.wait("disk")
    io.save_checkpoint({"epoch": 2}, run / "c.ckpt")
    assert not (run / "a.ckpt").exists()
    assert len(lazy.history("lightning")) == 2
    io.teardown()


def test_a_marker_that_was_replaced_counts_until_its_successor_is_durable(
    tmp_path: Path, lazy: Any, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    io, last = VelocCheckpointIO(store=lazy), tmp_path / "run" / "last.ckpt"
    io.save_checkpoint({"epoch": 0}, last)
    lazy.wait("disk")
    disk.held = True
    for epoch in (1, 2):
        io.save_checkpoint({"epoch": epoch}, last)
    assert io.load_checkpoint(last) == {"epoch": 2}
    left = crashed(tmp_path)
    with caplog.at_level(logging.WARNING, "velocpy"):
        assert load_checkpoint(left / "last.ckpt") == {"epoch": 0}
    assert "never became durable" in caplog.text
    disk.held = False
    io.teardown()
    assert load_checkpoint(last) == {"epoch": 2}
    assert len(lazy.history("lightning")) == 1


def test_a_file_of_torch_is_replaced_by_a_durable_checkpoint(tmp_path: Path, lazy: Any) -> None:
    io, file = VelocCheckpointIO(store=lazy), tmp_path / "run" / "last.ckpt"
    torch.save({"epoch": 0}, file)
    assert io.load_checkpoint(file, weights_only=True) == {"epoch": 0}
    io.save_checkpoint({"epoch": 1}, file)
    assert load_checkpoint(crashed(tmp_path) / "last.ckpt") == {"epoch": 1}
    torch.save({"epoch": 2}, tmp_path / "run" / "old.ckpt")
    io.remove_checkpoint(tmp_path / "run" / "old.ckpt")
    assert not (tmp_path / "run" / "old.ckpt").exists()
    io.teardown()


def test_a_file_that_was_saved_again_is_not_removed(tmp_path: Path, lazy: Any, disk: Disk) -> None:
    io, file = VelocCheckpointIO(store=lazy), tmp_path / "run" / "a.ckpt"
    disk.held = True
    io.save_checkpoint({"epoch": 0}, file)
    io.save_checkpoint({"epoch": 1}, tmp_path / "run" / "b.ckpt")
    io.remove_checkpoint(file)
    io.save_checkpoint({"epoch": 2}, file)
    disk.held = False
    io.teardown()
    assert load_checkpoint(file) == {"epoch": 2}
    assert len(lazy.history("lightning")) == 2


class Promise:
    """A ticket that is durable when the test says so."""

    def __init__(self, key: str) -> None:
        self.key, self.outcome = key, errors.WaitTimeout

    def wait(self, tier: str, timeout: float | None = None) -> None:
        if self.outcome is not None:
            raise self.outcome


def test_removals_wait_for_what_stays() -> None:
    _, b, _, d = promises = [Promise(key) for key in "abcd"]
    removals = Removals()
    for number, promise in enumerate(promises):
        removals.saved(promise)  # type: ignore[arg-type]
        if number:
            removals.ask(None, None, (promises[number - 1].key,))
        assert removals.look() == []
        assert removals.take_due() == []
    b.outcome = None  # of those that are to be removed the second one is durable, so that the first one may go
    removals.look()
    assert [each.keys for each in removals.take_due()] == [("a",)]
    d.outcome = None
    removals.look()
    assert [each.keys for each in removals.take_due()] == [("b",), ("c",)]
    assert removals.take_due() == []


def test_nothing_is_removed_for_a_checkpoint_that_was_lost() -> None:
    removals = Removals()
    lost = Promise("b")
    removals.saved(lost)  # type: ignore[arg-type]
    removals.ask(None, None, ("a",))
    lost.outcome = errors.DurabilityLost
    assert [type(each) for each in removals.look()] == [errors.DurabilityLost]
    assert removals.look() == []
    assert removals.take_due() == []
    removals.ask(None, None, ("b",))
    assert [each.keys for each in removals.take_due()] == [("a",), ("b",)]  # nothing is left that could be durable


# Content and errors.


def test_what_a_state_holds_comes_back(tmp_path: Path) -> None:
    weight = torch.arange(3.0)
    given = {
        "tied": [weight, weight], "path": Path("a/b"), "none": None, "names": {"x", "y"}, "raw": b"ab",
        "attributes": AttributeDict(a=1, b={"c": AttributeDict(d=2)}), "array": np.arange(2),
        "half": torch.ones(1).half(),
        "dtype": torch.bfloat16, 3: (1.5, "text"), "empty": torch.zeros(0, 2), "flag": True, "number": np.float64(2.5),
    }  # fmt: skip
    io = VelocCheckpointIO(tmp_path / "store", **SIZES)
    io.save_checkpoint(given, tmp_path / "deep" / "a.ckpt")
    io.teardown()
    loaded = io.load_checkpoint(tmp_path / "deep" / "a.ckpt", weights_only=True)
    assert loaded["tied"][0] is loaded["tied"][1]
    assert type(loaded["attributes"]) is dict
    loaded["tied"][0] += 1  # the arrays are the caller's
    loaded["array"] += 1
    again = io.load_checkpoint(str(tmp_path / "deep" / "a.ckpt"), map_location="cpu")
    assert torch.equal(again["tied"][1], weight)
    for key in set(given) - {"tied", "attributes", "array", "half", "empty"}:
        assert again[key] == given[key], key
    assert again["half"].dtype == torch.float16
    assert again["empty"].shape == (0, 2)
    assert again["attributes"] == {"a": 1, "b": {"c": {"d": 2}}}


class DTensor(torch.Tensor):  # type: ignore[misc,name-defined]
    pass


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (object(), "a object"),
        (Regression, "a type"),
        (torch.zeros(2).as_subclass(DTensor), "a DTensor"),
        (print, "a b"),
    ],
)
def test_what_cannot_be_saved_is_named(tmp_path: Path, entry: Any, told: str) -> None:
    io = VelocCheckpointIO(tmp_path / "store", **SIZES)
    with pytest.raises(errors.InvalidType, match=rf"entry 'hyper_parameters\.model\.1' of the checkpoint is {told}"):
        io.save_checkpoint({"hyper_parameters": {"model": [1, entry]}}, tmp_path / "a.ckpt")
    assert not (tmp_path / "a.ckpt").exists()
    io.teardown()


def test_map_locations() -> None:
    tensor = torch.ones(2)
    meta = torch.device("meta")
    for location in ("meta", meta, {"cpu": "meta"}):
        assert placement(location)(tensor).device == meta
    for location in (None, {"cuda:0": "meta"}, lambda storage, place: storage, lambda storage, place: None):
        moved = placement(location)(tensor)
        assert moved.is_cpu
        assert moved.data_ptr() != tensor.data_ptr()
    with pytest.raises(errors.InvalidArgument, match="no device"):
        placement("nowhere")
    with pytest.raises(errors.InvalidType, match="is a float"):
        placement(1.5)


def test_trees_keep_the_versions_of_modules() -> None:
    state = Regression().state_dict()
    tree = tree_of({"state_dict": state})
    assert checkpoint_of(tree, placement(None))["state_dict"]._metadata == state._metadata


def test_arguments_are_checked(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgument, match="needs either path="):
        VelocCheckpointIO()
    with velocpy.open(**SIZES) as store, pytest.raises(errors.InvalidArgument, match="outlive"):
        VelocCheckpointIO(store=store)
    io = VelocCheckpointIO(tmp_path / "store", **SIZES)
    with pytest.raises(errors.InvalidType, match="storage_options"):
        io.save_checkpoint({}, tmp_path / "a.ckpt", storage_options={})
    with pytest.raises(errors.InvalidArgument, match="remote"):
        io.save_checkpoint({}, "s3://bucket/a.ckpt")
    with pytest.raises(FileNotFoundError):
        io.load_checkpoint(tmp_path / "a.ckpt")
    io.remove_checkpoint(tmp_path / "a.ckpt")  # as of a file of torch that is gone
    io.teardown()
    assert not (tmp_path / "store").exists()


def test_names_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    io, name = VelocCheckpointIO("store", **SIZES), "ü" * 100 + "=1.ckpt"
    monkeypatch.chdir("/")
    for path in (tmp_path / name, f"file://{tmp_path}/a.ckpt"):
        io.save_checkpoint({"epoch": 1, 3: Regression().state_dict()}, path)
        assert list(io.load_checkpoint(path)) == ["epoch", 3]
    (tmp_path / "link.ckpt").symlink_to("a.ckpt")
    assert io.load_checkpoint(tmp_path / "link.ckpt")["epoch"] == 1
    io.remove_checkpoint(tmp_path / "link.ckpt")
    io.teardown()
    assert {each.name for each in tmp_path.iterdir()} == {"store", name, "a.ckpt"}
    assert load_checkpoint(tmp_path / "a.ckpt")["epoch"] == 1


def test_markers_that_lead_nowhere(tmp_path: Path) -> None:
    io, file = VelocCheckpointIO(tmp_path / "store", **SIZES), tmp_path / "a.ckpt"
    io.save_checkpoint({"epoch": 0}, file)
    io.teardown()
    text = file.read_text()
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    with pytest.raises(errors.NotAStore, match=r"a\.ckpt stands for a checkpoint in the store"):
        load_checkpoint(file)
    file.write_text(json.dumps({**json.loads(text), "version": 2}))
    with pytest.raises(errors.FormatTooNew, match="install a newer velocpy"):
        load_checkpoint(file)
    file.write_text(text[:-20])
    with pytest.raises(errors.CorruptCheckpoint, match="is damaged"):
        load_checkpoint(file)


def test_a_checkpoint_that_cannot_become_durable_is_an_error(tmp_path: Path) -> None:
    io = VelocCheckpointIO(tmp_path / "store", host="64MiB", disk="4MiB")
    trained = {"state_dict": {"w": torch.randn(1 << 20)}}
    with pytest.raises(errors.TierFull):  # noqa: PT012 - by one of the saves, or at the end
        try:
            for number in range(3):
                io.save_checkpoint(trained, tmp_path / f"{number}.ckpt")
        finally:
            io.teardown()
    assert velocpy.stores() == ()
