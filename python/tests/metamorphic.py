"""One list of operations, played over stores of any options beside a dictionary: what they give back is the same bytes.

`play` is also what a failure is shown by: a short program that calls it with the operations that it takes.
"""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bits import same
from tuned import tuned

import velocpy

KIB, MIB = 1 << 10, 1 << 20
Operation = tuple[Any, ...]
#: dtype and shape of each region, and the number that its bytes come from.
Version = tuple[int, tuple[tuple[str, tuple[int, ...]], ...]]

HISTORIES = ("a", "b/ü")
KEYS: tuple[int | str, ...] = (0, 1, 2, 3, 4, 5, -7, 1 << 62, "", "text", "\0")
DTYPES = ("u1", "f8", "i2", "c8")
LARGEST = 96 * KIB
TIMEOUT = 60
#: What says that there is no room, or that there was none in time.
FULL = (velocpy.errors.TierFull, velocpy.errors.WaitTimeout, velocpy.errors.DurabilityLost)
_NOISE = np.random.default_rng(9).integers(0, 256, LARGEST + 8192, dtype=np.uint8)


# --- what may happen ---


def operations(seed: int, count: int) -> list[Operation]:
    """So many, at random; each means something wherever it stands, so that any of them may be left out."""
    pick = random.Random(seed)
    kinds = {
        _put: 34, _restore: 26, _drop: 6, _hint: 5, _prefetch: 3, _follow: 5, _wait: 5, _unhint: 1, _clear: 0.4,
        _reopen: 1.2, _look: 0.8,
    }  # fmt: skip
    return [kind(pick) for kind in pick.choices(list(kinds), list(kinds.values()), k=count)]


def _place(pick: random.Random) -> tuple[str, int | str]:
    return pick.choice(HISTORIES), pick.choice(KEYS)


def _put(pick: random.Random) -> Operation:
    shapes = tuple(_region(pick) for _ in range(pick.choice([1, 1, 2, 4])))
    meta = pick.choice([None, None, 7, {"x": [1, "ü"]}])
    return ("put", *_place(pick), (pick.getrandbits(31), shapes), meta, pick.random() < 0.7, pick.random() < 0.2)


def _region(pick: random.Random) -> tuple[str, tuple[int, ...]]:
    kind = pick.random()
    if kind < 0.1:
        return pick.choice(DTYPES), pick.choice([(), (0,), (3, 0), (1, 1, 1)])
    if kind < 0.8:
        return pick.choice(DTYPES), (pick.randrange(1, 300),)
    if kind < 0.9:
        return "u1", (pick.choice([4095, 4096, 4097, 8192, 65536]),)
    return "u1", (pick.randrange(1, 96), pick.randrange(1, KIB))


def _restore(pick: random.Random) -> Operation:
    how = pick.choice(["lease", "lease", "part", "into"])
    return ("restore", *_place(pick), how, pick.random() < 0.1)


def _drop(pick: random.Random) -> Operation:
    return ("drop", *_place(pick))


def _hint(pick: random.Random) -> Operation:
    return ("hint", pick.choice(HISTORIES), tuple(pick.choice(KEYS) for _ in range(pick.randrange(1, 12))))


def _unhint(pick: random.Random) -> Operation:
    return ("unhint", pick.choice(HISTORIES))


def _prefetch(pick: random.Random) -> Operation:
    return ("prefetch", pick.choice(HISTORIES))


def _follow(pick: random.Random) -> Operation:
    return ("follow", pick.choice(HISTORIES), pick.randrange(1, 9), pick.random() < 0.2)


def _wait(pick: random.Random) -> Operation:
    return ("wait", pick.choice([*HISTORIES, None]), pick.choice([None, "host", "disk", "disk"]))


def _clear(pick: random.Random) -> Operation:
    return ("clear", pick.choice(HISTORIES))


def _reopen(pick: random.Random) -> Operation:
    return ("reopen", pick.choice([0.5, 1, 2]))


def _look(pick: random.Random) -> Operation:
    return ("look",)


# --- over what it is played ---


def option_sets(seed: int) -> list[dict[str, Any]]:
    """Options of `velocpy.open`, some chosen and others at random; ``at``: with a path; ``tiny``: may be full."""
    plain = {"host": 8 * MIB, "disk": 64 * MIB, "at": True}
    told: list[dict[str, Any]] = [
        plain,
        {**plain, "durable": False},
        {**plain, "host": None},
        {**plain, "host": None, "durable": False},
        {**plain, "disk": None, "at": False},
        {**plain, "at": False, "host": 512 * KIB},
        {**plain, "host": 200 * KIB},
        {**plain, "host": 200 * KIB, "flush": "lazy"},
        {**plain, "host": 200 * KIB, "disk": 300 * KIB, "tiny": True},
        {**plain, "host": 64 * KIB, "disk": 128 * KIB, "tiny": True},
        {**plain, "host": 64 * KIB, "disk": 128 * KIB, "durable": False, "tiny": True},
        {**plain, "host": None, "disk": 200 * KIB, "tiny": True},
        {**plain, "host": 150 * KIB, "disk": None, "at": False, "tiny": True},
        {**plain, "checksum": False},
        {**plain, "verify": "always", "debug": True},
    ]
    pick = random.Random(seed)
    while len(told) < 36:
        durable = pick.random() < 0.7
        host = pick.choice([None, 200 * KIB, 512 * KIB, 2 * MIB, 32 * MIB])
        told.append(
            {
                "at": durable or pick.random() < 0.5,
                "durable": durable,
                "host": host,
                "disk": pick.choice([16 * MIB, 64 * MIB, 256 * MIB]),
                "flush": pick.choice(["auto", "lazy", "eager"]),
                "policy": pick.choice(["score", "lru", "fifo"]),
                "verify": pick.choice(["moved", "first", "always", "off"]),
                "checksum": pick.random() < 0.8,
                "workers": pick.choice([None, 1, 2, 7]),
                "copiers": pick.choice([None, 1, 3]),
                "direct": pick.choice([None, True, False]),
                "prefetch": pick.random() < 0.8,
                "guess": pick.random() < 0.7,
                "lookahead": pick.choice([1, 3, 1024]),
                "debug": pick.random() < 0.2,
            }
        )
    return told


# --- how it is played ---


class Difference(AssertionError):
    """A store and the dictionary do not agree, or something was raised that may not be."""


def play(options: dict[str, Any], chosen: list[Operation]) -> tuple[str, Counter[str]]:
    """Gives a digest of everything that came back, and how often what happened; raises a `Difference`."""
    with tempfile.TemporaryDirectory(prefix="velocpy-metamorphic-") as folder:
        player = Player(dict(options), Path(folder))
        try:
            for number, operation in enumerate(chosen):
                try:
                    getattr(player, operation[0])(*operation[1:])
                    player.agree()
                except Exception as error:
                    raise Difference(f"operation {number}, {operation!r}: {type(error).__name__}: {error}") from error
            return player.seen.hexdigest(), player.counts
        finally:
            player.end()


class Player:
    """A store, and what it has to hold."""

    def __init__(self, options: dict[str, Any], folder: Path) -> None:
        self._path = folder / "store" if options.pop("at") else None
        self._tiny = options.pop("tiny", False)
        self._timeout = 0.05 if self._tiny else TIMEOUT
        self._options = options
        self._lasting = self._path is not None and options["disk"] is not None and options.get("durable", True)
        self._model: dict[str, dict[int | str, tuple[Version, Any]]] = {name: {} for name in HISTORIES}
        self._before: dict[
            tuple[str, int | str], list[tuple[Version, Any]]
        ] = {}  # what places held since it was opened
        self.seen, self.counts = hashlib.blake2b(), Counter[str]()
        self._fence = 0
        self._store = self._open(1)

    def _open(self, scale: float) -> velocpy.Store:
        options = dict(self._options)
        if options["host"] is not None:
            options["host"] = int(options["host"] * (1 if self._tiny else max(scale, 1)))
        return velocpy.open(self._path, **tuned(options))

    def end(self) -> None:
        self._store.close(flush=False)

    def agree(self) -> None:
        for name, held in self._model.items():
            assert len(self._store.history(name)) == len(held), (name, list(self._store.history(name)), list(held))

    def put(self, name: str, key: int | str, version: Version, meta: Any, copy: bool, down: bool) -> None:
        tier = "disk" if down and self._options["disk"] is not None else None
        history = self._store.history(name)
        meta = [meta, version[0]]
        try:
            history.checkpoint(key, regions(version), meta=meta, copy=copy, tier=tier, timeout=self._timeout)
        except FULL:
            self._full("put")  # what was there is what it was
            return
        if key in self._model[name]:
            self._before.setdefault((name, key), []).append(self._model[name][key])
        self._model[name][key] = (version, meta)
        self.counts["put"] += 1

    def _full(self, what: str) -> None:
        assert self._tiny, f"{what}: a tier is full"
        self.counts[f"{what} full"] += 1

    def restore(self, name: str, key: int | str, how: str, last: bool) -> None:
        history, held = self._store.history(name), self._model[name].get(key)
        if held is None:
            self._missing(history, key, last)
            return
        wanted = regions(held[0])
        if how == "part":
            wanted = dict(list(wanted.items())[-1:])
        try:
            if how == "into":
                into = {label: np.empty_like(array) for label, array in wanted.items()}
                self._compare(history.restore(key, into=into, last=last, timeout=self._timeout), wanted)
            else:
                labels = list(wanted) if how == "part" else None
                with history.restore(key, labels, last=last, timeout=self._timeout) as lease:
                    self._compare(lease, wanted)
                    assert lease.meta == held[1]
        except FULL:
            self._full("restore")
            return
        if last:
            self._gone(name, key)
        self.counts["restore"] += 1

    def _missing(self, history: velocpy.History, key: int | str, last: bool) -> None:
        try:
            history.restore(key, last=last, timeout=self._timeout)
        except velocpy.errors.CheckpointNotFound:
            self.counts["missing"] += 1
        else:
            raise AssertionError("it is there")

    def _compare(self, found: Any, wanted: dict[str, np.ndarray[Any, Any]]) -> None:
        assert list(found) == list(wanted)
        for label, array in wanted.items():
            got = np.asarray(found[label])
            assert same(got, array), label
            self.seen.update(got.tobytes())

    def _gone(self, name: str, key: int | str) -> None:
        self._before.setdefault((name, key), []).append(self._model[name].pop(key))

    def drop(self, name: str, key: int | str) -> None:
        there = key in self._model[name]
        self._store.history(name).drop(key, missing_ok=not there)
        if there:
            self._gone(name, key)
            self.counts["drop"] += 1

    def hint(self, name: str, plan: tuple[int | str, ...]) -> None:
        self._store.history(name).hint(plan)

    def unhint(self, name: str) -> None:
        self._store.history(name).hint_clear()

    def prefetch(self, name: str) -> None:
        self._store.history(name).prefetch()

    def follow(self, name: str, most: int, last: bool) -> None:
        history = self._store.history(name)
        followed = 0
        try:
            for key, lease in history.restore_iter(last=last, timeout=self._timeout):
                self._compare(lease, regions(self._model[name][key][0]))
                if last:
                    self._gone(name, key)
                self.counts["followed"] += 1
                followed += 1
                if followed == most:
                    break
        except velocpy.errors.CheckpointNotFound as error:
            if error.key in self._model[name]:
                raise
            history.hint_clear()
        except FULL:
            self._full("follow")
            history.hint_clear()

    def wait(self, name: str | None, tier: str | None) -> None:
        if tier is not None and self._options[tier] is None:
            return
        try:
            (self._store if name is None else self._store.history(name)).wait(tier, timeout=self._timeout)
        except FULL:
            self._full("wait")
        self.counts["wait"] += 1

    def clear(self, name: str) -> None:
        self._store.history(name).clear()
        for key in list(self._model[name]):
            self._gone(name, key)

    def reopen(self, scale: float) -> None:
        """All is there again; nothing, when the store is not durable."""
        whole = True
        try:
            self._store.close(timeout=10 * self._timeout)
        except FULL:
            self._full("close")
            whole = False
            self._store.close(timeout=TIMEOUT, flush=False)
        self._store = self._open(scale)
        if not self._lasting:
            self._model = {name: {} for name in HISTORIES}
        elif not whole:
            self._adopt()
        self._before.clear()
        self.require(self._store)
        self.counts["reopen"] += 1

    def _adopt(self) -> None:
        """Not all of it became durable: each place has what it had at some time since the store was opened."""
        for name, held in self._model.items():
            history = self._store.history(name)
            for key in KEYS:
                allowed = [*self._before.get((name, key), []), *([held[key]] if key in held else [])]
                held.pop(key, None)
                if key in history:
                    with history.restore(key, timeout=TIMEOUT) as lease:
                        held[key] = next(each for each in allowed if self._is(lease, each))

    @staticmethod
    def _is(lease: velocpy.Lease, held: tuple[Version, Any]) -> bool:
        wanted = regions(held[0])
        return (
            lease.meta == held[1]
            and list(lease) == list(wanted)
            and all(same(np.asarray(lease[label]), array) for label, array in wanted.items())
        )

    def look(self) -> None:
        """Who reads beside the writer has everything that was durable when he came: behind a later one all is."""
        if not self._lasting or self._tiny:
            return
        self._store.wait("disk", timeout=self._timeout)
        self._fence += 1
        self._store.history("fence").checkpoint("fence", x=np.arange(self._fence)).wait("disk", timeout=self._timeout)
        with velocpy.open(self._path, mode="r", host=2 * MIB) as reader:
            self.require(reader)
            assert len(reader.history("fence").restore("fence")["x"]) == self._fence
        self.counts["look"] += 1

    def require(self, store: velocpy.Store) -> None:
        """The store has what the dictionary has, and nothing else."""
        for name, held in self._model.items():
            history = store.history(name)
            assert set(history) == set(held), (name, list(history), list(held))
            for key in sorted(held, key=repr):
                version, meta = held[key]
                with history.restore(key, timeout=TIMEOUT) as lease:
                    assert lease.meta == meta, (name, key, lease.meta, meta)  # first: it tells which version it is
                    self._compare(lease, regions(version))

    def lie(self, name: str, key: int | str) -> None:
        """For the test of the tests: the dictionary is made wrong."""
        if key in self._model[name]:
            (seed, shapes), meta = self._model[name][key]
            self._model[name][key] = ((seed + 1, shapes), meta)


def regions(version: Version) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays of any bytes, always the same for a version."""
    seed, shapes = version
    return {f"r{number}": _array(seed + 31 * number, *shape) for number, shape in enumerate(shapes)}


def _array(seed: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    begin = seed % 8191
    return (_NOISE[begin : begin + nbytes] + np.uint8(seed >> 7 & 0xFF)).view(dtype).reshape(shape)


# --- what of it matters ---


def reduce(chosen: list[Operation], fails: Callable[[list[Operation]], bool]) -> list[Operation]:
    """Fewer operations that fail too: without chunks, ever smaller ones, and without single ones."""
    size = max(1, len(chosen) // 2)
    while True:
        begin, smaller = 0, False
        while begin < len(chosen):
            without = chosen[:begin] + chosen[begin + size :]
            if without and fails(without):
                chosen, smaller = without, True
            else:
                begin += size
        if size == 1 and not smaller:
            return chosen
        size = max(1, size // 2)


def program(options: dict[str, Any], chosen: list[Operation]) -> str:
    """What shows it, in the folder of the tests."""
    lines = "".join(f"    {operation!r},\n" for operation in chosen)
    return f"from metamorphic import play\n\nplay({options!r}, [\n{lines}])\n"
