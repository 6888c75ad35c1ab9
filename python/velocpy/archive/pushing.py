"""`push`: what the stores of all ranks have, and an archive lacks, goes into the archive."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from velocpy import errors, paths
from velocpy.checks import require_seconds, require_whole
from velocpy.errors import InvalidArgument, InvalidType, RankFailed, VelocError
from velocpy.ondisk import Opened, View, bytes_of_path, bytes_of_text
from velocpy.store import Store

from .exchange import Exchange, exchange_of

if TYPE_CHECKING:
    from velocpy.backup import Place

__all__ = ["Pushed", "push"]

#: The most files that an archive has, and the most goroutines, each with 4 MiB, that copy.
_MOST_FILES, _MOST_WRITERS = 1 << 17, 1 << 10


@dataclass(frozen=True)
class Pushed:
    """What `push` has done. Keys are counted over all histories."""

    #: Keys that the archive has got, or got anew.
    keys: int
    #: Checkpoints of ranks that were copied for them.
    parts: int
    #: Bytes of these in the archive. What several checkpoints share counts once.
    nbytes: int
    #: Keys that the archive had in this version.
    known: int
    #: Keys that some ranks have and others have not. They were left out.
    incomplete: int
    #: Keys that a rank replaced or dropped before they were copied. They were left out; the next push takes what is
    #: there then.
    changed: int
    #: Checkpoints whose bytes are not those captured, at most 100 of them. Their keys were left out.
    damaged: tuple[str, ...]
    #: Files of the archive to which something was appended.
    files: int


def push(
    stores: Store | Place | Sequence[Store | Place] | Mapping[int, Store | Place],
    archive: Place,
    *,
    ranks: Any = None,
    files: int | None = None,
    partial: bool = False,
    histories: Iterable[str] | None = None,
    writers: int | None = None,
    timeout: float | None = None,
) -> Pushed:
    """Brings the checkpoints of all ranks that an archive lacks into the archive.

    Neighbouring ranks go to one file, and files get bytes as equally as that allows. Several goroutines append to a
    file, in pieces of 4 MiB; they take ``writers`` times 4 MiB of memory, however many ranks there are. Encoded
    checkpoints stay encoded, and differences stay differences. Every part is compared with its checksums before its key
    is committed. The stores may be written to meanwhile.

    Parameters
    ----------
    stores
        The durable stores of the ranks: a sequence, in the order of ranks, or a mapping from numbers of ranks. They are
        all ranks of the run: of a key that the archive has from more of them, the parts of the others are dropped. With
        ``ranks=``, the store of this rank alone. Of a `Store` that is open, everything captured becomes durable first.
    archive
        A directory, which is made if there is none. One process at a time pushes into it.
    ranks
        The communicator of a run whose ranks all make this call: one of mpi4py, or a process group of
        `torch.distributed` with a CPU backend such as gloo (``torch.distributed.group.WORLD``). The lowest rank reads
        the stores of all, so they lie on its node or on shared storage. Give the call a communicator of its own
        (``comm.Dup()``) if other threads communicate.
    files
        To how many files the checkpoints are appended, 1 to 131072; None: those that the archive has, or one. If there
        are as many ranks with bytes, there are exactly as many files.
    partial
        Whether keys are taken too that not all ranks have.
    histories
        Names of the histories that are taken; None: all.
    writers
        Goroutines that copy, for all files together, 1 to 1024; None: 8.
    timeout
        Seconds to wait for an open store to become durable, and with ``ranks=`` for the other ranks, and for the lowest
        while it pushes; None: as long as it takes.

    Returns
    -------
    Pushed
        With ``ranks=``, the same on every rank.

    Raises
    ------
    InvalidArgument
        A store is no durable one, or an archive; there is a store in ``archive`` that is no archive; with ``ranks=``:
        the ranks do not agree about the arguments, or the lowest cannot read the store of another.
    RankFailed
        With ``ranks=``: another rank could not take part. Nothing was changed.
    StoreLocked
        Another process pushes into the archive.
    WaitTimeout
        ``timeout`` has passed. With ``ranks=``, the communicator must not be used any more.
    NotAStore, DamagedStore, FormatTooNew, TierIOError
        As `velocpy.ondisk.contents`. After any error the archive has each key as a whole, in its old version or in the
        new one, and the next push goes on.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from velocpy.archive import part, push
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     for rank in range(4):
    ...         with velocpy.open(f"{directory}/rank-{rank}", host="16MiB", disk="1GiB") as store:
    ...             store.history("forward").checkpoint(7, u=numpy.full(10, rank)).wait("disk")
    ...     done = push([f"{directory}/rank-{rank}" for rank in range(4)], directory + "/archive", files=2)
    ...     print(done.keys, done.parts, done.files)
    ...     with velocpy.open(directory + "/archive", mode="r") as archive:
    ...         print(archive.history("forward").restore(7)["ranks"])
    ...         print(archive.history(part("forward", 3)).restore(7)["u"])
    1 4 2
    [0 1 2 3]
    [3 3 3 3 3 3 3 3 3 3]
    """

    def options() -> _Options:
        return _Options(
            _path(archive, None, "archive"),
            None if files is None else _at_most("files", files, _MOST_FILES),
            None if writers is None else _at_most("writers", writers, _MOST_WRITERS),
            bool(partial),
            None if histories is None else tuple(sorted(set(_names(histories)))),
        )

    if ranks is not None:
        return _push_together(exchange_of(ranks, timeout), stores, options, timeout)
    if timeout is not None:
        require_seconds("timeout", timeout)
    return _push(_numbered(stores, timeout), options())


class _Options(NamedTuple):
    """What all ranks have to agree about."""

    archive: Path
    files: int | None
    writers: int | None
    partial: bool
    histories: tuple[str, ...] | None

    def __str__(self) -> str:
        given = self._asdict() | {"archive": str(self.archive)}
        return ", ".join(f"{name}={value!r}" for name, value in given.items())


def _at_most(name: str, value: Any, most: int) -> int:
    if (number := require_whole(name, value, 1)) > most:
        raise InvalidArgument(f"{name} is {number}; give a number from 1 to {most}.")
    return number


def _names(histories: Iterable[str]) -> list[str]:
    names = [histories] if isinstance(histories, str) else list(histories)
    for name in names:
        if not isinstance(name, str):
            raise InvalidType(f"histories= has {name!r}, which is no name of a history.")
    return names


def _numbered(stores: Any, timeout: float | None) -> dict[int, Path]:
    if isinstance(stores, (str, os.PathLike, Store)):
        raise InvalidType("stores is one store; give those of all ranks as a list, or ranks=, the communicator.")
    if not isinstance(stores, (Sequence, Mapping)) or isinstance(stores, bytes):
        raise InvalidType(
            f"stores is a {type(stores).__name__}; give a list of stores, or a mapping from ranks to them."
        )
    pairs = stores.items() if isinstance(stores, Mapping) else enumerate(stores)
    found = {require_whole("a rank", rank, 0): _path(store, timeout) for rank, store in pairs}
    if not found:
        raise InvalidArgument("stores has no store.")
    if len(set(found.values())) < len(found):
        raise InvalidArgument("two ranks have the same store; each rank has one of its own.")
    return found


def _path(store: Any, timeout: float | None, what: str = "a store") -> Path:
    """The directory of a store, in which everything captured is durable."""
    if not isinstance(store, Store):
        if not isinstance(store, (str, os.PathLike)):
            raise InvalidType(f"{what} is a {type(store).__name__}; give a path.")
        return Path(os.fsdecode(os.path.abspath(store)))  # noqa: PTH100 resolves no links
    if not store.durable or store.path is None:
        raise InvalidArgument("only a durable store has a directory that can be pushed: open it with a path.")
    if not store._config["read_only"]:
        store.wait("disk", timeout)
    return store.path


def _push(stores: Mapping[int, Path], options: _Options) -> Pushed:
    target = options.archive
    if target.is_dir():
        paths.require_own(target)
    request = {
        "ranks": [{"rank": rank, "path": bytes_of_path(path)} for rank, path in stores.items()],
        "files": options.files or 0,
        "writers": options.writers or 0,
        "partial": options.partial,
        "histories": None if options.histories is None else [bytes_of_text(name) for name in options.histories],
    }
    with _Pushing(to=bytes_of_path(target), **request) as pushing:
        while True:
            facts, _ = pushing.ask("push_step", milliseconds=100)
            if facts["done"]:
                break
    return Pushed(
        facts["keys"], facts["parts"], facts["bytes"], facts["known"], facts["incomplete"], facts["changed"],
        tuple(facts["damaged_parts"]), facts["files"],
    )  # fmt: skip


class _Pushing(Opened):
    """A push that is under way."""

    _opens, _closes = "push", "push_close"


def _push_together(others: Exchange, store: Any, options: Callable[[], _Options], timeout: float | None) -> Pushed:
    """What each rank does: it tells the lowest where its store lies, which pushes, and tells all what came of it."""
    mine: BaseException | None = None
    chosen: _Options | None = None
    try:
        if not isinstance(store, (str, os.PathLike, Store)):
            raise InvalidType(f"with ranks=, stores is the store of this rank alone, and not a {type(store).__name__}.")
        chosen, path = options(), _path(store, timeout)
        text = json.dumps({"path": bytes_of_path(path), "store": _identity(path), "wanted": str(chosen)}).encode()
    except BaseException as error:  # whatever it is, the others must not wait for this rank
        mine, text = error, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode()
    told = [json.loads(said) for said in others.all_gather(text)]
    _require_all(told, mine)
    outcome = b""
    if others.rank == 0 and chosen is not None:
        mine, outcome = _lowest(told, chosen)
    came = json.loads(others.all_gather(outcome)[0])
    if mine is not None:
        raise mine
    if "error" in came:
        raise _raised(came["error"], came["text"])
    return Pushed(**{**came, "damaged": tuple(came["damaged"])})


def _require_all(told: Sequence[Mapping[str, Any]], mine: BaseException | None) -> None:
    """Raises, on every rank, what kept one from taking part."""
    if mine is not None:
        raise mine
    for rank, said in enumerate(told):
        if "error" in said:
            failed = RankFailed(f"rank {rank} could not take part, and nothing was pushed: {said['error']}")
            failed.rank = rank
            raise failed
    for rank, said in enumerate(told):
        if said["wanted"] != told[0]["wanted"]:
            raise InvalidArgument(
                f"rank 0 pushes with {told[0]['wanted']}, and rank {rank} with {said['wanted']}. All ranks push into "
                "one archive, with the same arguments. Nothing was pushed."
            )


def _lowest(told: Sequence[Mapping[str, Any]], options: _Options) -> tuple[BaseException | None, bytes]:
    """What the lowest rank does: the error to raise, if there is one, and what it tells the others."""
    try:
        stores = {rank: Path(os.fsdecode(bytes.fromhex(said["path"]))) for rank, said in enumerate(told)}
        for rank, path in stores.items():
            _require_same(rank, path, told[rank]["store"])
        return None, json.dumps(asdict(_push(stores, options))).encode()
    except BaseException as error:  # the others wait for what came of it
        return error, json.dumps({"error": type(error).__name__, "text": str(error)}).encode()


def _identity(path: Path) -> str:
    with View(path) as view:
        return str(view.about["store"])


def _require_same(rank: int, path: Path, identity: str) -> None:
    try:
        same = _identity(path) == identity
    except errors.NotAStore:
        same = False
    if not same:
        raise InvalidArgument(
            f"the store of rank {rank} in {str(path)!r} cannot be read by rank 0: it lies on another node. Let the "
            "ranks' stores lie on shared storage, or push the stores of each node into an archive of its own."
        )


def _raised(name: str, text: str) -> VelocError:
    """The error of the lowest rank, on another one."""
    kind = getattr(errors, name, VelocError)
    if kind is RankFailed or not (isinstance(kind, type) and issubclass(kind, VelocError)):
        kind = VelocError
    return kind(f"rank 0 could not push: {text}")
