"""The parts of the GPU benchmarks that need a GPU: its clock, its copies, its managed memory, every contender on it."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.engines.contenders import LeftOut, engine_for
from benchmarks.engines.ring import Ring
from benchmarks.engines.workload import MIB, ORDERS, Workload
from benchmarks.paper.play import Walls, compute_only, shot

pytestmark = pytest.mark.gpu

SIZES = tuple(2 * MIB - 4321 * (i % 7) for i in range(40))


@pytest.fixture
def card():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    from benchmarks.engines.cuda import CudaCard

    made = CudaCard(0, max(SIZES))
    yield made
    made.close()


def test_the_busy_kernel_lasts_as_long_as_it_says(card):
    for wanted in (2.5e-3, 10e-3):
        card.spin(wanted)
        assert card.seconds(lambda wanted=wanted: card.spin(wanted)) == pytest.approx(wanted, rel=0.02, abs=5e-5)


def test_the_host_does_not_wait_for_the_device(card):
    slots = card.pinned(2, 2 * MIB)
    source, side = card.device(2 * MIB), card.lane()
    card.stamp(source, 0)
    card.compare(source, 0)
    assert card.differences() == 0  # whose kernels are loaded now: loading them waits for what runs
    began = time.perf_counter()
    card.spin(0.2)
    card.stamp(source, 1)
    captured = card.mark()
    card.after([captured], side)
    card.copy(slots[0][: 2 * MIB], source, side)
    card.compare(source, 1)
    assert time.perf_counter() - began < 0.1, "something enqueued waited"
    card.mark(side).wait()
    assert time.perf_counter() - began > 0.2
    card.copy(source, slots[0][: 2 * MIB])
    card.compare(source, 1)
    assert card.differences() == 0


@pytest.mark.parametrize("by_driver", [False, True])
def test_pinned_memory_is_aligned_and_holds_what_is_copied(card, by_driver):
    card.pinned_by_driver = by_driver
    for slot in card.pinned(3, 3 * MIB):
        view = np.frombuffer(card.memory(slot), np.uint8)
        assert view.ctypes.data % 4096 == 0
        source, back = card.device(3 * MIB - 5), card.device(3 * MIB - 5)
        source.fill_(7)
        card.copy(slot[: len(source)], source)
        card.copy(back, slot[: len(source)])
        card.join()
        assert (view[: len(source)] == 7).all()
        assert bool((back == 7).all())


def test_managed_memory_moves_and_stays_what_it_is(card):
    memory, side = card.managed(4 * MIB), card.lane()
    card.stamp(memory[: 2 * MIB], 3)
    card.prefer(memory, False)
    card.after([card.mark()], side)
    card.move(memory, False, side)
    card.after([card.mark(side)])
    card.compare(memory[: 2 * MIB], 3)
    assert card.differences() == 0
    card.release_managed(memory)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "who",
    [
        "keep",
        "ring lazy",
        "ring eager",
        "synchronous",
        "unified memory",
        "velocpy",
        "velocpy into",
        "velocpy lru",
        "velocpy unchecked",
    ],
)
def test_every_contender_brings_everything_back(card, order, who, tmp_path):
    workload = Workload(SIZES, order=order, interval=5e-4, device=8 * MIB, host=24 * MIB, disk=200 * MIB)
    try:
        engine = engine_for(who, card, workload, tmp_path)
    except LeftOut as reason:
        pytest.skip(str(reason))
    source = card.device(workload.largest)
    without = compute_only(card, workload, source)
    for _ in range(2):
        assert shot(card, workload, engine, source, without).differences == 0
    engine.close()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("hints", ["none", "one", "all"])
def test_the_ring_without_time_to_spare(card, order, hints, tmp_path):
    workload = Workload(SIZES, order=order, hints=hints, interval=0, device=8 * MIB, host=24 * MIB, disk=200 * MIB)
    ring = Ring(card, workload, tmp_path)
    source = card.device(workload.largest)
    for _ in range(3):
        assert shot(card, workload, ring, source, Walls(0, 0)).differences == 0
    ring.close()
