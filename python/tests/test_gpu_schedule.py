"""Schedules of what a device encodes: letters that repeat, plans, and profiles that one run leaves to the next."""

import json
import threading

import pytest

import velocpy
from velocpy.schedule import Schedule

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

SIZE, COUNT = 1 << 20, 60


def states(count=COUNT):
    """Random values of which three quarters are zero."""
    for step in range(count):
        random = torch.Generator("cuda").manual_seed(step)
        array = torch.zeros(SIZE // 4, device="cuda")
        array[: SIZE // 16] = torch.randn(SIZE // 16, device="cuda", generator=random)
        yield array


def swept(store, name, schedule, count=COUNT):
    """One run, forth and back, every byte compared."""
    history = store.history(name, reduce="codec", schedule=schedule)
    kept = []
    for step, array in enumerate(states(count)):
        history.checkpoint(step, u=array)
        kept.append(array.clone())
        array.fill_(-1)
    history.wait("host")
    course = history.course
    for step in reversed(range(count)):
        with history.restore(step) as lease:
            assert torch.equal(lease["u"].view(torch.int32), kept[step].view(torch.int32)), step
    return course, store.stats()["histories"][name]["reduction"]


@pytest.mark.parametrize("letters", ["C", "AX", "AAAAAAAX", "UAX", "U"])
def test_letters(letters):
    with velocpy.open(device="256MiB", host="512MiB") as store:
        course, did = swept(store, "h", Schedule(repeat=letters))
    assert course.letters == (letters * COUNT)[:COUNT]
    assert (did["accumulated"] > 0) == ("X" in letters)
    assert did["plain"] == course.letters.count("U")


def test_a_run_is_planned_by_the_one_before(tmp_path):
    file = tmp_path / "profile.json"
    with velocpy.open(device="256MiB", host="512MiB") as store:
        swept(store, "h", file)
        assert not file.exists()
    text = file.read_text()
    assert len(json.loads(text)["observations"]) == COUNT
    assert json.loads(text)["measurements"]
    for _ in range(2):
        with velocpy.open(device="256MiB", host="512MiB") as store:
            course, _ = swept(store, "h", file)
        assert "-" not in course.letters
        assert course.plans >= 1
        assert file.read_text() == text


def test_several_histories_at_once():
    """Runs that wait for each other's room, in a tier that holds few of their checkpoints."""
    failed = []

    def work(store, number, schedule):
        try:
            swept(store, f"h{number}", schedule, 100)
        except BaseException as error:
            failed.append(error)

    with velocpy.open(device="128MiB", host="1GiB") as store:
        kinds = [Schedule(repeat="A" * 40 + "X"), Schedule(), Schedule(repeat="AAX"), None]
        threads = [threading.Thread(target=work, args=(store, *each)) for each in enumerate(kinds)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed
