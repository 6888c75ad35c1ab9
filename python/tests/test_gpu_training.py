"""A training on a GPU goes back bit by bit, and its tensors go to checkpoints of DCP from the device."""

import numpy as np
import pytest

import velocpy
from velocpy import errors

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::UserWarning")]


def training(fused=False):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.Dropout(0.2), torch.nn.Linear(512, 16)).cuda()
    model.half_scale = torch.nn.Parameter(torch.ones(16, device="cuda", dtype=torch.bfloat16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=fused, capturable=fused)
    return model, optimizer


def run(model, optimizer, steps):
    for _ in range(steps):
        loss = (model(torch.randn(32, 256, device="cuda")) * model.half_scale).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.detach()


def seen(model, optimizer):
    state = [value for each in optimizer.state.values() for value in each.values()]
    tensors = [*model.state_dict().values(), *state, torch.cuda.get_rng_state(), torch.get_rng_state()]
    return [tensor.detach().cpu().clone() for tensor in tensors]


def same(a, b):
    return all(
        torch.equal(x.reshape(-1).view(torch.uint8), y.reshape(-1).view(torch.uint8)) for x, y in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("device", [None, "256MiB"])
@pytest.mark.parametrize("fused", [False, True])
def test_a_training_continues_bit_by_bit(device, fused, tmp_path):
    model, optimizer = training(fused)
    with velocpy.Checkpointer(
        path=tmp_path,
        model=model,
        optimizer=optimizer,
        device=device,
        host="512MiB",
        disk="1GiB",
        keep=4,
        durable_every=2,
    ) as checkpointer:
        run(model, optimizer, 1)
        states = {}
        for step in range(1, 5):
            states[step] = seen(model, optimizer)
            checkpointer.save(step)
            run(model, optimizer, 2)  # at once: the capture is ordered before it
        last = seen(model, optimizer)
        places = [tensor.data_ptr() for tensor in model.parameters()]
        for step in (4, 2, 3, 1):
            assert checkpointer.restore(step) == step
            assert same(seen(model, optimizer), states[step]), step
        run(model, optimizer, 8)
        assert same(seen(model, optimizer), last)
        assert [tensor.data_ptr() for tensor in model.parameters()] == places
        checkpointer.rollback(to=2)
    model, optimizer = training(fused)
    with velocpy.Checkpointer(
        path=tmp_path, model=model, optimizer=optimizer, device=device, host="512MiB", disk="1GiB"
    ) as checkpointer:
        assert checkpointer.resume() == 2
        assert same(seen(model, optimizer), states[2])


def test_a_snapshot_on_another_stream():
    model, optimizer = training()
    run(model, optimizer, 1)
    with velocpy.Checkpointer(model=model, optimizer=optimizer, device="256MiB", host="512MiB") as checkpointer:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            before = [tensor.detach().clone() for tensor in model.parameters()]
            checkpointer.save(0)
            with torch.no_grad():
                for tensor in model.parameters():
                    tensor.zero_()
            checkpointer.restore()
            now = [tensor.detach().clone() for tensor in model.parameters()]
        torch.cuda.synchronize()
        assert same(now, before)


def test_another_model_changes_nothing():
    model, optimizer = training()
    run(model, optimizer, 1)
    with velocpy.open(device="256MiB", host="512MiB") as store:
        velocpy.Checkpointer(store, model=torch.nn.Linear(256, 8).cuda()).save(0)
        velocpy.Checkpointer(store, model=torch.nn.Linear(256, 9).cuda(), history="x").save(0)
        other = torch.nn.Linear(256, 8).cuda()
        before = seen(model, optimizer)
        with pytest.raises(errors.StateMismatch):
            velocpy.Checkpointer(store, model=model).restore()
        with pytest.raises(errors.StateMismatch, match="Nothing was restored"):
            velocpy.Checkpointer(store, model=other, history="x").restore()
        assert same(seen(model, optimizer), before)


def test_a_policy_goes_back():
    model, optimizer = training()
    with velocpy.Checkpointer(model=model, optimizer=optimizer, device="256MiB", host="512MiB") as checkpointer:
        policy = velocpy.training.RollbackPolicy(checkpointer, every=3)
        for step in range(12):
            loss = run(model, optimizer, 1)
            policy.after_step(step, loss * float("nan") if step == 8 else loss)
        assert policy.rollbacks == 1
        assert all(bool(tensor.isfinite().all()) for tensor in model.parameters())


def test_checkpoints_of_dcp_come_from_the_device(tmp_path):
    import torch.distributed.checkpoint as dcp

    from velocpy.dcp import Reader, Writer

    model, optimizer = training()
    run(model, optimizer, 2)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": np.float64(3.5).item()}
    before = seen(model, optimizer)
    with Writer(tmp_path, host="512MiB", disk="1GiB") as writer:
        dcp.save(state, storage_writer=writer, checkpoint_id="a", no_dist=True)
    run(model, optimizer, 1)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 0.0}
    with Reader(tmp_path) as reader:
        dcp.load(state, storage_reader=reader, checkpoint_id="a", no_dist=True)
    assert state["step"] == 3.5
    assert same(seen(model, optimizer)[:-2], before[:-2])
