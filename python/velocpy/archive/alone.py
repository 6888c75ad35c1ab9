"""A push by one process, which reads the stores of all ranks itself."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from velocpy import paths
from velocpy.errors import InvalidArgument, InvalidType
from velocpy.ondisk import Opened, bytes_of_path, bytes_of_text
from velocpy.store import Store

__all__ = [
    "Omission", "Options", "Outcome", "Pushed", "Pushing", "carry_on", "open_alone", "outcome_of", "push_alone",
    "ranks_of", "request_of", "store_path", "target_of",
]  # fmt: skip


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
    #: Files of the archive to which something was appended; of one in a bucket, packs that were added.
    files: int
    #: Of an archive in a bucket: requests to the object store, and the bytes of their bodies and of the replies'.
    requests: int = 0
    sent_nbytes: int = 0
    received_nbytes: int = 0


#: A history and a key, as the core names them.
Name = tuple[str, str]


class Omission(NamedTuple):
    """A key that a push has left out. History and key are named as the core does it."""

    history: str
    key: str
    #: "incomplete", "changed" or "damaged", as the fields of `Pushed` say, or "held".
    why: str


class Outcome(NamedTuple):
    """What a push has come to."""

    pushed: Pushed
    #: If that was asked for.
    omissions: tuple[Omission, ...]


class Options(NamedTuple):
    """What all ranks have to agree about."""

    #: A directory, or the place of an archive in a bucket.
    archive: Path | str
    files: int | None
    writers: int | None
    partial: bool
    histories: tuple[str, ...] | None
    buffer: int
    buffers: int
    leaders: int | None
    stripe: int | None = None

    def for_ranks(self, ranks: int) -> Options:
        """These, if so many ranks can have them."""
        if self.files is not None and self.files > ranks:
            raise InvalidArgument(
                f"files is {self.files}, and the number of ranks {ranks}: what one rank has goes to one file. Nothing "
                f"was written. Give at most {ranks}."
            )
        return self

    def __str__(self) -> str:
        given = self._asdict() | {"archive": str(self.archive)}
        return ", ".join(f"{name}={value!r}" for name, value in given.items())


def store_path(store: Any, timeout: float | None, what: str = "a store") -> Path:
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


def push_alone(stores: Mapping[int, Path], options: Options) -> Pushed:
    """A push by this process, which reads the stores of all ranks itself."""
    with Pushing.reserved() as pushing:
        open_alone(pushing, stores, options)
        return carry_on(pushing, tells=False).pushed


def open_alone(pushing: Pushing, stores: Mapping[int, Path], options: Options) -> None:
    """Begins such a push: it knows what the stores have now."""
    pushing.open(to=target_of(options), ranks=ranks_of(stores), **request_of(options))


def carry_on(pushing: Pushing, tells: bool) -> Outcome:
    """Carries out a push that has begun. It ``tells`` what it has left out."""
    while True:
        facts, _ = pushing.ask("push_step", milliseconds=100)
        if facts["done"]:
            return outcome_of(facts, pushing, tells)


def target_of(options: Options) -> str:
    """The archive, as the core is told it. A directory with the files of others is refused."""
    if isinstance(options.archive, Path):
        with paths.using(options.archive):
            if options.archive.is_dir():
                paths.require_own(options.archive)
    return bytes_of_path(options.archive)


def ranks_of(stores: Mapping[int, Path]) -> list[dict[str, Any]]:
    """The stores of ranks, as the core is told them."""
    return [{"rank": rank, "path": bytes_of_path(path)} for rank, path in stores.items()]


def request_of(options: Options) -> dict[str, Any]:
    """What the core has to know of a push besides its stores."""
    return {
        "files": options.files or 0,
        "writers": options.writers or 0,
        "leaders": options.leaders or 0,
        "stripe": options.stripe or 0,
        "partial": options.partial,
        "histories": None if options.histories is None else [bytes_of_text(name) for name in options.histories],
    }


class Pushing(Opened):
    """A push that is under way."""

    _opens, _closes = "push", "push_close"

    def hold(self, names: Iterable[Name]) -> None:
        """Leaves keys out."""
        if held := [{"history": history, "key": json.loads(key)} for history, key in names]:
            self.ask("push_hold", np.frombuffer(bytearray(json.dumps(held).encode()), np.uint8))

    def omissions(self) -> Iterator[Omission]:
        """What it has left out."""
        following: int | None = 0
        while following is not None:
            head, page = self.ask("push_omitted", **{"from": following})
            following = head["next"]
            for line in page.splitlines():  # one that a page has no room for is empty, which fails the push
                said = json.loads(line)
                yield Omission(said["history"], json.dumps(said["key"]), said["why"])


def outcome_of(facts: Mapping[str, Any], pushing: Pushing, tells: bool) -> Outcome:
    """What the core says that a push has done."""
    pushed = Pushed(
        facts["keys"], facts["parts"], facts["bytes"], facts["known"], facts["incomplete"], facts["changed"],
        tuple(facts["damaged_parts"]), facts["files"], facts["requests"], facts["sent"], facts["received"],
    )  # fmt: skip
    return Outcome(pushed, tuple(pushing.omissions()) if tells else ())
