"""Archives: what the ranks of a run have kept, in one store of a few files."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import second_reader
from launching import launch_by_mpi, launch_ranks

import velocpy
from velocpy import errors, ondisk
from velocpy.archive import Pushed, exchange, part, pull, push, split_part
from velocpy.archive.exchange import exchange_of

RANK = Path(__file__).with_name("archive_rank.py")
SIZES: dict[str, Any] = {"host": "16MiB", "disk": "256MiB"}


def state_of(rank: int, step: int) -> dict[str, np.ndarray[Any, Any]]:
    """What a rank keeps: sizes differ from rank to rank, and most of it is as it was a step before."""
    rng = np.random.default_rng([rank, step])
    slow = np.repeat(np.random.default_rng(rank).random(3000 + 500 * rank), 3)
    slow[step * 40 : step * 40 + 40] = step
    return {
        "slow": slow,
        "noise": rng.integers(0, 256, 10_001, np.uint8).view(np.uint8),
        "nan": np.array([0x7FF8000000000000 + rank, 0xFFF0000000000001], np.uint64).view(np.float64),
        "empty": np.empty((0, 3), np.float32),
    }


def same(found: Any, rank: int, step: int) -> bool:
    expected = state_of(rank, step)
    return set(found) == set(expected) and all(
        found[name].dtype == array.dtype
        and found[name].shape == array.shape
        and np.array_equal(np.ascontiguousarray(found[name]).view(np.uint8), array.view(np.uint8))
        for name, array in expected.items()
    )


def store_of(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank:05d}"


def compute(folder: Path, ranks: int, steps: Sequence[int], **options: Any) -> list[Path]:
    """The stores of the ranks of a run that has kept these steps."""
    for rank in range(ranks):
        with velocpy.open(store_of(folder, rank), **SIZES) as store:
            history = store.history("forward", **options)
            for step in steps:
                history.checkpoint(step, **state_of(rank, step), meta={"loss": step / 2})
            history.wait("disk")
    return [store_of(folder, rank) for rank in range(ranks)]


def data_files(archive: Path) -> list[Path]:
    return sorted(archive.glob("data-*"))


def require(archive: Path | str, ranks: int, steps: Sequence[int]) -> None:
    """The archive has these steps of all ranks, bit for bit, and is sound."""
    with velocpy.open(archive, host="16MiB", mode="r") as store:
        whole = store.history("forward")
        assert sorted(whole) == sorted(steps)
        for step in steps:
            assert whole.restore(step)["ranks"].tolist() == list(range(ranks))
        for rank in range(ranks):
            mine = store.history(part("forward", rank))
            assert sorted(mine) == sorted(steps)
            for step in reversed(steps):
                assert same(mine.restore(step), rank, step)
                assert mine.meta(step) == {"loss": step / 2}
    assert ondisk.check(archive, read_data=True).sound


@pytest.mark.parametrize("options", [{}, {"reduce": "codec"}, {"reduce": "tree", "chunk": 64}, {"reduce": "reference"}])
def test_what_ranks_have_kept_comes_back(options: dict[str, Any], tmp_path: Path) -> None:
    stores = compute(tmp_path, 3, range(6), **options)
    done = push(stores, tmp_path / "archive", files=2)
    assert done == Pushed(6, 18, done.nbytes, 0, 0, 0, (), 2)
    assert len(data_files(tmp_path / "archive")) == 2
    require(tmp_path / "archive", 3, range(6))
    forms = {
        entry.form for rank in range(3) for entry in ondisk.checkpoints(tmp_path / "archive", part("forward", rank))
    }
    assert forms == {entry.form for rank in range(3) for entry in ondisk.checkpoints(stores[rank], "forward")}, (
        "reduced checkpoints travel as they are"
    )
    again = push(stores, tmp_path / "archive")
    assert again == Pushed(0, 0, 0, 6, 0, 0, (), 0)
    # What is new is brought, and no more; a difference refers to objects that the archive has.
    for rank in range(3):
        with velocpy.open(stores[rank], **SIZES) as store:
            store.history("forward", **options).checkpoint(6, **state_of(rank, 6), meta={"loss": 3.0}).wait("disk")
    more = push(stores, tmp_path / "archive")
    assert (more.keys, more.parts, more.known) == (1, 3, 6)
    require(tmp_path / "archive", 3, range(7))
    if "chunk" in options:
        assert more.nbytes < done.nbytes / 3


def keep(path: Path, rank: int, steps: Sequence[int]) -> Path:
    """A store of a rank goes on, in the lineage that it has."""
    with velocpy.open(path, **SIZES) as store:
        history = store.history("forward", reduce="tree", chunk=64)
        for step in steps:
            history.checkpoint(step, **state_of(rank, step), meta={"loss": step / 2})
        history.wait("disk")
    return path


def test_ranks_whose_stores_are_copies_of_one(tmp_path: Path) -> None:
    """They have one lineage, and other objects under the same numbers, so those of each rank count for themselves."""
    archive = tmp_path / "archive"
    push([keep(tmp_path / "before", 0, range(3))], archive)
    for rank in range(2):
        pull(archive, tmp_path / f"now-{rank}", rank=0)
        keep(tmp_path / f"now-{rank}", rank, range(3, 6))
    done = push([tmp_path / "now-0", tmp_path / "now-1"], archive)
    assert (done.keys, done.damaged) == (6, ())
    assert ondisk.check(archive, read_data=True).sound
    with velocpy.open(archive, host="16MiB", mode="r") as store:
        for rank in range(2):
            history = store.history(part("forward", rank))
            found = [same(history.restore(step), 0 if step < 3 else rank, step) for step in range(6)]
            assert found == [True] * 6
    assert push([tmp_path / "now-0", tmp_path / "now-1"], archive).known == 6


def test_a_rank_that_went_back_to_an_earlier_copy_of_its_store(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    push([keep(tmp_path / "one", 0, range(3))], archive)
    pull(archive, tmp_path / "two", rank=0)
    push([keep(tmp_path / "one", 0, range(3, 5))], archive)
    done = push([keep(tmp_path / "two", 1, range(3, 5))], archive)  # keys 3 and 4 once more, under the same numbers
    assert (done.keys, done.known, done.damaged) == (2, 3, ())
    assert ondisk.check(archive, read_data=True).sound
    with velocpy.open(archive, host="16MiB", mode="r") as store:
        history = store.history(part("forward", 0))
        assert [same(history.restore(step), int(step > 2), step) for step in range(5)] == [True] * 5


def test_what_others_have_changed_in_an_archive_is_made_again(tmp_path: Path) -> None:
    stores, archive = compute(tmp_path, 2, range(3)), tmp_path / "archive"
    push(stores, archive)
    with velocpy.open(archive, **SIZES) as store:
        store.history("forward").drop(0)
        store.history("forward").checkpoint(1, ranks=np.array([99])).wait("disk")
        store.history(part("forward", 1)).drop(2)
    done = push(stores, archive)
    assert (done.keys, done.parts, done.known) == (3, 1, 0)
    require(archive, 2, range(3))


def test_the_second_reader_reads_an_archive(tmp_path: Path) -> None:
    push(compute(tmp_path, 2, range(3)), tmp_path / "archive", files=2)
    found = second_reader.everything(tmp_path / "archive")
    assert set(found) == {"forward", "rank 0/forward", "rank 1/forward"}
    for rank in range(2):
        for step in range(3):
            regions, _ = found[part("forward", rank)][step]
            assert same({region.name: region.array for region in regions}, rank, step)
    regions, _ = found["forward"][1]
    assert [(region.name, region.array.tolist()) for region in regions] == [("ranks", [0, 1])]


def test_a_rank_gets_its_store_back(tmp_path: Path) -> None:
    push(compute(tmp_path, 3, range(4), reduce="tree", chunk=64), tmp_path / "archive")
    done = pull(tmp_path / "archive", tmp_path / "again", rank=2)
    assert (done.checkpoints, done.damaged) == (4, 0)
    with velocpy.open(tmp_path / "again", **SIZES) as store:
        history = store.history("forward", reduce="tree", chunk=64)
        assert [same(history.restore(step), 2, step) for step in range(4)] == [True] * 4
        history.checkpoint(4, **state_of(2, 4)).wait("disk")
        assert [one.name for one in store.histories] == ["forward"]
    assert ondisk.check(tmp_path / "again", read_data=True).sound
    assert sum(one.stat().st_blocks for one in data_files(tmp_path / "again")) * 512 < 32 << 20
    assert pull(tmp_path / "archive", tmp_path / "nobody", rank=7).checkpoints == 0
    with pytest.raises(errors.InvalidArgument, match="not an empty directory"):
        pull(tmp_path / "archive", tmp_path / "again", rank=2)


@pytest.mark.parametrize("after", [2, 5])
def test_a_run_of_another_number_of_ranks_goes_on(tmp_path: Path, after: int) -> None:
    """It reads parts of the parts that it needs, and its own keys replace or follow those of the run before."""
    archive = tmp_path / "archive"
    push(compute(tmp_path / "before", 3, range(3)), archive, files=3)
    for rank in range(after):
        with velocpy.open(archive, host="16MiB", mode="r") as store:
            history = store.history(part("forward", rank % 3))
            into = np.empty(100)
            history.restore(2, into={"slow": into}, parts={"slow": slice(50, 150)})
            assert np.array_equal(into, state_of(rank % 3, 2)["slow"][50:150])
    push(compute(tmp_path / "after", after, [2, 3]), archive)
    with velocpy.open(archive, host="16MiB", mode="r") as store:
        found = {step: store.history("forward").restore(step)["ranks"].tolist() for step in store.history("forward")}
        assert found == {0: [0, 1, 2], 1: [0, 1, 2], 2: list(range(after)), 3: list(range(after))}
        for rank in range(max(3, after)):
            steps = [step for step in range(4) if rank in found[step]]
            history = store.history(part("forward", rank))
            assert sorted(history) == steps
            assert all(same(history.restore(step), rank, step) for step in steps)


def test_fewer_ranks_that_go_on_with_their_stores_take_nothing_from_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    stores = compute(tmp_path, 3, range(2))
    push(stores, archive)
    done = push(stores[:1], archive)
    assert (done.keys, done.known) == (0, 2)
    require(archive, 3, range(2))
    compute(tmp_path, 1, [1, 2])  # one of the old keys is captured anew
    done = push(stores[:1], archive)
    assert (done.keys, done.known) == (2, 1)
    with velocpy.open(archive, host="16MiB", mode="r") as store:
        found = {step: store.history("forward").restore(step)["ranks"].tolist() for step in store.history("forward")}
        assert found == {0: [0, 1, 2], 1: [0], 2: [0]}


def test_what_not_all_ranks_have(tmp_path: Path) -> None:
    stores = compute(tmp_path, 2, [0])
    with velocpy.open(stores[1], **SIZES) as store:
        store.history("forward").checkpoint(1, u=np.arange(3)).wait("disk")
        store.history("own").checkpoint("last", u=np.arange(5)).wait("disk")
    done = push(stores, tmp_path / "archive")
    assert (done.keys, done.incomplete) == (1, 2)
    done = push(stores, tmp_path / "archive", partial=True, histories=["own"])
    assert (done.keys, done.parts, done.incomplete) == (1, 1, 0)
    with velocpy.open(tmp_path / "archive", host="16MiB", mode="r") as store:
        assert store.history("own").restore("last")["ranks"].tolist() == [1]
        assert store.history(part("own", 1)).restore("last")["u"].tolist() == list(range(5))
        assert len(store.history(part("own", 0))) == 0


def test_beside_stores_that_are_written_to(tmp_path: Path) -> None:
    """Every part of an archive is one that the rank has kept, whenever it is pushed."""
    with velocpy.open(store_of(tmp_path, 0), **SIZES) as one, velocpy.open(store_of(tmp_path, 1), **SIZES) as two:
        stop = threading.Event()

        def work() -> None:
            step = 0
            while not stop.is_set():
                step += 1
                for rank, store in enumerate((one, two)):
                    store.history("forward").checkpoint(step % 20, **state_of(rank, step))
                    if step % 7 == 0:
                        store.history("forward").drop((step * 3) % 20)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            done = [push([one, two], tmp_path / "archive") for _ in range(8)]
        finally:
            stop.set()
            thread.join()
    assert sum(each.keys for each in done) > 0
    assert not any(each.damaged for each in done)
    assert ondisk.check(tmp_path / "archive", read_data=True).sound
    with velocpy.open(tmp_path / "archive", host="16MiB", mode="r") as store:
        for rank in range(2):
            history = store.history(part("forward", rank))
            for key in history:
                found = history.restore(key)
                step = next(step for step in range(key, 1_000_000, 20) if same(found, rank, step))
                assert step % 20 == key


KILLED = """
import sys
from velocpy.archive import push
print("begins", flush=True)
while True:
    push(sys.argv[2:], sys.argv[1], files=2)
    print("pushed", flush=True)
"""


def test_killed_pushes_harm_nothing(tmp_path: Path) -> None:
    """A process that pushes dies at any moment; the archive is sound, has whole keys, and the next push goes on."""
    stores, archive, rng = compute(tmp_path, 2, range(3)), tmp_path / "archive", random.Random(5)
    push(stores, archive, files=2)
    cut = 0
    for turn in range(12):
        for rank, path in enumerate(stores):  # each key in a new version, so that there is much to be brought
            with velocpy.open(path, **SIZES) as store:
                for step in range(3):
                    store.history("forward").checkpoint(step, **state_of(rank, step + 3 * turn))
                store.history("forward").wait("disk")
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(archive), *map(str, stores)], stdout=subprocess.PIPE, text=True
        ) as pushing:
            assert pushing.stdout is not None
            assert pushing.stdout.readline() == "begins\n"
            time.sleep(rng.uniform(0, 0.06))
            pushing.send_signal(signal.SIGKILL)
            cut += "pushed" not in pushing.stdout.read()
        assert ondisk.check(archive, read_data=True).sound
        with velocpy.open(archive, host="16MiB", mode="r") as store:
            for step in range(3):
                versions = {
                    version
                    for rank in range(2)
                    for version in (3 * turn, 3 * max(turn - 1, 0))
                    if same(store.history(part("forward", rank)).restore(step), rank, step + version)
                }
                assert len(versions) == 1, "the parts of a key are of one version"
        push(stores, archive)
        with velocpy.open(archive, host="16MiB", mode="r") as store:
            assert all(
                same(store.history(part("forward", rank)).restore(step), rank, step + 3 * turn)
                for rank in range(2)
                for step in range(3)
            )
    assert cut > 0, "no push was under way when its process was killed"


def test_bad_calls(tmp_path: Path) -> None:
    stores, archive = compute(tmp_path, 2, [0]), tmp_path / "archive"
    with pytest.raises(errors.InvalidType, match="all ranks"):
        push(stores[0], archive)
    with pytest.raises(errors.InvalidArgument, match="no store"):
        push([], archive)
    with pytest.raises(errors.InvalidArgument, match="files"):
        push(stores, archive, files=0)
    with pytest.raises(errors.InvalidArgument, match="131072"):
        push(stores, archive, files=131073)
    with pytest.raises(errors.InvalidArgument, match="number of ranks 2"):
        push(stores, archive, files=3)
    for stripe in (0, 4097, "2GiB"):
        with pytest.raises(errors.InvalidArgument, match="stripe"):
            push(stores, archive, stripe=stripe)
    with pytest.raises(errors.InvalidArgument, match="stripe"):
        push(stores, "s3://bucket/run", stripe="1MiB")
    for wrong in ([None, stores[0]], {*stores}, b"path"):
        with pytest.raises(errors.InvalidType):
            push(wrong, archive)
    with pytest.raises(errors.InvalidArgument, match="same store"):
        push([stores[0], stores[0]], archive)
    with pytest.raises(errors.InvalidArgument, match="timeout"):
        push(stores, archive, timeout=-1)
    with velocpy.open(tmp_path / "long", **SIZES) as store:
        store.history("x" * 65_530).checkpoint(0, u=np.arange(3)).wait("disk")
    with pytest.raises(errors.InvalidArgument, match="too long"):
        push([tmp_path / "long"], archive)
    with pytest.raises(errors.InvalidType, match="name of a history"):
        push(stores, archive, histories=[7])  # type: ignore[list-item]
    with pytest.raises(errors.NotAStore, match="rank 1"):
        push([stores[0], tmp_path / "nothing"], archive)
    with pytest.raises(errors.InvalidType, match="mpi4py"):
        push(stores[0], archive, ranks=object())
    with velocpy.open(host="1MiB") as memory, pytest.raises(errors.InvalidArgument, match="durable"):
        push([memory], archive)
    assert not archive.exists()
    with pytest.raises(errors.InvalidArgument, match="no archive"):
        push(stores[:1], stores[1])
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme").write_text("mine")
    with pytest.raises(errors.ForeignDirectory):
        push(stores, tmp_path / "notes")
    assert push(stores, archive, histories=[]).keys == 0
    push(stores, archive, stripe="64KiB")
    with pytest.raises(errors.InvalidArgument, match="part of another"):
        push([archive], tmp_path / "second")
    with pytest.raises(errors.InvalidArgument, match="rank"):
        pull(archive, tmp_path / "x", rank=-1)
    with pytest.raises(errors.NotAStore):
        pull(tmp_path / "nothing", tmp_path / "x", rank=0)
    assert split_part(part("a/b", 12)) == split_part(part("a/b", np.int64(12))) == ("a/b", 12)  # type: ignore[arg-type]
    assert split_part("rank 012/x") is None


def test_ranks_may_have_any_numbers(tmp_path: Path) -> None:
    stores = compute(tmp_path, 2, [0])
    push({7: stores[1], 3: stores[0]}, tmp_path / "archive")
    with velocpy.open(tmp_path / "archive", host="16MiB", mode="r") as store:
        assert store.history("forward").restore(0)["ranks"].tolist() == [3, 7]
        assert same(store.history(part("forward", 7)).restore(0), 1, 0)


# ---- ranks that push together ----


def together(count: int, tmp_path: Path, *what: str) -> list[dict[str, Any]]:
    """What so many ranks of torch.distributed say of a push."""
    pytest.importorskip("torch")
    launch_ranks(RANK, count, "torch", tmp_path, *what)
    return reports(tmp_path, count)


def reports(tmp_path: Path, count: int) -> list[dict[str, Any]]:
    return [json.loads((tmp_path / f"report-{rank}.json").read_text()) for rank in range(count)]


def test_ranks_of_torch_push_together(tmp_path: Path) -> None:
    said = [each["push"]["pushed"] for each in together(3, tmp_path, "push")]
    assert said == [said[0]] * 3
    assert (said[0]["keys"], said[0]["parts"], said[0]["files"]) == (4, 12, 2)
    require(tmp_path / "archive", 3, range(4))


NODES = "nodes", "elsewhere"


def require_travelled(tmp_path: Path, count: int, said: Sequence[dict[str, Any]]) -> None:
    """What ranks on several nodes have pushed, in two ways, is in the archive of each."""
    for what in NODES:
        pushed = [each[what]["pushed"] for each in said]
        assert pushed == [pushed[0]] * count
        assert (pushed[0]["keys"], pushed[0]["parts"], pushed[0]["files"]) == (4, 4 * count, 1)
        require(tmp_path / what / "archive", count, range(4))


def test_ranks_of_torch_on_several_nodes(tmp_path: Path) -> None:
    """Nodes that are named, and a rank whose store rank 0 cannot read though its node has the same name."""
    require_travelled(tmp_path, 4, together(4, tmp_path, *NODES))


def test_a_rank_that_is_killed(tmp_path: Path) -> None:
    """Whichever rank dies, and whenever: the others raise within their timeout, what was in the archive is there, each
    key as a whole, and a push of what is left of the stores completes it. Each commit plays another moment.
    """
    require_harmless(tmp_path, "killed")


def require_harmless(tmp_path: Path, what: str) -> None:
    """One of four ranks is killed while they do this."""
    pytest.importorskip("torch")
    moment = random.Random(os.environ.get("VELOCPY_TURN"))
    who, count = moment.randrange(4), 4
    launch_ranks(RANK, count, "torch", tmp_path, f"{what}:{who}:{moment.random() * 1.5}", killed=who)
    for rank in range(count):
        if rank != who:
            (said,) = json.loads((tmp_path / f"report-{rank}.json").read_text()).values()
            assert said["error"] in ("RankFailed", "WaitTimeout"), said
    if (tmp_path / "archive").exists():
        assert ondisk.check(tmp_path / "archive", read_data=True).sound
        require(tmp_path / "archive", count, kept_steps(tmp_path / "archive"))
    push([store_of(tmp_path, rank) for rank in range(count)], tmp_path / "archive")
    whole = set.intersection(*(set(kept_steps(store_of(tmp_path, rank))) for rank in range(count)))
    assert set(kept_steps(tmp_path / "archive")) >= whole
    require(tmp_path / "archive", count, kept_steps(tmp_path / "archive"))


def kept_steps(path: Path | str) -> list[int]:
    """The keys of the history in a store; of an archive, those that are complete."""
    with velocpy.open(path, mode="r") as store:
        return sorted(int(key) for key in store.history("forward"))


def under_mpi(count: int, tmp_path: Path, *what: str) -> list[dict[str, Any]]:
    """What so many ranks of MPI say of a push."""
    pytest.importorskip("mpi4py")
    launch_by_mpi(RANK, count, "mpi", tmp_path, *what)
    return reports(tmp_path, count)


@pytest.mark.mpi
def test_ranks_of_mpi_push_together(tmp_path: Path) -> None:
    said = under_mpi(3, tmp_path, "push", *NODES)
    pushed = [each["push"]["pushed"] for each in said]
    assert pushed == [pushed[0]] * 3
    require(tmp_path / "archive", 3, range(4))
    require_travelled(tmp_path, 3, said)


#: What one rank does wrong, and the errors of rank 1 and of rank 0.
FAILURES = {
    "memory": (("InvalidArgument", "durable"), ("RankFailed", "rank 1 could not take part")),
    "no path": (("InvalidType", "this rank alone"), ("RankFailed", "rank 1 could not take part")),
    "no files": (("InvalidArgument", "files"), ("RankFailed", "rank 1 could not take part")),
    "many files": (("InvalidArgument", "number of ranks 2"), ("RankFailed", "rank 1 could not take part")),
    "other files": (("InvalidArgument", "same arguments"), ("InvalidArgument", "same arguments")),
    "interrupted": (("VelocError", "rank 0 could not push"), ("KeyboardInterrupt", "")),
    "locked": (("StoreLocked", "rank 0 could not push"), ("StoreLocked", "open for writing")),
}


def test_all_ranks_fail_together(tmp_path: Path) -> None:
    """Rank 1 does something wrong, or rank 0 cannot write: every rank raises, and the archive has nothing."""
    said = together(2, tmp_path, *FAILURES)
    for what, (own, of_others) in FAILURES.items():
        for rank, (name, text) in enumerate((of_others, own)):
            assert said[rank][what]["error"] == name
            assert text in said[rank][what]["text"]
        assert said[0][what]["rank"] == (1 if of_others[0] == "RankFailed" else None)
        assert said[0][what]["exists"] == (what == "locked")


class Alone:
    """A communicator of one rank."""

    def Get_rank(self) -> int:
        return 0

    def Get_size(self) -> int:
        return 1

    def Iallgather(self, sent: Any, received: Any) -> Any:
        received[:] = sent
        return self

    def Iallgatherv(self, sent: Any, received: Any) -> Any:
        received[0][:] = sent
        return self

    def Ibcast(self, _: Any, root: int) -> Any:
        return self

    def Test(self) -> bool:
        return True


def test_an_iterator_of_histories_is_read_once(tmp_path: Path) -> None:
    (store,) = compute(tmp_path, 1, [0])
    assert push(store, tmp_path / "archive", ranks=Alone(), histories=iter(["forward"])).keys == 1


class Late:
    """A communicator of one rank, of which another never comes."""

    def Get_rank(self) -> int:
        return 0

    def Get_size(self) -> int:
        return 2

    def Iallgather(self, *_: Any) -> Any:
        return self

    Iallgatherv = Iallgather

    def Test(self) -> bool:
        return False


def test_a_rank_that_never_comes(tmp_path: Path) -> None:
    before = len(exchange._given_up)
    with pytest.raises(errors.WaitTimeout, match=r"0\.1 s"):
        exchange_of(Late(), 0.1).all_gather(b"x")
    # MPI may still write into the memory of a call that was given up: it must not become other memory of the process.
    ((_, (sent, received)),) = exchange._given_up[before:]
    assert (sent.tolist(), received.shape) == ([1], (2,))
    stores = compute(tmp_path, 1, [0])
    with pytest.raises(errors.WaitTimeout):
        push(stores[0], tmp_path / "archive", ranks=Late(), timeout=0.1)
    assert not (tmp_path / "archive").exists()


# ---- the commands ----


def command(*words: Any) -> Iterator[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "velocpy", *map(str, words)], capture_output=True, text=True, check=True
    )
    yield from map(json.loads, done.stdout.splitlines())


def test_the_commands(tmp_path: Path) -> None:
    stores = compute(tmp_path, 11, [0])
    (said,) = command("push", *sorted(stores, reverse=True), tmp_path / "archive", "--files", "2", "--json")
    assert (said["keys"], said["parts"], said["files"], said["ranks"]) == (1, 11, 2, list(range(11)))
    require(tmp_path / "archive", 11, [0])  # each is the rank that its directory names
    (said,) = command("pull", tmp_path / "archive", tmp_path / "again", "--rank", "10", "--json")
    assert said["checkpoints"] == 1
    with velocpy.open(tmp_path / "again", host="1MiB", mode="r") as store:
        assert same(store.history("forward").restore(0), 10, 0)
    names = [line["history"] for line in command("ls", tmp_path / "archive", "--json")]
    assert "forward" in names
    assert part("forward", 10) in names
