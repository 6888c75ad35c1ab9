"""What lies in a store's directory, and how it is put in order, without opening it as a cache.

Looking changes nothing, needs no right to write, and goes on beside a process that writes to the store: what it sees is
the store as it was when the question was asked. `collect` and `repair` write, and raise `StoreLocked` beside such a
process.

Examples
--------
>>> import numpy, tempfile, velocpy
>>> from velocpy import ondisk
>>> directory = tempfile.TemporaryDirectory()
>>> with velocpy.open(directory.name, host="16MiB", disk="1GiB") as store:
...     for i in range(3):
...         _ = store.history("forward").checkpoint(i, u=numpy.full(1000, i))
>>> [(history.name, history.checkpoints) for history in ondisk.contents(directory.name).histories]
[('forward', 3)]
>>> ondisk.check(directory.name, read_data=True).sound
True
>>> directory.cleanup()
"""

from __future__ import annotations

import itertools
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from . import _core, knobs
from .choices import BestOrder
from .errors import CheckpointNotFound, DamagedStore, InvalidArgument
from .times import from_json

__all__ = [
    "Checkpoint",
    "Collected",
    "Contents",
    "Entry",
    "Extent",
    "Fault",
    "HistoryEntry",
    "Region",
    "Repaired",
    "Report",
    "Retention",
    "Unused",
    "check",
    "checkpoints",
    "collect",
    "contents",
    "describe",
    "repair",
]

Path = str | os.PathLike[str]
Key = int | str

#: Told how many bytes of how many have been read.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Retention:
    """Which checkpoints of a history stay; see `History.retain`."""

    last: int
    every: int
    named: bool
    keys: tuple[Key, ...]
    #: How many keys more there are, which are too long to be listed.
    more_keys: int = 0
    #: So many of those that are best by a number of their meta; 0: none for that.
    best: int = 0
    #: The names that lead to that number.
    by: tuple[str, ...] = ()
    #: "min": the smallest numbers are the best; "max": the largest.
    order: BestOrder = "min"


@dataclass(frozen=True)
class HistoryEntry:
    """A history of a store."""

    name: str
    checkpoints: int
    #: Bytes that its checkpoints take in the data files.
    nbytes: int
    #: Bytes of dropped and replaced checkpoints there that differences in the history still need.
    kept_nbytes: int
    #: The number of the latest version written of one that is there; 0 without any.
    last_serial: int
    #: When that version was captured, as `Entry.captured`.
    latest: datetime | None
    retention: Retention | None


@dataclass(frozen=True)
class Contents:
    """What is in a store."""

    path: str
    #: What it is told from other stores by: 32 hexadecimal digits.
    store: str
    format: int
    #: Length of its data files.
    segment_bytes: int
    #: What of its catalog is missing, in words; None: nothing.
    damage: str | None
    #: By name.
    histories: tuple[HistoryEntry, ...]


@dataclass(frozen=True)
class Entry:
    """A checkpoint, as a listing shows it."""

    history: str
    key: Key
    #: Bytes of its regions.
    nbytes: int
    regions: int
    #: A number that grows with every version written in the store.
    serial: int
    #: When `History.checkpoint` was called for it, in UTC; None where a velocpy wrote it that kept no times, or where
    #: it is not readable.
    captured: datetime | None
    meta_nbytes: int
    checksums: bool
    #: False: a later version of velocpy has stored it in a way that this one does not know.
    readable: bool
    #: How its bytes lie in the data files, which `Store.history` with ``reduce`` decided when it was written: "raw", as
    #: they were captured; "encoded" without loss; "difference", de-duplicated: its own object has the bytes that are
    #: new, and its ``sources`` the others. "unknown": as ``readable`` says. One history may have all of these forms.
    form: str
    #: Bytes that it takes in the data files by itself, in whole blocks; 0 where it is not readable.
    stored_nbytes: int
    #: Of a difference: the objects of earlier checkpoints that a restore may read, and their bytes in the data files,
    #: in whole blocks. Other checkpoints may refer to the same objects, which stay as long as one of them does.
    sources: int = 0
    source_nbytes: int = 0


@dataclass(frozen=True)
class Region:
    """A region of a checkpoint."""

    #: Its name, or its number in a sequence.
    name: str | int
    #: The dtype, as `velocpy.arrays.dtype_from_text` reads it.
    dtype: str
    shape: tuple[int, ...]
    #: Where it begins in the checkpoint's slot.
    offset: int
    nbytes: int
    #: XXH3-64 of its leaves, in hexadecimal digits; None without checksums.
    checksum: str | None


@dataclass(frozen=True)
class Extent:
    """A piece of a data file."""

    file: str
    offset: int
    nbytes: int


@dataclass(frozen=True)
class Checkpoint:
    """All there is to know of a checkpoint without reading it."""

    history: str
    key: Key
    serial: int
    #: As `Entry.captured`.
    captured: datetime | None
    nbytes: int
    slot_nbytes: int
    #: As `Entry.form`, `Entry.stored_nbytes`, `Entry.sources` and `Entry.source_nbytes`.
    form: str
    stored_nbytes: int
    sources: int
    source_nbytes: int
    meta_nbytes: int
    regions: tuple[Region, ...]
    #: Where its bytes lie, piece behind piece: those of its slot or, where it is encoded, those of its containers;
    #: of a difference, those of its own object, without its sources.
    extents: tuple[Extent, ...]
    #: Of a tree: how its regions and values are put together, as docs/format.md has it; None where regions are flat.
    structure: list[Any] | None = None
    #: What was given as ``meta``; None without, and where its ``meta_nbytes`` bytes are no JSON. The values of a tree
    #: are among these bytes, but not here.
    meta: Any = None


@dataclass(frozen=True)
class Fault:
    """Damage, and how far it reaches."""

    #: "identity": one of the two copies of what makes the directory a store; "head": the beginning of a data file,
    #: which says that the file is this store's; "index": what a data file says of the checkpoints in it, so that a
    #: lost catalog can be rebuilt, lacks some of them; "foreign": a data file of another store, or of another number,
    #: stands in the place of one: move it away; "catalog": a part of it; of a checkpoint's bytes "missing",
    #: "unreadable", or "changed"; "description": what the catalog says of its regions, or its meta, cannot be so.
    kind: str
    file: str
    #: Where it is in the file.
    offset: int
    #: 0: it cannot be told.
    nbytes: int
    #: Nothing that was acknowledged is lost.
    harmless: bool
    #: Read again, the bytes were right: suspect memory, cable or controller rather than the medium.
    fleeting: bool
    why: str
    #: The checkpoint concerned; None with those of identity and catalog, as are the next ones.
    history: str | None = None
    key: Key | None = None
    serial: int | None = None
    #: Name of the region; its number in a sequence, or where the description cannot be read. None, as are the next
    #: ones, with a "description".
    region: str | int | None = None
    region_number: int | None = None
    #: Which bytes of the region.
    region_offset: int | None = None
    region_nbytes: int | None = None

    def __str__(self) -> str:
        if self.history is None:
            return f"{self.kind}: {self.file or 'catalog'}: {self.why}"
        if self.region is None:
            return f"{self.kind}: history {self.history!r}, key {self.key!r}: {self.why}"
        end = (self.region_offset or 0) + (self.region_nbytes or 0)
        return (
            f"{self.kind}: history {self.history!r}, key {self.key!r}, region {self.region!r}, "
            f"bytes {self.region_offset} to {end} ({self.file}, byte {self.offset} on): {self.why}"
        )


@dataclass(frozen=True)
class Unused:
    """A data file in which nothing lies that counts: no damage. It goes when the store is opened or collected."""

    file: str
    nbytes: int


@dataclass(frozen=True)
class Report:
    """What `check` has found."""

    checkpoints: int
    nbytes: int
    #: How many checkpoints, and bytes, were compared with their checksums.
    read: int
    read_nbytes: int
    #: How many of those have none: they can be read, and that is all that is known.
    without_checksums: int
    #: How many are stored in a way that this version does not know, and were not looked at.
    unknown: int
    #: How many were dropped or replaced meanwhile.
    superseded: int
    #: How many have faults.
    damaged: int
    faults: tuple[Fault, ...]
    unused: tuple[Unused, ...]
    #: Bytes at the end of the catalog that are no whole batch: what a killed writer had not acknowledged. Damage to the
    #: last batch that it did acknowledge looks the same.
    torn_nbytes: int
    #: That of the random choice, with a share.
    seed: int | None = None

    @property
    def sound(self) -> bool:
        """Whether there are no faults."""
        return not self.faults


@dataclass(frozen=True)
class Collected:
    """What `collect` gave back, or would."""

    #: Checkpoints that their history's retention does not keep.
    dropped: int
    dropped_nbytes: int
    #: Data files that were removed.
    removed_files: int
    #: Bytes of data files that the file system has back.
    file_nbytes: int
    #: By how many bytes the catalog became shorter.
    catalog_nbytes: int


@dataclass(frozen=True)
class Repaired:
    """What `repair` has done."""

    #: Copies of the identity were written again.
    identity: bool
    #: The catalog was written anew from what is left of it.
    catalog: bool
    #: Damaged checkpoints that were dropped: read once more, their bytes were still missing or changed.
    dropped: int
    #: Of those that were to be dropped, how many stay: their bytes were right, or could not be read.
    spared: int
    #: Heads of data files that were written again.
    heads: int = 0
    #: Indexes of data files that were written again: they lacked checkpoints that lie there.
    indexes: int = 0
    #: With `rebuild`, checkpoints that were found in the data files alone, and are in the catalog now.
    found: int = 0
    #: ... that were left out, as their bytes are missing or others than were written.
    changed: int = 0
    #: ... that were left out, as they have no checksums, and nothing says whether their bytes are theirs.
    unproven: int = 0


_view_numbers = itertools.count(1 + secrets.randbits(48))  # another copy of this module has others

Self = TypeVar("Self", bound="Opened")


class Opened:
    """What the core has opened, under a number that is chosen before: so an interrupted caller closes it too."""

    _opens, _closes = "open", "close"
    _open = False

    def __init__(self, **request: Any) -> None:
        self._reserve()
        self.open(**request)

    def _reserve(self) -> None:
        self._number = next(_view_numbers)
        self._open = True

    @classmethod
    def reserved(cls: type[Self]) -> Self:
        """A number for what is opened later, by `open`, or not at all."""
        self = cls.__new__(cls)
        self._reserve()
        return self

    def open(self, **request: Any) -> dict[str, Any]:
        """Opens it, and returns what the core says of it."""
        #: What the core has said when it opened it.
        self.about, _ = self.ask(self._opens, **request)
        return self.about

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._open:
            with suppress(Exception):  # a destructor cannot raise; after a fork the core is the parent's
                self.close()

    def ask(self, op: str, buffer: Any = None, /, **request: Any) -> tuple[dict[str, Any], bytes]:
        """One question about it. ``buffer`` is what some questions read, or fill."""
        return ask(buffer, op=op, view=self._number, **request)

    def close(self) -> None:
        """Closes it; nothing if it is closed."""
        self.ask(self._closes)
        self._open = False


class View(Opened):
    """A store that is being looked into, as it was when it was opened. Use it with `with`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path=bytes_of_path(path))

    def pages(self, op: str, **request: Any) -> Iterator[bytes]:
        """The bodies of an answer, page by page."""
        following: int | None = 0
        while following is not None:
            head, body = self.ask(op, **{"from": following}, **request)
            following = head["next"]
            yield body

    def lines(self, op: str, **request: Any) -> Iterator[dict[str, Any]]:
        """The objects that an answer consists of."""
        for page in self.pages(op, **request):
            for line in page.splitlines():
                if line:
                    yield json.loads(line)

    def whole(self, op: str, **request: Any) -> bytes:
        """The bytes of an answer."""
        return b"".join(self.pages(op, **request))


def ask(buffer: Any = None, /, **request: Any) -> tuple[dict[str, Any], bytes]:
    """A question to the core, and its answer: what its first line says, and what stands behind."""
    knobs.load_core()
    head, _, body = _core.inspect(json.dumps(request), buffer).partition(b"\n")
    return json.loads(head), body


def contents(path: Path) -> Contents:
    """What histories a store has.

    Raises
    ------
    NotAStore, FormatTooNew, DamagedStore, TierIOError
        A damaged catalog alone is told by ``damage``: what is left of it is listed.

    Examples
    --------
    >>> import tempfile
    >>> from velocpy import ondisk
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     ondisk.contents(directory)
    Traceback (most recent call last):
    ...
    velocpy.errors.NotAStore: there is no store in ...
    """
    with View(path) as view:
        histories = tuple(_history(facts) for facts in view.lines("histories", head="{"))
        about = view.about
    return Contents(
        os.fspath(path), about["store"], about["format"], about["segment_bytes"], about["damage"], histories
    )


def checkpoints(path: Path, history: str) -> Iterator[Entry]:
    """The checkpoints of a history, in the order in which they became durable.

    They are those of the moment of the first one; a million of them take some seconds, most of them in Python.

    Raises
    ------
    CheckpointNotFound
        When there is no such history; as `contents` otherwise.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from velocpy import ondisk
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with velocpy.open(directory, host="16MiB", disk="1GiB") as store:
    ...         for key in (3, "last"):
    ...             store.history("run").checkpoint(key, u=numpy.zeros(10)).wait("disk")
    ...     [(entry.key, entry.nbytes) for entry in ondisk.checkpoints(directory, "run")]
    [(3, 80), ('last', 80)]
    """
    with View(path) as view:
        for facts in view.lines("rows", history=bytes_of_text(history), head="{"):
            yield Entry(
                facts["history"],
                facts["key"],
                facts["bytes"],
                facts["regions"],
                facts["serial"],
                from_json(facts["captured"]),
                facts["meta_bytes"],
                facts["checksums"],
                facts["readable"],
                facts["form"],
                facts["stored_bytes"],
                facts["sources"],
                facts["source_bytes"],
            )


def describe(path: Path, history: str, key: Key) -> Checkpoint:
    """What a checkpoint consists of, and where it lies; its bytes are not read.

    Raises
    ------
    CheckpointNotFound
        When there is none; as `contents` otherwise.
    DamagedStore
        When its description is not one.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from velocpy import ondisk
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with velocpy.open(directory, host="16MiB", disk="1GiB") as store:
    ...         _ = store.history("run").checkpoint(7, u=numpy.zeros((2, 5), "f4"))
    ...     found = ondisk.describe(directory, "run", 7)
    >>> [(region.name, region.dtype, region.shape) for region in found.regions], found.structure
    ([('u', '<f4', (2, 5))], None)
    """
    with View(path) as view:
        return describe_in(view, history, key)


def describe_in(view: View, history: str, key: Key) -> Checkpoint:
    """The same of a store that is being looked into."""
    named = {"history": bytes_of_text(history), "key": bytes_of_key(key)}
    facts, _ = view.ask("row", **named)
    if not facts["readable"]:
        raise InvalidArgument(f"checkpoint {key!r} of history {history!r} is stored as later versions of velocpy do.")
    sums = _numbers(view.whole("blob", what="sums", **named))
    try:
        text = view.whole("blob", what="layout", **named)
        described = _core.regions_of(text, facts["slot_bytes"])
        structure = _structure(text)
    except (DamagedStore, InvalidArgument, RecursionError) as error:
        raise DamagedStore(
            f"checkpoint {key!r} of history {history!r} has a description that is none: {error}"
        ) from None
    spans = _numbers(view.whole("blob", what="spans", **named))
    if [number for region in described for number in region[3:5]] != spans:
        raise DamagedStore(f"checkpoint {key!r} of history {history!r} has a description that is another's.")
    regions = tuple(
        Region(*region[:5], checksum=f"{sums[i]:016x}" if facts["checksums"] else None)
        for i, region in enumerate(described)
    )
    numbers = _numbers(view.whole("blob", what="extents", **named))
    extents = tuple(
        Extent(f"data-{number:016x}", offset, nbytes)
        for number, offset, nbytes in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    )
    return Checkpoint(
        history,
        key,
        facts["serial"],
        from_json(facts["captured"]),
        facts["bytes"],
        facts["slot_bytes"],
        facts["form"],
        facts["stored_bytes"],
        facts["sources"],
        facts["source_bytes"],
        facts["meta_bytes"],
        regions,
        extents,
        structure,
        _meta_of(view, named, structure is not None) if facts["meta_bytes"] else None,
    )


def _structure(text: bytes) -> list[Any] | None:
    """The structure in a description, which the core has checked; None where it has none."""
    structure = _core.structure_of(text)
    found: list[Any] | None = None if structure is None else json.loads(structure)
    return found


def meta_of(view: View, history: str, key: Key) -> Any:
    """What a checkpoint was given as ``meta``; None where it is no JSON."""
    named = {"history": bytes_of_text(history), "key": bytes_of_key(key)}
    try:
        nested = _core.structure_of(view.whole("blob", what="layout", **named)) is not None
    except InvalidArgument:
        return None
    return _meta_of(view, named, nested)


def _meta_of(view: View, named: dict[str, Any], nested: bool) -> Any:
    """The same of a checkpoint that is a tree or not: with the meta of a tree lie its values."""
    raw = view.whole("blob", what="meta", **named)
    try:
        found = json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    if not nested:
        return found
    return found[1] if isinstance(found, list) and len(found) == 2 else None


def check(
    path: Path,
    *,
    read_data: bool = False,
    subset: str | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Looks for damage, and changes nothing.

    Identity, catalog and the places and files of all checkpoints are always looked at. Beside a process that writes, it
    finds no more damage than there is. It takes 256 bytes of memory for each checkpoint, and 4 MiB for each of up to
    eight readers. Ctrl-C ends it.

    Parameters
    ----------
    path
        The store.
    read_data
        Whether the bytes of all checkpoints are read and compared with their checksums.
    subset
        Of which checkpoints they are, instead: "n/t", the n-th of t parts, so that t checks read everything; or "x%",
        chosen at random.
    seed
        Of the random choice; None: another one each time.
    progress
        Called every now and then with the bytes read, and those to be read.

    Raises
    ------
    NotAStore, FormatTooNew, DamagedStore, TierIOError
        When nothing can be told.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from velocpy import ondisk
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with velocpy.open(directory, host="16MiB", disk="1GiB") as store:
    ...         _ = store.history("run").checkpoint(0, u=numpy.zeros(10))
    ...     report = ondisk.check(directory, read_data=True)
    >>> report.read, report.read_nbytes, report.faults
    (1, 80, ())
    """
    scope, seed = _scope(read_data, subset, seed)
    with View(path) as view:
        facts, _ = view.ask("check", **scope)
        while not facts["done"]:
            facts, _ = view.ask("step", milliseconds=100)
            if progress is not None:
                progress(facts["read_bytes"], facts["chosen_bytes"])
        named = _Names(view)
        faults = tuple(named.fault(fault) for fault in view.lines("findings", what="faults"))
        unused = tuple(Unused(each["file"], each["bytes"]) for each in view.lines("findings", what="unused"))
    return Report(
        facts["checkpoints"],
        facts["bytes"],
        facts["chosen"],
        facts["read_bytes"],
        facts["without_checksums"],
        facts["unknown"],
        facts["superseded"],
        facts["damaged"],
        faults,
        unused,
        facts["torn_bytes"],
        seed,
    )


def collect(path: Path, *, dry_run: bool = False, age: float = 3600.0) -> Collected:
    """Gives room back that nothing needs.

    Checkpoints go that the retention of their history does not keep; data files go in which nothing lies; of the others
    the file system gets back what lies between checkpoints; the catalog is written anew. Ended at any moment, it has
    done less, and nothing is lost.

    Parameters
    ----------
    path
        The store.
    dry_run
        Say what would be given back, and change nothing.
    age
        Of an archive in a bucket: how many seconds old an object has to be. Readers may still have what was replaced
        a short time ago, and pushes what is not named yet.

    Raises
    ------
    StoreLocked
        While a process writes to the store; of an archive in a bucket, where another one has changed it meanwhile.
    DamagedStore
        `repair` comes first.
    NotAStore, FormatTooNew, TierIOError
        As `contents`.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from velocpy import ondisk
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with velocpy.open(directory, host="16MiB", disk="1GiB") as store:
    ...         for i in range(4):
    ...             store.history("run").checkpoint(i, u=numpy.ones(500_000)).wait("disk")
    ...         store.history("run").drop(1)
    ...     foreseen = ondisk.collect(directory, dry_run=True)
    ...     ondisk.collect(directory).file_nbytes > 3_900_000, foreseen.dropped
    (True, 0)
    """
    facts, _ = ask(op="collect", path=bytes_of_path(path), dry=bool(dry_run), age=float(age))
    return Collected(
        facts["dropped"], facts["dropped_bytes"], facts["removed_files"], facts["file_bytes"], facts["catalog_bytes"]
    )


def repair(path: Path, *, drop: Iterable[Fault] = (), rebuild: bool = False, keep_unproven: bool = False) -> Repaired:
    """Puts a damaged store in order: identity, heads and indexes of data files, a catalog with a part missing.

    Checkpoints stay, damaged ones too, but for those given: some regions of them may be restorable. Those given are
    read once more, and dropped if their bytes are missing or changed. What is right then stays, and so does what only
    cannot be read: the medium may give it back.

    Parameters
    ----------
    path
        The store.
    drop
        Faults that `check` has found: the checkpoints that they are in are to be dropped, unless written again since.
    rebuild
        Where the catalog is damaged or missing, take from the data files what it does not say any more: all their
        bytes are read and compared with their checksums. Of a key the newest version counts whose bytes are right. A
        checkpoint that was dropped comes back where nothing was written over it; retentions do not. Where no copy of
        the identity is right, it is taken from the data files too. Stores whose data files have no index (those that
        an older version made) have nothing to be rebuilt from.
    keep_unproven
        With `rebuild`: also checkpoints without checksums, of which nothing says whether their bytes are theirs.

    Raises
    ------
    StoreLocked
        While a process writes to the store.
    DamagedStore
        All copies of the identity are damaged, and `rebuild` was not asked for or finds none; with `rebuild` also
        where there are data files of several stores and no right copy.
    ValueError
        `keep_unproven` without `rebuild`.
    NotAStore, FormatTooNew, TierIOError
        As `contents`.

    Examples
    --------
    >>> import numpy, tempfile, velocpy
    >>> from pathlib import Path
    >>> from velocpy import ondisk
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with velocpy.open(directory, host="16MiB", disk="1GiB") as store:
    ...         _ = store.history("run").checkpoint(0, u=numpy.zeros(10))
    ...     ondisk.repair(directory, drop=ondisk.check(directory, read_data=True).faults)
    Repaired(identity=False, catalog=False, dropped=0, spared=0, heads=0, indexes=0, found=0, changed=0, unproven=0)

    Without its catalog, a store is found again in its data files:

    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with velocpy.open(directory, host="16MiB", disk="1GiB") as store:
    ...         _ = store.history("run").checkpoint(0, u=numpy.arange(10.0))
    ...     for file in Path(directory).glob("catalog-*"):
    ...         file.unlink()
    ...     done = ondisk.repair(directory, rebuild=True)
    ...     with velocpy.open(directory, mode="r") as store:
    ...         done.found, float(store.history("run").restore(0)["u"].sum())
    (1, 45.0)
    """
    if keep_unproven and not rebuild:
        raise ValueError("keep_unproven wants rebuild.")
    versions = {(fault.history, fault.key, fault.serial) for fault in drop if fault.history is not None}
    victims = [
        {"history": bytes_of_text(history), "key": bytes_of_key(key), "serial": serial}
        for history, key, serial in versions
        if history is not None and key is not None
    ]
    facts, _ = ask(
        op="repair", path=bytes_of_path(path), victims=victims, rebuild=bool(rebuild), unproven=bool(keep_unproven)
    )
    return Repaired(**facts)


class _Names:
    """The names of regions, asked for once for each checkpoint."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._of: tuple[Any, tuple[Region, ...]] = (None, ())

    def fault(self, facts: dict[str, Any]) -> Fault:
        if "key" not in facts:
            return Fault(*(facts[name] for name in ("kind", "file", "offset", "bytes", "harmless", "fleeting", "why")))
        if "region" not in facts:
            named = ("kind", "file", "offset", "bytes", "harmless", "fleeting", "why", "history", "key", "serial")
            return Fault(*(facts[name] for name in named))
        number = facts["region"]
        regions = self._regions(facts["history"], facts["key"])
        return Fault(
            facts["kind"],
            facts["file"],
            facts["offset"],
            facts["bytes"],
            facts["harmless"],
            facts["fleeting"],
            facts["why"],
            facts["history"],
            facts["key"],
            facts["serial"],
            regions[number].name if number < len(regions) else number,
            number,
            facts["region_offset"],
            facts["region_bytes"],
        )

    def _regions(self, history: str, key: Key) -> tuple[Region, ...]:
        if self._of[0] != (history, key):
            try:
                regions = describe_in(self._view, history, key).regions
            except (DamagedStore, CheckpointNotFound):
                regions = ()
            self._of = ((history, key), regions)
        return self._of[1]


def _history(facts: dict[str, Any]) -> HistoryEntry:
    rule = facts["retention"]
    retention = rule and Retention(**rule | {"keys": tuple(rule["keys"]), "by": tuple(rule["by"])})
    latest = from_json(facts["latest"])
    return HistoryEntry(
        facts["history"],
        facts["checkpoints"],
        facts["bytes"],
        facts["kept_bytes"],
        facts["last_serial"],
        latest,
        retention,
    )


def is_subset(subset: str) -> bool:
    """Whether `check` takes it.

    Examples
    --------
    >>> from velocpy.ondisk import is_subset
    >>> is_subset("2/3"), is_subset("5%"), is_subset("4/3")
    (True, True, False)
    """
    try:
        _scope(False, subset, 0)
    except InvalidArgument:
        return False
    return True


def _scope(read_data: bool, subset: str | None, seed: int | None) -> tuple[dict[str, Any], int | None]:
    if subset is None:
        return {"data": bool(read_data)}, None
    if read_data:
        raise InvalidArgument("read_data and subset exclude each other.")
    part = re.fullmatch(r"\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*", subset)
    if part and 1 <= int(part[1]) <= int(part[2]):
        return {"part": int(part[1]) - 1, "parts": int(part[2])}, None
    share = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*", subset)
    if share and 0 < float(share[1]) <= 100:
        seed = secrets.randbits(32) if seed is None else int(seed)
        if not 0 <= seed < 1 << 64:
            raise InvalidArgument(f"seed is {seed}; give a number from 0 to 2^64 - 1.")
        return {"share": float(share[1]) / 100, "seed": seed}, seed
    raise InvalidArgument(
        f'subset is {subset!r}; give "n/t" with n from 1 to t, or "x%" with x above 0 and at most 100.'
    )


def _numbers(text: bytes) -> list[int]:
    return memoryview(text).cast("Q").tolist()


def bytes_of_key(key: Key) -> dict[str, Any]:
    """A key as the core is told it."""
    if isinstance(key, str):
        return {"text": bytes_of_text(key)}
    number = int(key)
    if not -(1 << 63) <= number < 1 << 63:
        raise InvalidArgument(f"key is {number}, which has more than 64 bits.")
    return {"number": number}


def bytes_of_text(text: str) -> str:
    """The bytes of a name as the core is told them."""
    if not isinstance(text, str):
        raise InvalidArgument(f"{text!r} is no text.")
    return text.encode("utf-8", "surrogatepass").hex()


def bytes_of_path(path: Path | str) -> str:
    """The bytes of a path as the core is told them. Of an archive in a bucket, the core can reach it afterwards."""
    if os.fspath(path)[:4] in ("s3:/", b"s3:/"):
        from .archive import buckets  # which brings much that most stores do without

        if buckets.is_place(path):
            path = buckets.require_place(str(path))
            buckets.reach()
    return os.fsencode(path).hex()
