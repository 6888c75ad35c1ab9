"""A push that all ranks of a run make together, by the communicator that the application has.

The lowest rank knows the catalogs of all stores. It plans what is copied next, and commits the keys whose parts have
arrived. All ranks carry its plans out: see `velocpy.archive.shares`. If all of them are on one node, it pushes alone.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from velocpy import errors, knobs
from velocpy.errors import InvalidArgument, InvalidType, RankFailed, VelocError, WaitTimeout
from velocpy.ondisk import Opened, View, bytes_of_path
from velocpy.store import Store

from . import buckets
from .alone import (
    Name,
    Omission,
    Options,
    Outcome,
    Pushed,
    Pushing,
    carry_on,
    open_alone,
    outcome_of,
    ranks_of,
    request_of,
    store_path,
    target_of,
)
from .exchange import Bytes, Exchange, Parcel
from .shares import Carrying, Share, Uploading

__all__ = ["Renewed", "Run", "joined", "push_together"]

T = TypeVar("T")

#: Goroutines that the core has by default, and threads of a rank that read and write.
_WRITERS = 8

#: Seconds in which a thread starts.
_PATIENCE = 10

#: Bytes of one message with metadata, and of the messages that the lowest rank waits for at once, unless one store has
#: more; and from how many ranks.
_PIECE = 16 << 20
_SENDERS = 64

#: Messages that were under way when a push was given up. A late one may still be written into its buffer.
_abandoned: list[list[Parcel]] = []


def push_together(others: Exchange, store: Any, options: Callable[[], Options], timeout: float | None) -> Pushed:
    """What each rank does: it says where its store lies, and takes part in what the lowest plans."""

    def take_part() -> tuple[Options, Path]:
        if not isinstance(store, (str, os.PathLike, Store)):
            raise InvalidType(f"with ranks=, stores is the store of this rank alone, and not a {type(store).__name__}.")
        return options().for_ranks(others.size), store_path(store, timeout)

    return joined(others, take_part, timeout).push().pushed


def joined(others: Exchange, take_part: Callable[[], tuple[Options, Path]], timeout: float | None) -> Run:
    """The ranks, once all of them know where each other's stores lie. What keeps one from taking part, all raise."""
    mine: BaseException | None = None
    chosen: Options | None = None
    path = Path()
    try:
        chosen, path = take_part()
        said = {"path": bytes_of_path(path), "store": _identity(path), "wanted": str(chosen), "node": knobs.node_name()}
    except BaseException as error:  # whatever it is, the others must not wait for this rank
        mine, said = error, {"error": f"{type(error).__name__}: {error}"}
    told = [json.loads(each) for each in others.all_gather(json.dumps(said).encode())]
    _require_all(told, mine)
    assert chosen is not None
    return Run(others, chosen, path, told, timeout)


def sheltered(call: Callable[[], T]) -> T:
    """Runs a call in another thread, where no signal breaks it off between two messages that other ranks wait for.

    What a signal raises meanwhile is raised behind it.
    """
    came: list[T] = []
    failed: list[BaseException] = []
    begun, ended, interrupted = threading.Event(), threading.Event(), None

    def run() -> None:
        begun.set()
        try:
            came.append(call())
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=run, name="velocpy-push", daemon=True)
    try:
        thread.start()
    except BaseException as error:
        if isinstance(error, RuntimeError) or not begun.wait(_PATIENCE):
            raise  # there is no thread
        interrupted = error
    while True:
        try:
            ended.wait()  # Thread.join forgets a thread, where a signal breaks it off (Python 3.11)
            break
        except BaseException as error:
            if interrupted is not None:
                raise  # a second time: the others are left alone with it
            interrupted = error
    if interrupted is not None:
        raise interrupted
    if failed:
        raise failed[0]
    return came[0]


def _told(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON has it, for the other ranks."""
    return {"pushed": asdict(outcome.pushed), "omissions": outcome.omissions}


def _heard(told: Mapping[str, Any]) -> Outcome:
    pushed = {**told["pushed"], "damaged": tuple(told["pushed"]["damaged"])}
    return Outcome(Pushed(**pushed), tuple(Omission(*each) for each in told["omissions"]))


def _require_all(told: Sequence[Mapping[str, Any]], mine: BaseException | None) -> None:
    """Raises, on every rank, what kept one from taking part."""
    _require_nobody_failed([said.get("error") for said in told], mine, "could not take part, and nothing was pushed")
    places: dict[tuple[str, str], int] = {}
    for rank, said in enumerate(told):
        other = places.setdefault((said["path"], said["store"]), rank)
        if other != rank:
            raise InvalidArgument(
                f"the ranks {other} and {rank} have the same store; each rank has one of its own. Nothing was pushed."
            )
        if said["wanted"] != told[0]["wanted"]:
            raise InvalidArgument(
                f"rank 0 pushes with {told[0]['wanted']}, and rank {rank} with {said['wanted']}. All ranks push into "
                "one archive, with the same arguments. Nothing was pushed."
            )


def _require_nobody_failed(whys: Sequence[str | None], mine: BaseException | None, what: str) -> None:
    """Raises this rank's own error, or what another one says of its."""
    if mine is not None:
        raise mine
    for rank, why in enumerate(whys):
        if why is not None:
            failed = RankFailed(f"rank {rank} {what}: {why}")
            failed.rank = rank
            raise failed


def _identity(path: Path) -> str:
    with View(path) as view:
        return str(view.about["store"])


def _is_read_here(path: Path, identity: str) -> bool:
    try:
        return _identity(path) == identity
    except (VelocError, OSError):
        return False


def _raised(name: str, text: str) -> VelocError:
    """The error of the lowest rank, on another one."""
    kind = getattr(errors, name, VelocError)
    if kind is RankFailed or not (isinstance(kind, type) and issubclass(kind, VelocError)):
        kind = VelocError
    return kind(f"rank 0 could not push: {text}")


class Renewed(NamedTuple):
    """The keys that a rank has captured, and that are not known to be in the archive."""

    #: In the version that is brought now: how often since all ranks have last brought it together.
    certain: dict[Name, int]
    #: Perhaps in a version that is not brought now.
    uncertain: set[Name]

    def told(self) -> list[Any]:
        """As JSON has it, for the other ranks."""
        return [[(*name, count) for name, count in self.certain.items()], sorted(self.uncertain)]

    @classmethod
    def heard(cls, told: Sequence[Any]) -> Renewed:
        """What another rank has told."""
        certain, uncertain = told
        return cls(
            {(history, key): count for history, key, count in certain}, {(history, key) for history, key in uncertain}
        )


class Run:
    """The ranks that push, once or again and again, and what they have agreed about."""

    def __init__(
        self, others: Exchange, options: Options, path: Path, told: Sequence[Mapping[str, Any]], timeout: float | None
    ) -> None:
        self._others, self._options, self._path, self._told, self._timeout = others, options, path, told, timeout
        self._lowest = others.rank == 0
        self._nodes = self._found_nodes()
        self._paces: dict[str, float] | None = None  # how fast nodes have written, for the lowest rank

    @property
    def options(self) -> Options:
        """What they have agreed about."""
        return self._options

    def push(self, renewed: Callable[[], Renewed] | None = None) -> Outcome:
        """Brings what the archive lacks. All ranks make this call.

        Parameters
        ----------
        renewed
            Called when it is settled what of the stores is brought: what this rank has captured. Keys that not all
            ranks have renewed are left out then, and the outcome tells what was left out. None: whatever there is.
        """
        if len(set(self._nodes)) == 1:
            return self._push_on_one_node(renewed)
        if self._others.any_thread and threading.current_thread() is threading.main_thread():
            return sheltered(lambda: self._push_over_nodes(renewed))
        return self._push_over_nodes(renewed)

    def _push_on_one_node(self, renewed: Callable[[], Renewed] | None) -> Outcome:
        """A push by the lowest rank, which reads the stores of all."""
        stores = self.stores(self._nodes, 0)
        with Pushing.reserved() as pushing:
            self.decided(lambda: open_alone(pushing, stores, self._options))
            self._hold(pushing, renewed)
            return _heard(self.decided(lambda: _told(carry_on(pushing, renewed is not None))))

    def _hold(self, pushing: Pushing, renewed: Callable[[], Renewed] | None) -> None:
        """Leaves out what not all ranks have captured as often, or some perhaps in a version that is not brought.

        The archive has the versions of all ranks that belong together then, the old ones.
        """
        if renewed is None or self._options.partial:
            return
        every = [Renewed.heard(each) for each in self.gathered(lambda: renewed().told())]
        captured = {name for each in every for name in (*each.certain, *each.uncertain)}
        held = [
            name
            for name in captured
            if None in (counts := {each.certain.get(name) for each in every}) or len(counts) > 1
        ]
        self.decided(lambda: pushing.hold(sorted(held)))

    def _found_nodes(self) -> list[int]:
        """The number of each rank's node, by ranks.

        A rank whose store cannot be read on the node of its name is a node by itself: containers of one host have one
        name. The lowest rank of each name says which can.
        """
        names = [said["node"] for said in self._told]
        first: dict[str, int] = {}  # by name: its lowest rank
        for rank, name in enumerate(names):
            first.setdefault(name, rank)
        if self._others.rank == first[names[self._others.rank]]:
            mine = [rank for rank, name in enumerate(names) if name == names[self._others.rank]]
        else:
            mine = []
        apart = self.gathered(
            lambda: [rank for rank in mine if not _is_read_here(self._path_of(rank), self._told[rank]["store"])]
        )
        nodes = [first[name] for name in names]
        for rank in (rank for ranks in apart for rank in ranks):
            nodes[rank] = len(names) + rank
        return nodes

    def _path_of(self, rank: int) -> Path:
        return Path(os.fsdecode(bytes.fromhex(self._told[rank]["path"])))

    def stores(self, nodes: Sequence[int], node: int) -> dict[int, Path]:
        """The stores of the ranks of a node."""
        return {rank: self._path_of(rank) for rank, own in enumerate(nodes) if own == node}

    def decided(self, decide: Callable[[], T]) -> T:
        """What the lowest rank decides, on every rank; if it raises, all do."""
        outcome, mine = b"", None
        if self._lowest:
            try:
                outcome = json.dumps({"decided": decide()}).encode()
            except BaseException as error:  # the others wait for what came of it
                mine, outcome = error, json.dumps({"error": type(error).__name__, "text": str(error)}).encode()
        came = json.loads(self._others.broadcast(outcome))
        if mine is not None:
            raise mine
        if "error" in came:
            raise _raised(came["error"], came["text"])
        decided: T = came["decided"]
        return decided

    def gathered(self, do: Callable[[], T]) -> list[T]:
        """What each rank has done, by ranks; if one has raised, all do."""
        mine: BaseException | None = None
        try:
            said = json.dumps({"done": do()})
        except BaseException as error:  # the others wait for this rank
            mine, said = error, json.dumps({"error": f"{type(error).__name__}: {error}"})
        try:
            told = [json.loads(each) for each in self._others.all_gather(said.encode())]
        except (RankFailed, WaitTimeout):
            if isinstance(mine, WaitTimeout) or (isinstance(mine, RankFailed) and mine.rank is not None):
                raise mine from None  # it names the rank that does not answer
            raise
        _require_nobody_failed(
            [each.get("error") for each in told], mine, "failed, and what was being brought is not in the archive"
        )
        return [each["done"] for each in told]

    def _push_over_nodes(self, renewed: Callable[[], Renewed] | None) -> Outcome:
        """A push of ranks on several nodes."""
        options, rank, nodes = self._options, self._others.rank, self._nodes
        near = self.stores(nodes, nodes[rank])
        with Pushing.reserved() as pushing, Share.reserved() as share:
            self._collect(nodes, pushing)
            self.decided(lambda: self._open(pushing))
            self._hold(pushing, renewed)
            self.gathered(lambda: share.open(to=bytes_of_path(options.archive), ranks=ranks_of(near), rank=rank))
            with self._carrying(share) as carrying:
                self.gathered(carrying.prepare)
                while self._brought_some(pushing, carrying, nodes):
                    pass
            self.gathered(share.close)
            return _heard(self.decided(lambda: self._finished(pushing, renewed is not None)))

    def _carrying(self, share: Share) -> Carrying | Uploading:
        options = self._options
        if buckets.is_place(options.archive):
            return Uploading(share, options.writers)
        return Carrying(
            share, self._others, options.buffer, options.buffers, options.writers or _WRITERS, self._timeout
        )

    def _finished(self, pushing: Pushing, tells: bool) -> dict[str, Any]:
        facts, _ = pushing.ask("push_done")
        self._paces = facts["paces"]
        outcome = outcome_of(facts, pushing, tells)
        pushing.close()
        return _told(outcome)

    def _brought_some(self, pushing: Pushing, carrying: Carrying | Uploading, nodes: Sequence[int]) -> bool:
        """Plans, copies and commits; False if nothing is left to be brought."""
        text = self._plan(pushing, nodes)
        plan = json.loads(text)
        if plan["done"]:
            return False
        reports = self.gathered(lambda: carrying.carry_out(text, plan))
        self.decided(lambda: self._land(pushing, reports))
        return True

    def _collect(self, nodes: Sequence[int], pushing: Pushing) -> None:
        """Brings the metadata of stores on other nodes to the lowest rank."""
        away = nodes[self._others.rank] != nodes[0]
        whole = room = np.zeros(0, np.uint8)
        with _Metadata.reserved() as metadata:

            def read() -> int:
                nonlocal whole
                if not away:
                    return 0
                length: int = metadata.open(path=bytes_of_path(self._path))["bytes"]
                whole = np.zeros(length, np.uint8)
                metadata.ask("metadata_read", whole)
                return length

            lengths = self.gathered(read)

        batches = list(_batches(lengths)) if self._lowest else []

        def make_room() -> None:
            nonlocal room
            room = np.zeros(max((sum(batch.values()) for batch in batches), default=0), np.uint8)

        self.gathered(make_room)
        if away:  # nothing can fail between two messages, and so leave the other rank alone with the rest
            for at in range(0, len(whole), _PIECE):
                self._others.wait(self._others.send(0, whole[at : at + _PIECE]))
        failed: list[BaseException] = []
        for batch in batches:
            self._receive(batch, room)
            try:
                told = [{"rank": rank, "bytes": length} for rank, length in batch.items()]
                pushing.ask("push_metadata", room[: sum(batch.values())], catalogs=told)
            except BaseException as error:
                failed.append(error)

        def succeed() -> None:
            if failed:
                raise failed[0]

        self.gathered(succeed)

    def _receive(self, lengths: Mapping[int, int], room: Bytes) -> None:
        """Receives the metadata of some ranks, one behind the other. All of them send it at once."""
        parcels: list[Parcel] = []
        begin = 0
        try:
            for rank, length in lengths.items():
                for at in range(begin, begin + length, _PIECE):
                    parcels.append(self._others.receive(rank, room[at : min(at + _PIECE, begin + length)]))
                begin += length
            for parcel in parcels:
                self._others.wait(parcel)
        except BaseException:
            _abandoned.append(parcels)
            raise

    def _open(self, pushing: Pushing) -> None:
        every = {rank: self._path_of(rank) for rank in range(len(self._told))}
        pushing.open(to=target_of(self._options), ranks=ranks_of(every), paces=self._paces, **request_of(self._options))

    def _plan(self, pushing: Pushing, nodes: Sequence[int]) -> bytes:
        """What is to be done next, on every rank."""
        plan = b""

        def make() -> None:
            nonlocal plan
            following: int | None = 0
            while following is not None:
                head, page = pushing.ask("push_plan", nodes=list(nodes), **{"from": following})
                plan, following = plan + page, head["next"]

        self.decided(make)
        return self._others.broadcast(plan)

    def _land(self, pushing: Pushing, reports: Sequence[Any]) -> None:
        pushing.ask("push_land", np.frombuffer(bytearray(json.dumps(reports).encode()), np.uint8))


def _batches(lengths: Sequence[int]) -> Iterator[dict[int, int]]:
    """By rank, the bytes of the metadata that is received at once. Ranks with none have none to send."""
    batch: dict[int, int] = {}
    for rank, length in enumerate(lengths):
        if batch and (sum(batch.values()) + length > _PIECE or len(batch) == _SENDERS):
            yield batch
            batch = {}
        if length > 0:
            batch[rank] = length
    if batch:
        yield batch


class _Metadata(Opened):
    """All of a store but the bytes of its checkpoints, for the lowest rank."""

    _opens, _closes = "metadata", "metadata_close"
