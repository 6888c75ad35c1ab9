"""Stores: open velocpy instances, with their tiers and background work."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import logging
import os
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from . import _core, callers, html, knobs, paths, records
from .budget import device_budgets, new_disk_budget, new_host_budget
from .checks import require_choice, require_seconds, require_whole
from .choices import Compressor, DeviceBudgets, Digest, Picture, Reduction, Size, TierName
from .errors import (
    TIERS,
    BelatedCorruption,
    InvalidArgument,
    InvalidType,
    StoreClosed,
    StoreLocked,
    TierFull,
    TierIOError,
    TierUnavailable,
    VelocError,
    WaitTimeout,
)
from .figures import Cost, Stats
from .history import Checkpoints
from .interfaces import Archiving
from .quantity import sized
from .ticket import NO_TIER, Ticket, tier_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .backup import BackedUp
    from .live.watch import Watch
    from .schedule import Course, Observed, Profiled, Schedule

log = logging.getLogger("velocpy")
log.addHandler(logging.NullHandler())

_open_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_turns = itertools.count()

#: Methods of reduction that remove no duplicates, and the bounds of a chunk of the others.
_WITHOUT_CHUNKS = ("raw", "codec", "reference")
#: Those whose checkpoints no compressor gets: "auto" is to cost no more time than moving them as they are, and there is
#: no section with a reference.
_WITHOUT_COMPRESSOR = ("raw", "auto", "reference")
_LEAST_CHUNK, _MOST_CHUNK = 32, 4096
#: Seconds between two renewals of a live view, at least: a browser shows no more.
_SHORTEST = 0.02


class History(Checkpoints):
    """A named sequence of checkpoints of a `Store`; `Store.history` makes it.

    Any thread may call anything at any time. A key is an int (64 bits) or a str (any text).

    Examples
    --------
    >>> import numpy, velocpy
    >>> with velocpy.open(host="16MiB") as store:
    ...     forward = store.history("forward")
    ...     for i in range(3):
    ...         _ = forward.checkpoint(i, u=numpy.full(2, i))
    ...     forward.hint(reversed(range(3)))
    ...     for i, state in forward.restore_iter(last=True):
    ...         print(i, state["u"])
    2 [2 2]
    1 [1 1]
    0 [0 0]
    """

    __slots__ = ()

    _store: Store

    @property
    def store(self) -> Store:
        """The store it belongs to."""
        return self._store

    @property
    def course(self) -> Course | None:
        """What its schedule has come to (`Store.history` with ``schedule``); None: it has none."""
        from . import schedule as schedules

        return schedules.course(self._core.course())


class Store:
    """One open velocpy instance: its tiers, their budgets, the background work. `velocpy.open` makes it.

    Any number of them may be open at once. Closed by `close`, by ``with``, or when Python exits. One that is collected
    while it is open is closed too, but waits for nothing, and gives a ResourceWarning.
    """

    _closed = True  # until it is open
    _archiving: Archiving | None = None  # what brings its checkpoints to an archive

    def __init__(self, config: dict[str, Any], lookahead: int) -> None:
        if knobs.marks_ranges():
            _mark_ranges()
        knobs.load_core()
        self._opened_at = callers.place()
        self._unflushed: VelocError | None = None  # what close has to tell when it is done
        self._config = config
        self._host_most: int | None = config["host"]
        self._debug = bool(config["debug"])
        self._lookahead = lookahead
        self._places = tuple(1 + int(budget["ordinal"]) for budget in config.get("devices", ()))
        self._histories: dict[str, History] = {}
        self._profiles: dict[str, Path] = {}  # of schedules, by history: to be written when the store is closed
        self._observed: Observed = {}  # what goes there
        self._turn = next(_turns)
        self._directory = paths.identity_of(config["path"]) if config["durable"] else None
        self._recorded: dict[str, int] = {}  # counters at the last record of what moved
        self._watches: list[Watch] = []
        self._published = False
        began = time.perf_counter()
        try:
            self._core = _core.Store(json.dumps(config))
        except StoreLocked as error:
            raise _located(error, self._directory) from None
        self._closed = False
        _open_stores.add(self)
        _drain_log()
        if records.wanted():
            records.opened(self, "opened", time.perf_counter() - began)
        if knobs.publishes():
            try:
                self.publish()
            except OSError as error:  # what watches a store never fails it
                log.warning("%s is not published, as VELOCPY_WATCH asks: %s", repr(self), str(error))

    def history(
        self,
        name: str,
        *,
        reduce: Reduction | None = None,
        chunk: int | None = None,
        digest: Digest | None = None,
        compress: Compressor | None = None,
        schedule: Schedule | Profiled | None = None,
    ) -> History:
        """The history of this name, made when it is new. Any text is a name.

        Parameters
        ----------
        reduce
            How the checkpoints that are written from now on are reduced on their way down. In the fastest tier they
            stay as they are, so `History.checkpoint` waits for no encoder.

            - ``"raw"``, as a history begins: not at all.
            - ``"codec"``: they are encoded without loss, region by region, on the way to the disk in the modes that a
              sample of their bytes recommends. What does not become at least 3 % smaller goes as it is. Checkpoints of
              a CUDA device are encoded by the device on the way to the host, and decoded by it on the way back: fewer
              bytes cross the link, and the host tier holds more of them. At most a twentieth of the device's tier, and
              at most 86 MiB, is used for that; in a tier of less than 67 MiB they go to the host as they are.
            - ``"auto"``: as ``"codec"``, but the times of flushes and loads are compared with those of checkpoints that
              go as they are, and the way that takes longer is tried seldom; a new history tries all of them first.
              Where less than three quarters of their bytes are new, checkpoints of host memory are also de-duplicated,
              as by ``"runs"``, and those of a device as by ``"tree"``, or encoded as by ``"reference"``.
            - ``"basic"``, ``"list"``, ``"tree"``, ``"runs"``: they are de-duplicated in chunks (Tan et al., ICPP'23): a
              checkpoint takes the bytes that no earlier one of the history has at the disk, encoded as by ``"codec"``,
              and metadata. The metadata is a bitmap of the chunks that changed in place, an entry for each new or
              shifted chunk, for each subtree of these, or for each run of these, or a list of all runs where that is
              shorter. ``"full"`` stores every checkpoint whole, for comparison. By ``"basic"``, ``"list"`` and
              ``"tree"``, with the digest ``"xxh3"`` and no ``compress``, a CUDA device de-duplicates its checkpoints on
              the way to the host as well, which has what is new in each then, and not encoded. A twentieth of the
              device's tier is used for that; where it is little, chunks are longer there. A tier of less than 64 MiB
              leaves it to the host.
            - ``"reference"``: they are encoded as what has changed since an earlier one, bit by bit, for values that
              all move a little, such as the weights of a model that is fully trained. The earlier one is a checkpoint
              with the same regions that was encoded alone; a new one takes its place when what has changed becomes
              too much. A restore reads two objects at most. On the way from host memory to the disk it is read from
              there. A CUDA device encodes its checkpoints on the way to the host, with one that it keeps, which takes
              at most a quarter of its cache; from there they go to the disk as they are. The copy of that one stays on
              the host or the disk while others need it. A device's tier of less than 67 MiB leaves it to the host.
            - None: as before.

            It holds for this store until it is closed, and is stored nowhere: a store that is opened later restores
            whatever is there. Checkpoints of up to 64 KiB stay as they are, and so do those captured with
            ``copy=False``, which go to the disk from where they are.
            `stats` tells what it saved (``["histories"][name]["reduction"]``), docs/reduction-format.md and
            docs/deduplication-format.md how the bytes look.

            The bytes that a de-duplicated checkpoint shares with others stay on the disk until the last checkpoint
            that needs them is dropped. Each refers to the objects of at most 64 others: one that would refer to more
            stores some of their bytes anew, or all of its own. Without a host tier, a history is encoded only, as by
            ``"codec"``; and so is a checkpoint whose digests, 16 bytes a chunk or 32 for ``"tree"``, need more than a
            quarter of the host tier; a warning of that is logged once. The first checkpoint after a durable store was
            opened again refers to the last one there with the same method, chunk, digest and compressor, whose bytes
            are read and decoded in the background; if that cannot be, it is stored whole.
        chunk
            Of de-duplication, by ``"auto"`` too: bytes of a chunk, a power of two from 32 to 4096. None: 1024.
        digest
            Of de-duplication: the hash function of the chunks. None: ``"xxh3"``.
        compress
            Of ``"codec"``, and of what de-duplication finds new: a compressor of the host in addition. It gets the byte
            planes of 256 KiB at a time, and counts where it makes fewer bytes than the codec. Where it never does, the
            disk has a part in three thousand more than without it. ``"zstd"`` makes the fewest, in the most time.
            ``"huff0"`` has Huffman codes alone, which is what pays for the exponents of floats, and ``"s2"`` is the
            fastest, and pays where bytes repeat. It works on the way to the disk: checkpoints of a CUDA device then are
            as they are in the host tier. None: the codec alone.
        schedule
            Of ``"codec"`` without a compressor: which checkpoints of a CUDA device it encodes, and which of them by one
            call. A path is that of a profile, the file in which one run of an application tells the next what to
            expect; `velocpy.schedule.Schedule` says more. Without a device it does nothing. None: all that become
            smaller, with those that are queued beside them.

        Raises
        ------
        InvalidArgument
            Of a method, digest or compressor that there is not, of a chunk that is no such power of two, of a chunk or
            digest for a method without de-duplication, of a compressor for ``"raw"``, ``"auto"`` or ``"reference"``, or
            of a schedule for anything but ``"codec"`` alone, or from a file that is no profile.
        ReadOnlyStore
            Of a method, if the store is open for reading only.

        Examples
        --------
        >>> import numpy as np, velocpy
        >>> with velocpy.open(host="64MiB", disk="256MiB") as store:
        ...     run = store.history("forward", reduce="codec")
        ...     _ = run.checkpoint(0, u=np.zeros(1 << 20)).wait("disk")
        ...     saved = store.stats()["histories"]["forward"]["reduction"]
        ...     float(run.restore(0)["u"].sum()), saved["encoded_from"], saved["encoded_to"] < 65536
        (0.0, 8388608, True)

        Counts, whose low bytes differ and whose high bytes repeat, with a compressor and without:

        >>> counts = np.random.default_rng(0).poisson(3, 1 << 18)
        >>> with velocpy.open(host="64MiB", disk="256MiB") as store:
        ...     for name, compressor in (("alone", None), ("zstd", "zstd")):
        ...         run = store.history(name, reduce="codec", compress=compressor)
        ...         _ = run.checkpoint(0, counts=counts).wait("disk")
        ...         assert (run.restore(0)["counts"] == counts).all()
        ...     saved = {name: of["reduction"]["encoded_to"] for name, of in store.stats()["histories"].items()}
        ...     saved["zstd"] < 0.8 * saved["alone"]
        True

        Of each of these checkpoints the disk gets one chunk:

        >>> state = np.random.default_rng(0).random(1 << 17)
        >>> with velocpy.open(host="64MiB", disk="256MiB") as store:
        ...     run = store.history("forward", reduce="tree", chunk=512)
        ...     for step in range(10):
        ...         state[step] = 0
        ...         _ = run.checkpoint(step, u=state).wait("disk")
        ...     saved = store.stats()["histories"]["forward"]["reduction"]
        ...     saved["encoded_from"] / saved["encoded_to"] > 9
        True

        Weights that all move a little take what has changed:

        >>> weights, random = np.random.default_rng(0).random(1 << 17, np.float32), np.random.default_rng(1)
        >>> with velocpy.open(host="64MiB", disk="256MiB") as store:
        ...     run = store.history("forward", reduce="reference")
        ...     for step in range(4):
        ...         _ = run.checkpoint(step, weights=weights).wait("disk")
        ...         weights += 1e-5 * random.standard_normal(weights.size, np.float32)
        ...     saved = store.stats()["histories"]["forward"]["reduction"]
        ...     saved["differences"], saved["encoded_to"] < 0.7 * saved["encoded_from"]
        (3, True)
        """
        wanted = _schedule_of(schedule)
        told = _reduction(reduce, chunk, digest, compress, wanted)
        history = self._named(name)
        if told is not None:
            history._core.reduce(told)
            self._profiles.pop(name, None)
            if wanted is not None and wanted.profile is not None and not Path(wanted.profile).exists():
                self._profiles[name] = Path(wanted.profile).absolute()
        return history

    def _named(self, name: str) -> History:
        known = self._histories.get(name) if isinstance(name, str) else None
        if known is not None:
            return known
        core = self._core
        made = self._histories.setdefault(
            name, History(self, name)
        )  # one step: no lock that an interruption could find
        if self._core is not core:  # refreshed meanwhile, and it may have been made before
            made._renew()
        return made

    @property
    def histories(self) -> tuple[History, ...]:
        """The histories asked for so far, and those that a durable store had when it was opened."""
        if not self._closed and self._config["durable"]:
            for name in json.loads(self._core.stats())["histories"]:
                self.history(name)
        return tuple(self._histories.values())

    @property
    def path(self) -> Path | None:
        """The directory of its disk tier, by the name that it was opened with, absolute; None without one."""
        path = self._config["path"]
        return None if path is None or path.startswith("s3://") else Path(path)

    @property
    def durable(self) -> bool:
        """Whether its disk tier outlives it."""
        return bool(self._config["durable"])

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def wait(
        self,
        tier: TierName | None = None,
        timeout: float | None = None,
        *,
        progress: bool | Callable[[int, int], Any] = False,
    ) -> None:
        """Waits until everything is captured, or durable in ``tier``, and what restores gave has been verified.

        What is dropped meanwhile, or replaced by another thread, is not waited for: of a key that is replaced all the
        time nothing need be durable.

        Parameters
        ----------
        timeout
            Seconds; None: as long as it takes.
        progress
            Of a wait for a tier: a function that is called ten times a second with the bytes that have got there and
            the bytes in all, or True for a bar on standard error, by rich or tqdm. A wait of less than a tenth of a
            second calls and shows nothing.

        Raises
        ------
        WaitTimeout
            After ``timeout`` seconds.
        BelatedCorruption
            Of an earlier restore to a device.
        RankFailed, StoreLocked, TierFull, TierIOError
            In "archive": by what the latest push has failed. The next one goes on by itself, unless a rank has gone.
        velocpy.extra.MissingLibrary
            A bar is to be shown, and there is neither rich nor tqdm. It is an ImportError too.

        Examples
        --------
        >>> import numpy, velocpy
        >>> with velocpy.open(host="16MiB", disk="64MiB") as store:
        ...     _ = store.history("run").checkpoint(0, u=numpy.zeros(100))
        ...     store.wait("disk", progress=lambda done, total: None)
        """
        number = tier_number(tier)
        try:
            if tier == "archive" and self._archiving is not None:
                self._wait_for_archive(self._archiving, timeout, progress)
            elif progress is False:
                self._core.wait(number, timeout)
            else:
                self._wait_and_tell(number, timeout, progress)
        except VelocError as error:
            self._name_call(error, number)
            raise
        _drain_log()
        if records.wanted():
            records.moved(self)

    @staticmethod
    def _wait_for_archive(archiving: Archiving, timeout: float | None, progress: Any) -> None:
        if progress is not False:
            raise InvalidArgument("progress= is that of bytes on their way to a tier of this process, not the archive.")
        archiving.wait(timeout)

    def _wait_and_tell(self, tier: int, timeout: float | None, progress: bool | Callable[[int, int], Any]) -> None:
        from .progress import require_progress, waiting

        if tier == NO_TIER:
            raise InvalidArgument("progress= is that of bytes on their way to a tier: name it, as in wait('disk').")
        told = require_progress(progress)
        waiting(lambda seconds: self._core.wait(tier, seconds), self.stats, tier, timeout, told)

    def _name_call(self, error: VelocError, tier: int) -> None:
        """Lets an error of a wait tell the call that it is about, where that is known: with ``debug``."""
        for history in list(self._histories.values()) if self._debug else ():
            history._name_call(error)
            if history._name_failed(error, tier):
                break

    def resize(
        self,
        *,
        device: DeviceBudgets | None = None,
        host: Size | None = None,
        disk: Size | None = None,
        timeout: float | None = None,
    ) -> int:
        """Gives tiers other budgets, and the room beyond them back to the application and to the system.

        New checkpoints keep to the new budgets at once, and nothing of those that the store has is lost. What lies
        beyond a budget goes to the tier below, unless a tier below has it; then its memory is given back: that of a
        device as soon as the device has done what is queued there, that of the host after it has been unpinned. What
        leases show stays as long as they live, and so does what no tier below has room for: that memory follows when
        they let it go, without another call. The disk tier keeps what lies there; files are made smaller or removed,
        and take nothing new before less than the budget is in use.

        Parameters
        ----------
        device
            A size, which may be 0, or a fraction of what would be free without the store's own memory; with several
            devices a mapping of devices to such budgets, of which some may be left out. A budget can become larger
            again, up to what the store was opened with; memory is then taken as captures need it. None: as it is.
        host
            A size as `velocpy.open` takes it, which may be 0; a share is one of what would be free without the store's
            own memory. At most what the store was opened with, since its addresses were reserved then: open it with
            the largest budget that it may ever have, and make it smaller at once. None: as it is.
        disk
            A size as `velocpy.open` takes it, which may be 0; a share is one of what would be free without the store's
            own checkpoints. It can become larger than the store was opened with. None: as it is.
        timeout
            Seconds to wait for the memory; None: as long as it takes.

        Returns
        -------
        int
            What the tiers named still have, in bytes: more than their budgets when leases or full tiers below hold
            some.

        Raises
        ------
        TierFull
            ``host`` is in force, but checkpoints that exist nowhere else stay beyond it, as no tier below takes them.
            All of them can be restored. Drop some, or give ``disk`` a larger budget and resize ``host`` again.
        InvalidArgument, InvalidBudget
            A budget is no size, or more than the tier can have; the message says the most. No budget has changed.
        TierUnavailable
            The store was opened without the tier. No budget has changed.
        WaitTimeout
            When the memory was not free in time; it is given back all the same.

        Examples
        --------
        Make room on the GPU when an allocation fails, and try again::

            try:
                y = model(x)
            except torch.OutOfMemoryError:
                store.resize(device="1GiB")
                y = model(x)

        Give memory of the host back while something else needs it:

        >>> import numpy, velocpy
        >>> with velocpy.open(host="16MiB", disk="64MiB") as store:
        ...     history = store.history("forward")
        ...     for i in range(12):
        ...         ticket = history.checkpoint(i, u=numpy.full(1 << 17, i))  # 1 MiB
        ...     print(store.resize(host="4MiB") <= 4 << 20, store.stats()["tiers"]["host"]["resident_bytes"] <= 4 << 20)
        ...     print(history.restore(3)["u"][0])
        True True
        3

        A store has no more than the tiers that it was opened with:

        >>> with velocpy.open(host="1MiB") as store:
        ...     try:
        ...         store.resize(device=0)
        ...     except velocpy.errors.TierUnavailable as error:
        ...         print(error)
        the store has no device tier; open it with device=.
        """
        self._require_open()
        budgets = self._new_budgets(device, host, disk)
        if not budgets:
            raise InvalidArgument('resize changes nothing: name a tier, as in resize(host="4GiB").')
        try:
            left = self._core.resize(json.dumps(budgets), timeout)
        except (TierFull, WaitTimeout):  # it is in force all the same
            self._note_budgets(budgets)
            raise
        self._note_budgets(budgets)
        _drain_log()
        if records.wanted():
            log.debug("%s was resized, and %s has %s", repr(self), " and ".join(budgets), sized(left))
        return left

    def _new_budgets(self, device: DeviceBudgets | None, host: Size | None, disk: Size | None) -> dict[str, Any]:
        """What the core is asked for: the tiers named, and their bytes."""
        budgets: dict[str, Any] = {}
        if device is not None:
            budgets["devices"] = self._new_device_budgets(device)
        sharing = knobs.node_processes()
        if host is not None:
            if self._host_most is None:
                raise TierUnavailable("the store has no host tier; open it with host=.", tier="host")
            own = self.stats()["tiers"]["host"]["resident_bytes"]
            budgets["host"] = new_host_budget(host, self._host_most, own, sharing)
        if disk is not None:
            tier = self.stats()["tiers"].get("disk")
            if tier is None:
                raise TierUnavailable("the store has no disk tier; open it with disk=.", tier="disk")
            budgets["disk"] = new_disk_budget(disk, Path(self._config["path"]), tier["used"], sharing)
        return budgets

    def _new_device_budgets(self, device: DeviceBudgets) -> list[dict[str, int | float]]:
        present = [place - 1 for place in self._places]
        if not present:
            raise TierUnavailable("the store has no device tier; open it with device=.", tier="device")
        if not isinstance(device, Mapping):
            if len(present) > 1:
                raise InvalidArgument(f"the store uses the devices {present}; name those to resize: device={{0: …}}.")
            only: dict[int, Any] = {present[0]: device}
            return device_budgets(only, least=0)
        return device_budgets(device, least=0)

    def _note_budgets(self, budgets: dict[str, Any]) -> None:
        renewed = {budget["ordinal"]: budget for budget in budgets.get("devices", ())}
        if renewed:
            self._config["devices"] = [renewed.get(old["ordinal"], old) for old in self._config["devices"]]
        self._config |= {name: budgets[name] for name in ("host", "disk") if name in budgets}

    def trim(self, timeout: float | None = None) -> int:
        """Gives memory of the host tier back to the system in which no checkpoint lies now.

        The budget stays, and the store takes memory again as captures need it. Memory that is pinned for devices stays,
        too; `resize` gives it back.

        Parameters
        ----------
        timeout
            Seconds to wait for the memory; None: as long as it takes.

        Returns
        -------
        int
            How many bytes were given back; 0 for a store without a host tier.

        Raises
        ------
        WaitTimeout
            When the memory was not free in time; it is given back all the same.

        Examples
        --------
        >>> import numpy, velocpy
        >>> with velocpy.open(host="16MiB") as store:
        ...     history = store.history("forward")
        ...     for i in range(8):
        ...         ticket = history.checkpoint(i, u=numpy.zeros(1 << 17))  # 1 MiB
        ...     history.clear()
        ...     store.trim() >= 8 << 20
        True
        """
        self._require_open()
        return self._core.resize('{"trim": true}', timeout)

    def refresh(self) -> None:
        """Lets a store that was opened with ``mode="r"`` see what is durable now, as if it was opened again.

        Histories stay the same objects, and leases stay valid. What memory had a copy of is read from disk again, plans
        are to be given again, and counters and the timeline begin anew. Loops and calls of other threads that have
        begun end with what they saw before. It takes as long as to open the store. What was seen before keeps its
        budgets until its last lease, array and loop have ended: until then there are twice the budgets, or more.

        Raises
        ------
        BelatedCorruption
            A device has found that what a restore gave is not what was captured. The next call sees what is durable.
        InvalidArgument
            The store was opened to write: it sees its own checkpoints at once. Or its directory has another name now.
        NotAStore, DamagedStore, FormatTooNew, TierIOError, StoreClosed
            It shows what it showed before.

        Examples
        --------
        >>> import numpy, tempfile, velocpy
        >>> with tempfile.TemporaryDirectory() as path:
        ...     with velocpy.open(path, host="16MiB", disk="1GiB") as writer:
        ...         run = writer.history("run")
        ...         run.checkpoint(0, u=numpy.zeros(2)).wait("disk")
        ...         with velocpy.open(path, mode="r", host="16MiB") as reader:
        ...             seen = reader.history("run")
        ...             run.checkpoint(1, u=numpy.zeros(2)).wait("disk")
        ...             before = list(seen)
        ...             reader.refresh()
        ...             print(before, list(seen))
        [0] [0, 1]
        """
        self._require_open()
        if not self._config["read_only"]:
            raise InvalidArgument(
                "the store was opened to write and sees its checkpoints at once; refresh() is for mode='r'."
            )
        self._require_same_directory("open it by its new name.")
        self.wait()  # what devices have found out about restores is told here, or never
        began = time.perf_counter()
        core = _core.Store(json.dumps(self._config | {"host": self._host_most}))
        if self._config["host"] != self._host_most:
            core.resize(json.dumps({"host": self._config["host"]}), None)
        # The former core closes itself when the last call, loop or lease that uses it has ended.
        self._core = core
        for history in list(self._histories.values()):
            history._renew()
        self._recorded = {}
        _drain_log()
        if records.wanted():
            records.opened(self, "refreshed", time.perf_counter() - began)

    def _require_same_directory(self, remedy: str) -> None:
        path = self._config["path"]
        if paths.identity_of(path) != self._directory:
            raise InvalidArgument(f"the directory of this store is not {path!r} any more; {remedy}")

    def backup(self, to: str | os.PathLike[str], timeout: float | None = None) -> BackedUp:
        """Copies a durable store into a new one, while it goes on; `velocpy.backup.backup` says what the copy holds.

        Waits first until everything captured is durable in "disk".

        Parameters
        ----------
        to
            A directory that does not exist, or is empty.
        timeout
            Seconds to wait for that; None: as long as it takes.

        Raises
        ------
        InvalidArgument
            The store is not durable, its directory has another name than it was opened by, or there is something in
            ``to``.
        WaitTimeout, TierFull, TierIOError
            As `wait`.

        Examples
        --------
        >>> import numpy, tempfile, velocpy
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     with velocpy.open(directory + "/store", host="16MiB", disk="1GiB") as store:
        ...         _ = store.history("run").checkpoint(0, u=numpy.zeros(10))
        ...         store.backup(directory + "/copy").checkpoints
        1
        """
        path = self._config["path"]
        if not self._config["durable"]:
            raise InvalidArgument("only a durable store has a directory that can be backed up: open it with a path.")
        if not self._config["read_only"]:
            self.wait("disk", timeout)
        self._require_same_directory("velocpy.backup.backup takes its new name.")
        from .backup import backup  # which brings much that opening a store does without

        return backup(path, to)

    def close(self, timeout: float | None = None, *, flush: bool = True) -> None:
        """Refuses further work, lets transfers in flight end, frees the tiers. A second call is nothing.

        A durable store first waits until everything captured is durable in "disk", unless ``flush`` is False; when that
        cannot be, it is closed all the same, and the error is raised. Leases stay valid; their memory is freed with
        them.

        One that was opened with ``archive=`` then waits until all of it is in the archive, and all ranks have closed
        theirs; with ``flush=False``, or at the end of a ``with`` that an error has ended, it tells the other ranks that
        it leaves, and they raise `RankFailed`.

        Interrupted (Ctrl-C) while it waits for the disk or the archive, the store is still open. Interrupted later it
        goes on closing by itself; until that is done, opening it again raises `StoreLocked`. Calling again waits on.

        Raises
        ------
        WaitTimeout
            When not everything was durable after ``timeout`` seconds: the store is still open. When transfers still run
            then: the store is closed for everybody else. Calling again waits on.
        TierFull, TierIOError
            The first error of what could not be made durable: checkpoints, or drops and rules of retention. Also, once
            all else is done, of the profile of a schedule that cannot be written.
        RankFailed, StoreLocked
            What the latest push to the archive has failed by. The checkpoints are on the disk of this rank, and
            `velocpy.archive.push` brings them later.
        BelatedCorruption
            Of an earlier restore to a device; the store is closed all the same.
        """
        if _core.forked():
            self._closed = True
            return  # the parent's store: nothing here is the child's to close
        writes = self._config["durable"] and not self._config["read_only"]
        began = time.monotonic()
        if flush and writes and not self._closed:
            self._unflushed = self._flush(timeout)
        if self._archiving is not None:
            self._leave_archive(self._archiving, flush, _left(timeout, began))
        if writes:
            timeout = _left(timeout, began)
        failure: VelocError | None = None
        if not self._closed and records.wanted():
            records.moved(self)
        if not self._closed:
            self._observe()
        try:
            self._close_core(timeout)
        except TierIOError as undone:
            failure = undone
        except BelatedCorruption as belated:
            self._name_call(belated, NO_TIER)
            for unsaid in (self._unflushed, self._write_profiles()):
                if unsaid is not None:
                    log.error("%s", unsaid)
            raise
        finally:
            if self._closed:
                self._end_views()
        failure, self._unflushed = self._unflushed or failure, None
        unwritten = self._write_profiles()
        failure = failure or unwritten
        if failure is not None:
            raise failure

    def _leave_archive(self, archiving: Archiving, flush: bool, timeout: float | None) -> None:
        """Waits until everything is in the archive; without flush, only tells the other ranks."""
        if flush:
            self._unflushed = archiving.leave(timeout) or self._unflushed
        else:
            archiving.abandon("it was closed with flush=False")
        self._archiving = None

    def _observe(self) -> None:
        """Remembers what the first runs of schedules have observed: a store that is closed cannot be asked."""
        for name, file in list(self._profiles.items()):
            try:
                course = self._histories[name].course
            except VelocError:  # the core has failed, which close tells
                continue
            if course is not None and course.profile["observations"]:
                self._observed[file] = course.profile

    def _write_profiles(self) -> VelocError | None:
        """Writes what was observed into its files, once; gives the first error."""
        failure: VelocError | None = None
        while self._observed:
            from .schedule import write

            file, profile = self._observed.popitem()
            try:
                write(file, profile)
            except TierIOError as unwritten:
                failure = failure or unwritten
        return failure

    def _flush(self, timeout: float | None) -> VelocError | None:
        """Makes a durable store's checkpoints durable; gives the error when that cannot be."""
        try:
            self._core.wait(tier_number("disk"), timeout)
        except (WaitTimeout, InvalidArgument):
            raise
        except VelocError as failure:
            self._name_call(failure, tier_number("disk"))
            return failure
        return None

    def _end_views(self) -> None:
        """Ends the threads that show this store."""
        watches, self._watches = self._watches, []
        for each in watches:
            each._end("closed")
        if self._published:
            self._published = False
            from .live.channel import publisher

            publisher.remove(self)

    def _close_core(self, timeout: float | None) -> None:
        closed_before, self._closed = self._closed, True
        try:
            self._core.close(timeout)
        except InvalidArgument:
            self._closed = closed_before  # refused: nothing was begun
            raise
        except WaitTimeout:
            raise
        except VelocError:
            _open_stores.discard(self)
            _drain_log()
            raise
        _open_stores.discard(self)
        _drain_log()
        if not closed_before and records.wanted():
            log.debug("closed %s", repr(self))

    def stats(self) -> Stats:
        """Counters since the store was opened.

        =====================  =======================================================================================
        ``tiers``              by name: ``capacity``, ``used`` and ``high_water`` in bytes; ``dirty``, ``evictable`` and
                               ``held`` (leased) bytes; what was written and read; the bandwidths of the link below;
                               of the host tier how much is pinned for devices by now, ``pinned_bytes``; of a durable
                               store's disk how many groups of checkpoints and drops shared their syncs, ``commits``,
                               and how many changes are not durable yet, ``pending_changes``
        ``histories``          by name: ``checkpoints``, ``hints_queued``, ``restores``, ``reduction``: what
                               encoding and de-duplication did, a `velocpy.figures.ReductionStats`
        ``restores``           ``count``, ``hits`` (found in the fastest tier), how far ahead prefetches were done
        ``waits_ns``           nanoseconds that calls spent copying, or waiting for room, for bytes, for durability; and
                               that streams waited on devices
        ``waits_by_cause_ns``  of waits for room, and of streams: ``flush``, ``load``, ``reader``, ``full``, ``other``
        ``bytes``              ``captured``, ``restored``; ``flush_cancelled`` and ``flush_avoided`` were never written
        ``archive``            what has gone there, a `velocpy.figures.ArchiveStats`; None without ``archive=``
        ``captures``           how many; ``consumed`` how many were restored as last
        ``mapped_bytes``       memory that is mapped, leases that outlive their checkpoints included
        ``timeline_lost``      events that `timeline` had no room for
        =====================  =======================================================================================
        """
        self._require_open()
        _drain_log()
        stats: Stats = json.loads(self._core.stats())
        stats["archive"] = None if self._archiving is None else self._archiving.stats()
        return stats

    def timeline(self, clear: bool = False) -> list[dict[str, Any]]:
        """The events since the store was opened, the first ``open(timeline=…)`` of them; with ``clear`` it begins anew.

        ``stats()["timeline_lost"]`` counts those that came when it was full.
        """
        self._require_open()
        events: list[dict[str, Any]] = json.loads(self._core.timeline(clear))
        return events

    def plot(self, what: Picture = "tiers") -> Figure:
        """Draws the store with matplotlib; moves no checkpoint, and looks up each of them once.

        Parameters
        ----------
        what
            "tiers": how much of each tier's budget is used, and by what; below, for the longest histories, which tiers
            have which checkpoints, in the order of writing. "timeline": the events that ``open(timeline=…)`` keeps,
            over time.

        Returns
        -------
        matplotlib.figure.Figure
            A notebook shows it; ``figure.savefig("store.png")`` writes it.

        Raises
        ------
        velocpy.extra.MissingLibrary
            Without matplotlib. It is an ImportError too.
        InvalidArgument
            A timeline is asked for, and the store keeps none.
        StoreClosed

        Examples
        --------
        >>> import numpy, velocpy
        >>> with velocpy.open(host="1MiB", disk="16MiB") as store:
        ...     for step in range(30):
        ...         _ = store.history("forward").checkpoint(step, u=numpy.zeros(10_000))
        ...     figure = store.plot()
        >>> figure.axes[1].get_title(loc="left")
        "'forward': 30 checkpoints, 2.3 MiB"
        """
        require_choice("what", what, Picture)
        self._require_open()
        if what == "tiers":
            from .plot.tiers import draw_tiers

            return draw_tiers(self)
        self._require_timeline()
        from .plot.timeline import draw_timeline

        budgets = {name: tier["capacity"] for name, tier in self.stats()["tiers"].items()}
        return draw_timeline(self.timeline(), budgets)

    def write_trace(self, file: str | os.PathLike[str]) -> None:
        """Writes the events that ``open(timeline=…)`` keeps as a trace, which Perfetto and chrome://tracing open.

        `velocpy.trace` says what is in it, and writes the events of a store that is closed.

        Parameters
        ----------
        file
            Where to; what is there is replaced. A name that ends in ``.gz`` gets a compressed trace.

        Raises
        ------
        InvalidArgument
            The store keeps no timeline.
        OSError
            The file cannot be written.
        StoreClosed

        Examples
        --------
        >>> import numpy, tempfile, velocpy
        >>> from pathlib import Path
        >>> with velocpy.open(host="1MiB", timeline=100) as store, tempfile.TemporaryDirectory() as folder:
        ...     _ = store.history("forward").checkpoint(7, u=numpy.zeros(100))
        ...     store.write_trace(Path(folder, "trace.json"))
        ...     "forward[7]" in Path(folder, "trace.json").read_text()
        True
        """
        self._require_open()
        self._require_timeline()
        from .trace import write_trace

        write_trace(self.timeline(), file)

    def watch(self, interval: float = 1.0) -> Watch:
        """Shows the store, and renews what it shows while the application goes on.

        Tiers with what is used of them by state, rates, the prefetch distance, and waits by reason. In a notebook the
        view is the output of the cell that calls this, also while later cells run. In a terminal it is at the lower
        end, by rich. One thread renews it, which reads `stats` each time. It ends with the store.

        Parameters
        ----------
        interval
            Seconds between two looks, from 0.02 on.

        Returns
        -------
        velocpy.live.watch.Watch
            Its ``stop()``, or the end of a ``with``, ends the view; what was shown last stays.

        Raises
        ------
        InvalidArgument
            There is neither a notebook nor a terminal.
        velocpy.extra.MissingLibrary
            In a terminal, without rich. It is an ImportError too.
        StoreClosed

        Examples
        --------
        In a notebook, while a sweep runs::

            with store.watch():
                for step in range(steps):
                    forward.checkpoint(step, u=advance(u))
        """
        self._require_open()
        if require_seconds("interval", interval) < _SHORTEST:
            raise InvalidArgument(f"interval is {interval!r}; give {_SHORTEST} seconds or more.")
        from .live.watch import Watch, surface

        watch = Watch(self, float(interval), surface())
        self._watches = [*(each for each in self._watches if each.running), watch]
        return watch

    def publish(self) -> None:
        """Lets other processes of this user see the figures of the store; a second call is nothing.

        ``velocpy top`` shows them. ``VELOCPY_WATCH=1`` in the environment publishes each store that is opened. The
        process listens at a Unix-domain socket, and one thread answers: it sleeps while nobody asks. Processes of other
        users get no answer. It ends with the store, whatever ends the process.

        Raises
        ------
        OSError
            There is no socket to be had.
        StoreClosed

        Examples
        --------
        >>> import os, velocpy
        >>> from velocpy.live.channel import published
        >>> with velocpy.open(host="16MiB") as store:
        ...     store.publish()
        ...     [process.stores[-1].checkpoints for process in published() if process.pid == os.getpid()]
        [0]
        """
        self._require_open()
        from .live.channel import publisher

        publisher.add(self)
        self._published = True

    def _require_timeline(self) -> None:
        if not self._config["timeline"]:
            raise InvalidArgument("the store keeps no timeline: open it with timeline=, the number of events to keep.")

    def costs(self) -> dict[str, Cost]:
        """Per tier its capacity (bytes) and the bandwidths measured so far (bytes/s), for planners of schedules.

        None where nothing was moved yet.
        """
        stats = self.stats()
        moved, waits = stats["bytes"], stats["waits_ns"]
        write = _rate(moved["captured"], waits["capture_copy"])
        read = _rate(moved["restored"], waits["restore_copy"])
        costs: dict[str, Cost] = {}
        for name in TIERS:
            tier = stats["tiers"].get(name)
            if tier is not None:
                costs[name] = {"capacity": tier["capacity"], "write": write, "read": read}
                # What the link below a tier does is the speed of the next tier.
                write, read = tier["flush_bytes_per_s"] or None, tier["load_bytes_per_s"] or None
        return costs

    def _streams(self, stream: Any) -> tuple[int, ...]:
        """Handles of the streams that will read a lease, should it lie on a device."""
        return _core.streams_reading(stream, self._places)

    def _require_open(self) -> None:
        if self._closed:
            raise StoreClosed(
                "the store is closed. Leases taken before stay valid; open a new store for anything else."
            )

    def __enter__(self) -> Store:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ends_well = error is None or (isinstance(error, SystemExit) and error.code in (None, 0))
        if not ends_well and self._archiving is not None and not _core.forked():
            self._archiving.abandon(type(error).__name__ + "".join(f": {each}" for each in error.args[:1]))  # type: ignore[union-attr]
            self._archiving = None
        try:
            self.close()
        except BelatedCorruption as belated:
            if error is None:
                raise
            log.error("%s", belated)  # the exception under way matters more

    def __del__(self) -> None:
        if self._closed or _core.forked() or sys.is_finalizing():
            return
        if self._archiving is not None:  # its thread keeps the core until then
            self._archiving.abandon("it was not closed, and nothing refers to it any more", wait=False)
        lost = "its checkpoints are lost"
        if self._config["durable"]:
            lost = "it was only read" if self._config["read_only"] else "what was not durable yet is lost"
        warnings.warn(
            f"unclosed {self!r}, opened at {self._opened()}: nothing refers to it any more; {lost}. Leases stay valid. "
            "Call close(), or use with.",
            ResourceWarning,
            stacklevel=2,
            source=self,
        )

    def _opened(self) -> str:
        """The line of the application that has opened it."""
        return "a place that is not known" if self._opened_at is None else callers.told(self._opened_at)

    def __copy__(self) -> Store:
        return self

    def __reduce__(self) -> NoReturn:
        raise self._stays("Store", "")

    def _stays(self, what: str, behind: str) -> InvalidType:
        """The error that something of this store cannot go to another process, with what can be done there."""
        if self._config["durable"]:
            path = self._config["path"]
            there = f"Open the store there: velocpy.open({path!r}, mode='r'){behind} reads what is durable"
        else:
            there = "Send arrays: lease['u'].copy() of what restore() gives"
        return InvalidType(
            f"a {what} belongs to the process that has opened its store and cannot be pickled, nor copied. {there}."
        )

    def __repr__(self) -> str:
        sizes = [(f"cuda:{budget['ordinal']}", budget) for budget in self._config.get("devices", ())]
        shown = [f"{name} {_budget_text(budget)}" for name, budget in sizes]
        shown += [f"{name} {sized(self._config[name])}" for name in ("host", "disk") if self._config[name]]
        tiers = ", ".join(shown)
        state = "closed" if self._closed else f"{len(self._histories)} histories"
        return f"<Store {tiers}: {state}>"

    def _repr_html_(self) -> str:
        return html.store(self)


def _reduction(
    method: Reduction | None,
    chunk: int | None,
    digest: Digest | None,
    compressor: Compressor | None,
    schedule: Schedule | None,
) -> str | None:
    """What the core is told of a reduction; None: nothing."""
    if method is None:
        if any(given is not None for given in (chunk, digest, compressor, schedule)):
            raise InvalidArgument(
                "chunk, digest, compress and schedule belong to a method of reduction; give reduce=, too."
            )
        return None
    require_choice("reduce", method, Reduction)
    if schedule is not None and (method != "codec" or compressor is not None):
        raise InvalidArgument(
            'a schedule says what a device encodes, which it does for reduce="codec" without compress: give these, or '
            "leave the schedule out."
        )
    if method in _WITHOUT_CHUNKS and (chunk is not None or digest is not None):
        raise InvalidArgument(
            f"reduce={method!r} removes no duplicates, so it has neither chunk nor digest: leave them out, or give "
            f"reduce= one of {', '.join(each for each in get_args(Reduction) if each not in _WITHOUT_CHUNKS)}."
        )
    if digest is not None:
        require_choice("digest", digest, Digest)
    if chunk is not None and (
        not _LEAST_CHUNK <= require_whole("chunk", chunk, 1) <= _MOST_CHUNK or chunk & (chunk - 1)
    ):
        raise InvalidArgument(f"chunk is {chunk}; give a power of two from {_LEAST_CHUNK} to {_MOST_CHUNK}.")
    if compressor is not None:
        require_choice("compress", compressor, Compressor)
        if method in _WITHOUT_COMPRESSOR:
            raise InvalidArgument(
                f"reduce={method!r} has no compressor: leave compress out, or give reduce= one of "
                f"{', '.join(each for each in get_args(Reduction) if each not in _WITHOUT_COMPRESSOR)}."
            )
    told = {"method": method, "chunk": chunk or 0, "digest": digest or "", "compressor": compressor or ""}
    return json.dumps(told | {"schedule": _told(schedule)})


def _schedule_of(schedule: Schedule | Profiled | None) -> Schedule | None:
    if schedule is None:
        return None
    from .schedule import of  # few stores need it, and it costs as much as a tenth of opening one

    return of(schedule)


def _told(schedule: Schedule | None) -> dict[str, Any] | None:
    if schedule is None:
        return None
    from .schedule import told

    return told(schedule)


def _mark_ranges() -> None:
    """Lets profilers see the calls that move bytes or wait."""
    from .ranges import mark
    from .restores import Restores

    mark(
        {
            Checkpoints: ("checkpoint", "checkpoint_many", "restore", "prefetch", "wait"),
            Restores: ("__next__",),
            Ticket: ("wait",),
            Store: ("wait", "resize", "trim", "close"),
        }
    )


def _left(timeout: float | None, began: float) -> float | None:
    """What is left of a timeout."""
    return None if timeout is None else max(0.0, timeout - (time.monotonic() - began))


def _rate(nbytes: int, nanoseconds: int) -> float | None:
    return 1e9 * nbytes / nanoseconds if nbytes and nanoseconds else None


def _budget_text(budget: dict[str, Any]) -> str:
    return sized(budget["bytes"]) if "bytes" in budget else f"{100 * budget['share']:g} % of what was free"


def _drain_log() -> None:
    """Passes on what the core and the destructors of leases had to say. They must not call Python, so Python asks."""
    for failure in _core.release_failures():
        log.error("a lease was given back: %s", failure)
    if _core.forked() or not _core.loaded():
        return
    while lines := _core.core_log().splitlines():
        _log(lines)


def stores() -> tuple[Store, ...]:
    """The stores that are open in this process, the oldest first.

    Examples
    --------
    >>> import velocpy
    >>> with velocpy.open(host="16MiB") as store:
    ...     store in velocpy.stores()
    True
    """
    if _core.forked():
        return ()
    while True:
        with contextlib.suppress(RuntimeError):  # another thread has opened or closed one meanwhile
            return tuple(sorted((store for store in list(_open_stores) if not store.closed), key=_turn_of))


def _turn_of(store: Store) -> int:
    return store._turn


def _located(error: StoreLocked, directory: tuple[int, int] | None) -> StoreLocked:
    """The error that a store is locked, with the store of this process that has it open, if one has."""
    for store in stores():
        if store._directory == directory is not None and not store._config["read_only"]:
            return StoreLocked(
                f"{error} It is open here as {store!r}, opened at {store._opened()}, which is in velocpy.stores(), "
                f"path {store.path}."
            )
    return error


def _log(lines: list[bytes]) -> None:
    for line in lines:
        record = json.loads(line)
        log.log(record["level"], "%s", record["message"])


@atexit.register
def _close_at_exit() -> None:
    """Lets transfers in flight end, for a while; the files of the disk tier go with the process anyway."""
    if _core.forked():
        return
    deadline = time.monotonic() + knobs.exit_timeout()
    for store in list(_open_stores):
        if store._archiving is not None and not store._archiving.alone:
            # The other ranks may never come, and no more threads can begin. What is durable stays on this rank's disk.
            log.warning("%r was not closed before Python ended: the archive lacks what it had not sent yet", store)
            store._archiving.abandon("Python has ended before it was closed")
            store._archiving = None
        try:
            store.close(timeout=max(0.0, deadline - time.monotonic()))
        except WaitTimeout:
            log.warning("%r was still busy when Python ended", store)
        except VelocError:
            log.exception("%r did not close when Python ended", store)
    with contextlib.suppress(VelocError):
        _drain_log()
