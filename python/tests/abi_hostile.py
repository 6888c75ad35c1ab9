"""Hostile calls of the C contract, run by test_abi.py in a process of their own: every function here is one test.

Prints one JSON line per test: its name and what went wrong, or null.
"""

from __future__ import annotations

import ctypes as c
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

from abi import (
    AGAIN,
    CLOSED,
    DISK,
    FUNCTIONS,
    HOST,
    INVALID,
    NO_TIER,
    NOT_FOUND,
    OK,
    PENDING,
    POISONED,
    STALE,
    TIER_FULL,
    UNAVAILABLE,
    CheckpointArgs,
    Core,
    HintItem,
    Info,
    Key,
    Outcome,
    Part,
    PlanRestore,
    Pointer,
    Region,
    RestoreArgs,
    Retention,
    TicketState,
    where,
)

CONFIG = {"host": 1 << 20, "disk": 8 << 20, "path": ".", "workers": 1}
BIG = [2**63 - 1, 2**62, 2**40, 1 << 31]
NEGATIVE = [-1, -(2**63)]


class Opened:
    """A store with one history and one checkpoint, of key 1 with 100 bytes in two regions."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        handle, text = c.c_uint64(), json.dumps(CONFIG).encode()
        assert core.call("open", text, len(text), where(handle)) == OK, core.text()
        self.store = handle.value
        assert core.call("history", self.store, b"h", 1, where(handle)) == OK
        self.history = handle.value
        self.bytes = c.create_string_buffer(bytes(range(100)), 100)
        self.regions = (Region * 2)()
        base = where(self.bytes)
        self.regions[0] = Region(base, 0, 60, None, None, 0, 0)
        self.regions[1] = Region(base + 60, 64, 40, None, None, 0, 0)
        self.layout = b"two regions"
        status, self.out = self.checkpoint()
        assert status == OK, core.text()

    def checkpoint_args(self, **changes: Any) -> CheckpointArgs:
        args = CheckpointArgs()
        args.key = Key(1, None, 0, 0, 0)
        args.regions, args.n_regions, args.slot_bytes = where(self.regions), 2, 128
        args.layout, args.layout_len = c.cast(c.c_char_p(self.layout), Pointer), len(self.layout)
        args.tier, args.event_fd = NO_TIER, self.fd
        for name, value in changes.items():
            setattr(args, name, value)
        return args

    def checkpoint(self, **changes: Any) -> tuple[int, Outcome]:
        args, out = self.checkpoint_args(**changes), Outcome()
        return self.core.finish(self.core.call("checkpoint", self.history, where(args), where(out)), out, self.fd), out

    def restore(self, **changes: Any) -> tuple[int, Outcome]:
        args, out = RestoreArgs(), Outcome()
        args.key, args.event_fd = Key(1, None, 0, 0, 0), self.fd
        for name, value in changes.items():
            setattr(args, name, value)
        return self.core.finish(self.core.call("restore", self.history, where(args), where(out)), out, self.fd), out

    def still_fine(self) -> None:
        """The checkpoint is what it was."""
        status, out = self.restore()
        assert status == OK, self.core.text()
        assert c.string_at(out.base, 60) == bytes(range(60))
        assert c.string_at(out.base + 64, 40) == bytes(range(60, 100))
        assert self.core.call("lease_release", out.lease, None, 0) == OK

    def close(self) -> None:
        out = Outcome()
        status = self.core.finish(self.core.call("close", self.store, self.fd, where(out)), out, self.fd)
        assert status == OK, self.core.text()
        os.close(self.fd)


@contextmanager
def opened(core: Core) -> Iterator[Opened]:
    x = Opened(core)
    yield x
    x.still_fine()
    x.close()


def null_pointers(core: Core) -> None:
    with opened(core) as x:
        handles: dict[str, list[int]] = {
            "checkpoint": [x.history],
            "restore": [x.history],
            "drop": [x.history],
            "lookup": [x.history],
            "describe": [x.history],
            "keys": [x.history],
            "history_len": [x.history],
            "hint": [x.history],
            "plan_next": [x.history],
            "plan_undo": [x.history],
            "history": [x.store],
            "stats": [x.store],
            "timeline": [x.store],
            "layout": [x.store, x.out.layout],
            "close": [x.store],
            "ticket": [x.store, x.out.ticket],
            "wait": [x.store, 0, x.out.ticket],
            "resize": [x.store],
            "step": [1],
            "lease_meta": [1],
            "test_corrupt": [x.history],
        }
        for name, parameters in FUNCTIONS.items():
            if Pointer not in parameters or name == "init":
                continue
            given = handles.get(name, [])
            arguments = [*given, *(None if kind is Pointer else 0 for kind in parameters[len(given) :])]
            status = core.call(name, *arguments)
            if name == "hint":  # no hints and nobody who wants the count: a question without an answer
                assert status == OK
                continue
            if name == "history":
                assert status == INVALID
            assert status < 0, name
            assert status != POISONED, (name, core.text())
            assert core.silent(name, *arguments) == status, name


def questions_about_stores(core: Core) -> None:
    room, length = c.create_string_buffer(1 << 20), c.c_int64()

    def ask(question: Any, capacity: int = 1 << 20) -> tuple[int, dict[str, Any]]:
        text = question if isinstance(question, bytes) else json.dumps(question).encode()
        status = core.call("inspect", text, len(text), where(room), capacity, where(length))
        assert status != POISONED, core.text()
        return status, json.loads(room.raw[: length.value].partition(b"\n")[0]) if status == OK and capacity else {}

    for bad in (
        b"",
        b"{",
        b"[]",
        b"null",
        b"{} {}",
        b'{"unknown": 1}',
        b'{"op": "no"}',
        b'{"path": "xyz"}',
        b'{"from": -1}',
    ):
        assert ask(bad)[0] in (INVALID, STALE), bad
    assert ask({"op": "open"})[0] == INVALID
    assert ask({"op": "open", "path": b"nowhere".hex()})[0] == -19
    for op in ("histories", "rows", "row", "blob", "check", "step", "findings", "backup_step"):
        for view in (0, 1, 2**32, 2**64 - 1):
            assert ask({"op": op, "view": view})[0] == STALE
            assert ask({"op": "close", "view": view})[0] == OK
            assert ask({"op": "backup_close", "view": view})[0] == OK
    assert ask({"op": "open", "path": b"nowhere".hex()}, 0)[0] == OK  # nothing is done without room
    assert length.value == 1 << 20
    for n in NEGATIVE:
        assert core.call("inspect", b"{}", 2, where(room), n, where(length)) == INVALID
        assert core.call("inspect", b"{}", n, where(room), 1 << 20, where(length)) == INVALID
    assert core.call("inspect", b"{}", 2, None, 1 << 20, where(length)) == INVALID
    handle, out = c.c_uint64(), Outcome()
    text = json.dumps({"host": 1 << 20, "disk": 8 << 20, "path": "durable", "durable": True}).encode()
    assert core.call("open", text, len(text), where(handle)) == OK, core.text()
    fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    path = b"durable".hex()
    for op in ("collect", "repair"):
        assert ask({"op": op, "path": path})[0] == -18  # it is open
    assert core.finish(core.call("close", handle.value, fd, where(out)), out, fd) == OK
    os.close(fd)
    view = 2**64 - 1
    assert ask({"op": "open", "path": path, "view": 0})[0] == INVALID
    assert ask({"op": "open", "path": path, "view": view})[0] == OK, core.text()
    assert ask({"op": "open", "path": path, "view": view})[0] == INVALID
    for question, expected in (
        ({"op": "histories"}, OK),
        ({"op": "histories", "from": 2**40}, OK),
        ({"op": "rows", "history": b"none".hex()}, NOT_FOUND),
        ({"op": "rows", "history": "0"}, INVALID),
        ({"op": "step"}, INVALID),
        ({"op": "findings", "what": "x"}, INVALID),
        ({"op": "check", "share": -1}, INVALID),
        ({"op": "check", "part": 5, "parts": 5}, INVALID),
        ({"op": "check", "data": True}, OK),
        ({"op": "step", "milliseconds": -(2**63)}, OK),
        ({"op": "findings", "what": "faults", "from": 7}, OK),
        ({"op": "close"}, OK),
        ({"op": "histories"}, STALE),
        ({"op": "close"}, OK),
    ):
        assert ask(question | {"view": view})[0] == expected, (question, core.text())


def handles_that_name_nothing(core: Core) -> None:
    with opened(core) as x:
        out, info, key = Outcome(), Info(), Key(1, None, 0, 0, 0)
        for handle in (0, 1, 7, 2**33, 2**64 - 1, x.store + 2**33):
            for name in ("history_clear", "hint_clear", "prefetch"):
                assert core.call(name, handle) == STALE, name
            assert core.call("cancel", handle, None) == STALE
            assert core.call("lease_release", handle, None, 0) == STALE
            assert core.call("lease_take", handle) == STALE
            assert core.call("plan_undo", handle, where(key), 0, 0) == STALE
            assert core.call("plan_next", handle, None, 0, where(c.c_int64()), where(PlanRestore())) == STALE
            assert core.call("lease_use", handle, 0) == STALE
            assert core.call("lease_read", handle, 0, 0, None) == STALE
            assert core.call("lookup", handle, where(key), where(info)) == STALE
            assert core.call("describe", handle, where(key), None, 0, where(c.c_int64())) == STALE
            assert core.call("step", handle, where(out)) == STALE
            assert core.call("ticket", handle, x.out.ticket, where(TicketState())) == STALE
            assert core.call("restore", handle, where(RestoreArgs()), where(out)) == STALE
            assert core.call("close", handle, x.fd, where(out)) == STALE
        status, lent = x.restore()
        assert status == OK
        assert core.call("lease_use", lent.lease, 2**64 - 1) == OK  # host memory: no stream has to wait
        assert core.call("lease_release", lent.lease, None, 0) == OK
        assert core.call("lease_release", lent.lease, None, 0) == STALE
        assert core.call("ticket", x.store, 12345, where(TicketState())) == OK  # gone, for all that is known
        assert core.call("layout", x.store, 999, None, 0, where(c.c_int64())) == NOT_FOUND


def counts_and_sizes(core: Core) -> None:
    with opened(core) as x:
        for n in BIG + NEGATIVE:
            for field in ("n_regions", "layout_len", "meta_len"):
                status, _ = x.checkpoint(**{field: n, "meta": where(x.bytes)})
                assert status == INVALID, (field, n, status)
            status, _ = x.checkpoint(slot_bytes=n, layout=where(x.bytes), layout_len=3)
            assert status in (INVALID, TIER_FULL), (n, status)
            assert x.checkpoint(slot_bytes=n, regions=None, n_regions=0, layout_len=4)[0] in (INVALID, TIER_FULL)
            assert x.restore(select=where(x.bytes), n_select=n)[0] == INVALID
            assert x.restore(into=where(x.regions), n_into=n)[0] == INVALID
            assert core.call("hint", x.history, where(HintItem()), n, None) == INVALID
            key = where(Key(0, where(x.bytes), 1, 1, 0))
            for rule in (
                Retention(keys=key, n_keys=n),
                Retention(best=1, by=key, n_by=n),
                Retention(best=1, by=where(Key(0, where(x.bytes), n, 1, 0)), n_by=1),
            ):
                assert core.call("retain", x.history, where(rule)) == INVALID
            assert core.call("history", x.store, b"h", n, where(c.c_uint64())) == INVALID
            assert core.call("open", b"{}", n, where(c.c_uint64())) == INVALID
            assert core.call("init", b"{}", n) == INVALID
        name = where(Key(0, where(x.bytes), 1, 1, 0))
        for rule in (
            Retention(best=1),
            Retention(by=name, n_by=1),
            Retention(best=1, n_by=1),
            Retention(best=1, by=where(Key(1, None, 0, 0, 0)), n_by=1),
            Retention(last=1, n_keys=1),
        ):
            assert core.call("retain", x.history, where(rule)) == INVALID
        assert core.call("retain", x.history, None) == INVALID
        for n in NEGATIVE:
            for rule in (Retention(last=n), Retention(every=n), Retention(best=n, by=name, n_by=1)):
                assert core.call("retain", x.history, where(rule)) == INVALID
            assert core.call("stats", x.store, where(x.bytes), n, where(c.c_int64())) == INVALID
            room = where(x.bytes)
            assert core.call("plan_next", x.history, room, n, where(c.c_int64()), where(PlanRestore())) == INVALID


def regions_that_cannot_be(core: Core) -> None:
    with opened(core) as x:
        here = where(x.bytes)
        shape, strides = (c.c_int64 * 3)(2, 3, 4), (c.c_int64 * 3)(12, 4, 1)

        def refused(*regions: Region, slot: int = 128) -> None:
            array = (Region * len(regions))(*regions)
            status, _ = x.checkpoint(
                regions=where(array), n_regions=len(regions), slot_bytes=slot, layout=here, layout_len=len(regions) + 20
            )
            assert status in (INVALID, TIER_FULL), (status, core.text())

        refused(Region(None, 0, 10, None, None, 0, 0))
        for n in BIG + NEGATIVE:
            refused(Region(here, 0, n, None, None, 0, 0))
            refused(Region(here, n, 10, None, None, 0, 0))
            refused(Region(here, n, n, None, None, 0, 0), slot=n)
        refused(Region(here, 0, 129, None, None, 0, 0))
        refused(Region(here, 0, 20, None, None, 0, 0), Region(here, 10, 20, None, None, 0, 0))
        refused(Region(here, 50, 20, None, None, 0, 0), Region(here, 0, 20, None, None, 0, 0))
        for axes in (-1, 65, 1 << 20, 2**31 - 1, -(2**31)):
            refused(Region(here, 0, 24, where(shape), where(strides), axes, 1))
        refused(Region(here, 0, 24, None, where(strides), 3, 1))
        refused(Region(here, 0, 24, where(shape), None, 3, 1))
        refused(Region(here, 0, 25, where(shape), where(strides), 3, 1))
        for item in (0, -1, 2, 2**31 - 1):
            refused(Region(here, 0, 24, where(shape), where(strides), 3, item))
        for n in [*NEGATIVE, 2**62]:
            wrong = (c.c_int64 * 3)(2, n, 4)
            refused(Region(here, 0, 24, where(wrong), where(strides), 3, 1))
        # The same layout with other regions.
        status, _ = x.checkpoint(n_regions=1)
        assert status == INVALID


def many_at_once(core: Core) -> None:
    with opened(core) as x:
        done = c.c_int64()

        def captured(*keys: int, n: int | None = None, **changes: Any) -> tuple[int, int]:
            """Of changes, those of the third checkpoint."""
            args = (CheckpointArgs * max(len(keys), 1))()
            outs = (Outcome * max(len(keys), 1))()
            for i, key in enumerate(keys):
                args[i] = x.checkpoint_args(**{"key": Key(key, None, 0, 0, 0), **(changes if i == 2 else {})})
            done.value = -1
            status = core.call(
                "checkpoint_many", x.history, where(args), len(keys) if n is None else n, where(outs), where(done)
            )
            assert all((out.ticket != 0) == (i < done.value) for i, out in enumerate(outs))
            return status, done.value

        def there() -> int:
            count = c.c_int64()
            assert core.call("history_len", x.history, where(count)) == OK
            return count.value

        assert captured() == (OK, 0)
        assert captured(1, 2, 3, 2, 1) == (OK, 5)
        assert there() == 3
        for n in (-1, 2**20 + 1, 2**62, -(2**63)):
            assert captured(1, n=n) == (INVALID, 0)
        for wrong in ({"n_regions": -1}, {"layout_len": -1}, {"regions": None}, {"key": Key(1, None, 0, 9, 0)}):
            assert captured(10, 11, 12, 13, **wrong) == (INVALID, 0), wrong  # nothing is begun
            assert there() == 3
        assert captured(10, 11, 12, 13, tier=0) == (UNAVAILABLE, 2)  # those before it stand
        assert there() == 5
        assert captured(20, 21, 22, slot_bytes=10) == (INVALID, 2)
        assert there() == 7


def destinations_that_do_not_match(core: Core) -> None:
    with opened(core) as x:
        to = c.create_string_buffer(200)
        into = (Region * 3)(Region(where(to), 0, 60, None, None, 0, 0), Region(where(to) + 60, 0, 40, None, None, 0, 0))
        assert x.restore(into=where(into), n_into=2)[0] == OK
        assert to.raw[:100] == bytes(range(100))
        for n in (0, 1, 3):
            assert x.restore(into=where(into), n_into=n)[0] == INVALID
        into[1].nbytes = 41
        assert x.restore(into=where(into), n_into=2)[0] == INVALID
        assert core.error.region == 1
        into[1] = Region(None, 0, 40, None, None, 0, 0)
        assert x.restore(into=where(into), n_into=2)[0] == INVALID
        for wrong in ([-1], [2], [1, 0], [0, 0], [2**31 - 1], [-(2**31)]):
            select = (c.c_int32 * len(wrong))(*wrong)
            assert x.restore(select=where(select), n_select=len(wrong))[0] == INVALID, wrong
        nothing = (c.c_int32 * 1)()
        status, out = x.restore(select=where(nothing), n_select=0, into=where(into), n_into=0)
        assert (status, out.lease) == (OK, 0)
        assert x.restore(expected_layout=x.out.layout + 1)[0] == -9


def parts_that_cannot_be(core: Core) -> None:
    with opened(core) as x:
        to = c.create_string_buffer(200)
        into = (Region * 2)(Region(where(to), 0, 12, None, None, 0, 0), Region(where(to) + 60, 0, 40, None, None, 0, 0))
        shape, strides = (c.c_int64 * 2)(3, 2), (c.c_int64 * 2)(20, 5)
        good = Part(1, 2, where(shape), where(strides), 2, 0)

        def restored(part: Part, n: int = 2, **changes: Any) -> int:
            parts = (Part * 2)(part, Part(0, 40, None, None, 0, 0))
            return x.restore(**{"into": where(into), "n_into": n, "parts": where(parts), **changes})[0]

        def refused(part: Part) -> None:
            assert restored(part) == INVALID
            assert core.error.region == 0
            assert to.raw == before

        assert restored(good) == OK, core.text()
        rows = [bytes([at, at + 1]) for row in range(3) for at in (1 + 20 * row, 6 + 20 * row)]
        assert to.raw[:12] == b"".join(rows)
        assert to.raw[60:100] == bytes(range(60, 100))
        before = to.raw
        assert restored(good, into=None, n_into=0) == INVALID  # a lease
        for n in (0, 1, -1, 2**62):
            assert restored(good, n=n) == INVALID
        for n in (-1, 61, 2**31, 2**63 - 1, -(2**63)):
            refused(Part(n, 2, where(shape), where(strides), 2, 0))
            refused(Part(1, n, where(shape), where(strides), 2, 0))
            refused(Part(1, 2, where((c.c_int64 * 2)(n, 2)), where(strides), 2, 0))
            refused(Part(1, 2, where(shape), where((c.c_int64 * 2)(n, 5)), 2, 0))
        for axes in (-1, 65, 2**31 - 1, -(2**31)):
            refused(Part(1, 2, where(shape), where(strides), axes, 0))
        refused(Part(1, 2, None, where(strides), 2, 0))
        refused(Part(1, 2, where(shape), None, 2, 0))
        refused(Part(1, 2, where(shape), where((c.c_int64 * 2)(20, 1)), 2, 0))
        refused(Part(1, 2, where(shape), where((c.c_int64 * 2)(4, 10)), 2, 0))
        refused(Part(0, 11, None, None, 0, 0))
        refused(Part(49, 12, None, None, 0, 0))
        into[0].nbytes = 0
        assert restored(Part(60, 0, None, None, 0, 0)) == OK
        refused(Part(61, 0, None, None, 0, 0))


def keys(core: Core) -> None:
    with opened(core) as x:
        nul = c.create_string_buffer(b"a\0b", 3)
        for kind in (3, -1, 2**31 - 1, -(2**31)):
            assert x.checkpoint(key=Key(1, None, 0, kind, 0))[0] == INVALID
            assert x.restore(key=Key(1, None, 0, kind, 0))[0] == INVALID
        assert x.restore(key=Key(1, None, 0, 2, 0))[0] == INVALID  # no key of one's own to restore
        for n in BIG + NEGATIVE:
            assert x.checkpoint(key=Key(0, where(nul), n, 1, 0))[0] == INVALID
            assert x.checkpoint(key=Key(0, None, n, 1, 0))[0] == INVALID
        assert x.checkpoint(key=Key(0, where(nul), 3, 1, 0))[0] == OK
        assert x.restore(key=Key(0, where(nul), 1, 1, 0))[0] == NOT_FOUND
        assert x.checkpoint(key=Key(0, None, 0, 1, 0))[0] == OK
        length, buffer = c.c_int64(), c.create_string_buffer(1000)
        assert core.call("keys", x.history, where(buffer), 1000, where(length)) == OK
        assert length.value == 3 * 16 + 3
        assert buffer.raw[: length.value].endswith(b"a\0b" + bytes([1, 0, 0, 0]) + bytes(12))
        for number in (2**63 - 1, -(2**63)):
            assert x.checkpoint(key=Key(number, None, 0, 0, 0))[0] == OK
            assert x.restore(key=Key(number, None, 0, 0, 0), flags=1)[1].lease != 0
        status, out = x.checkpoint(key=Key(0, None, 0, 2, 0))
        assert status == OK, core.text()
        assert core.call("drop", x.history, where(Key(out.key_number, None, 0, 0, 0))) == OK
        assert core.call("drop", x.history, where(Key(out.key_number, None, 0, 0, 0))) == NOT_FOUND


def hints(core: Core) -> None:
    with opened(core) as x:
        queued = c.c_int64()
        for op in (4, -1, 2**31 - 1):
            item = HintItem(Key(1, None, 0, 0, 0), op, 0)
            assert core.call("hint", x.history, where(item), 1, where(queued)) == INVALID
        for steps in BIG + NEGATIVE + [0]:
            items = (HintItem * 4)(
                *[HintItem(Key(steps, None, 0, 0, 0), 3, 0)] * 3, HintItem(Key(1, None, 0, 0, 0), 0, 0)
            )
            assert core.call("hint", x.history, where(items), 4, where(queued)) == OK
        assert queued.value > 0
        assert core.call("hint_clear", x.history) == OK
        assert core.call("hint", x.history, None, 0, where(queued)) == OK
        assert queued.value == 0


def loops_over_a_plan(core: Core) -> None:
    """What is taken and put back, with numbers and keys that nobody gave."""
    with opened(core) as x:
        text = c.create_string_buffer(b"a\0b", 3)
        items = (HintItem * 3)(
            HintItem(Key(1, None, 0, 0, 0), 0, 0), HintItem(Key(0, where(text), 3, 1, 0), 1, 0), HintItem(Key(7), 2, 0)
        )
        assert core.call("hint", x.history, where(items), 3, where(c.c_int64())) == OK
        room, length, taken = c.create_string_buffer(100), c.c_int64(), PlanRestore()

        def take(capacity: int = 100) -> bytes:
            assert core.call("plan_next", x.history, where(room), capacity, where(length), where(taken)) == OK
            return room.raw[: length.value]

        first = bytes(8) + (1).to_bytes(8, "little")
        second = bytes([1, 0, 0, 0, 3, 0, 0, 0]) + bytes(8) + b"a\0b"
        for capacity in (0, 1, 15):
            take(capacity)
            assert length.value == 16  # it does not fit, and stays
        assert take() == first
        assert taken.last == 0
        number = taken.number
        assert take() == second
        assert taken.last == 1
        assert take() == b""
        for wrong in BIG + NEGATIVE:
            assert core.call("plan_undo", x.history, where(Key(5, None, 0, 0, 0)), wrong, 0) == OK
        assert take() == b""
        for kind in (2, 3, -1, 2**31 - 1):
            assert core.call("plan_undo", x.history, where(Key(1, None, 0, kind, 0)), number, 0) == INVALID
        for _ in range(3):
            assert core.call("plan_undo", x.history, where(Key(0, where(text), 3, 1, 0)), number + 1, 1) == OK
            assert core.call("plan_undo", x.history, where(Key(1, None, 0, 0, 0)), number, 0) == OK
        assert take() == first
        assert take() == second
        assert take() == b""
        assert core.call("hint_clear", x.history) == OK
        assert core.call("plan_undo", x.history, where(Key(1, None, 0, 0, 0)), number, 0) == OK
        assert take() == b""


def leases_for_the_last_time(core: Core) -> None:
    with opened(core) as x:
        length, info = c.c_int64(), Info()

        def count() -> int:
            assert core.call("history_len", x.history, where(length)) == OK
            return length.value

        key = Key(2, None, 0, 0, 0)
        assert x.checkpoint(key=key)[0] == OK
        for _ in range(2):
            status, out = x.restore(key=key, flags=1)
            assert (status, out.flags & 4) == (OK, 4)
            assert count() == 1
            assert core.call("lookup", x.history, where(key), where(info)) == NOT_FOUND
            assert core.call("describe", x.history, where(key), None, 0, where(length)) == NOT_FOUND
            assert x.restore(key=key)[0] == NOT_FOUND
            assert core.call("lease_release", out.lease, None, 0) == OK  # not taken: it is back
            assert count() == 2
        status, out = x.restore(key=key, flags=1)
        assert status == OK
        assert x.checkpoint(key=key)[0] == OK  # a new version: that one stays
        for _ in range(2):
            assert core.call("lease_take", out.lease) == OK
        assert core.call("lease_release", out.lease, None, 0) == OK
        assert core.call("lease_take", out.lease) == STALE
        assert count() == 2
        status, out = x.restore(key=key, flags=1)
        assert core.call("lease_take", out.lease) == OK
        assert core.call("lease_release", out.lease, None, 0) == OK
        assert count() == 1
        assert core.call("drop", x.history, where(key)) == NOT_FOUND
        assert x.checkpoint(key=key)[0] == OK
        status, out = x.restore(key=key, flags=1)
        assert core.call("drop", x.history, where(key)) == NOT_FOUND  # hidden, and dropped all the same
        assert core.call("lease_release", out.lease, None, 0) == OK
        assert count() == 1
        status, out = x.restore(key=Key(1, None, 0, 0, 0))
        assert (status, out.flags & 4) == (OK, 0)
        assert core.call("lease_take", out.lease) == OK  # nothing for others
        assert core.call("lease_release", out.lease, None, 0) == OK


def tiers_and_flags(core: Core) -> None:
    with opened(core) as x:
        out = Outcome()
        for tier, refused in ((3, UNAVAILABLE), (0, UNAVAILABLE), (7, INVALID), (-2, INVALID), (2**31 - 1, INVALID)):
            assert core.call("wait", x.store, 0, x.out.ticket, tier, x.fd, where(out)) == refused, tier
            assert x.checkpoint(tier=tier)[0] == refused, tier
        for flags in (2**31 - 1, -1, 1 << 20):
            status, out = x.checkpoint(flags=flags, key=Key(5, None, 0, 0, 0))
            assert status == OK
            assert core.finish(core.call("wait", x.store, 0, out.ticket, NO_TIER, x.fd, where(out)), out, x.fd) == OK
        for fd in (-1, -(2**31)):  # nobody to wake: the caller asks again and again
            args, out = RestoreArgs(), Outcome()
            args.key, args.event_fd = Key(1, None, 0, 0, 0), fd
            status = core.call("restore", x.history, where(args), where(out))
            while status in (PENDING, AGAIN):
                status = core.call("step", out.op, where(out))
            assert status == OK
            assert core.call("lease_release", out.lease, None, 0) == OK


def one_operation_from_two_threads(core: Core) -> None:
    """Stepped in one thread and cancelled in another at the same moment, an operation ends once."""
    with opened(core) as x, ThreadPoolExecutor(2) as pool:
        together = Barrier(2)

        def step(op: int) -> int:
            together.wait(20)
            while (status := core.call("step", op, where(Outcome()))) in (PENDING, AGAIN):
                pass
            return status

        def cancel(op: int) -> int:
            together.wait(20)
            return core.call("cancel", op, None)

        met = 0
        for i in range(300):
            status, out = x.checkpoint(key=Key(100 + i % 10, None, 0, 0, 0))
            assert status == OK
            if core.call("wait", x.store, 0, out.ticket, DISK, x.fd, where(out)) == PENDING:
                stepped, cancelled = pool.submit(step, out.op), pool.submit(cancel, out.op)
                assert stepped.result(20) in (OK, STALE)
                assert cancelled.result(20) in (OK, STALE)
                assert core.call("step", out.op, where(out)) == STALE
                met += 1
        assert met > 0


def configurations(core: Core) -> None:
    handle = c.c_uint64()
    Path("a file").touch()
    host = {"host": 1 << 20}
    for text in (
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"host": -1}',
        b'{"host": 0}',
        b'{"host": 1e30}',
        b'{"host": "1GiB"}',
        b'{"host": 1.5}',
        b'{"host": NaN}',
        b'{"disk": 1048576}',
        b"{}",
        b'{"host": 9223372036854775807}',
        *[
            json.dumps({**host, **more}).encode()
            for more in (
                {"flush": "soon"},
                {"policy": "mru"},
                {"verify": "maybe"},
                {"workers": -1},
                {"workers": 10**9},
                {"copiers": 10**9},
                {"copiers": -1},
                {"timeline": -1},
                {"disk": -5, "path": "."},
                {"disk": 2**62, "path": "."},
                {"disk": 1 << 20, "path": ""},
                {"disk": 1 << 20, "path": "a file"},
                {"disk": 1 << 20, "path": "a file/below"},
            )
        ],
    ):
        assert core.call("open", text, len(text), where(handle)) == INVALID, (text, core.text())
        assert core.text()
    out, fd = Outcome(), os.eventfd(0, os.EFD_NONBLOCK)
    with opened(core) as x:
        for text in (
            b"",
            b"{",
            b"[]",
            b"\xff\xfe",
            b'{"devices": 1}',
            b'{"devices": [{"bytes": 1.5}]}',
            b'{"host": -1}',
            b'{"host": 0.5}',
            b'{"host": 1152921504606846976}',
            b'{"trim": 1}',
        ):
            assert core.call("resize", x.store, text, len(text), fd, where(out)) == INVALID, (text, core.text())
        for text in (b'{"devices": [{}]}', b'{"devices": [{"ordinal": 3, "bytes": 1}]}'):
            assert core.call("resize", x.store, text, len(text), fd, where(out)) == UNAVAILABLE, (text, core.text())
        assert core.call("resize", x.store, b"{}", 2, fd, where(out)) == OK
    huge = json.dumps({"host": 1 << 20, "disk": 1 << 59, "path": "."}).encode()
    assert core.call("open", huge, len(huge), where(handle)) == OK  # a budget, not a reservation
    assert core.finish(core.call("close", handle.value, fd, where(out)), out, fd) == OK
    os.close(fd)


def small_buffers(core: Core) -> None:
    with opened(core) as x:
        key = Key(1, None, 0, 0, 0)
        for name, handles in {
            "stats": [x.store],
            "keys": [x.history],
            "describe": [x.history, where(key)],
            "layout": [x.store, x.out.layout],
        }.items():
            length = c.c_int64()
            assert core.call(name, *handles, None, 0, where(length)) == OK
            n = length.value
            assert n > 0
            buffer = c.create_string_buffer(b"\xaa" * (n + 200), n + 200)
            assert core.call(name, *handles, where(buffer), n - 1, where(length)) == OK
            if name != "stats":  # whose length may change from call to call
                assert buffer.raw == b"\xaa" * (n + 200), name
            assert core.call(name, *handles, where(buffer), n + 200, where(length)) == OK
            assert buffer.raw[length.value :] == b"\xaa" * (n + 200 - length.value), name
        json.loads(c.string_at(where(buffer), 0) or b"{}")


def descriptions(core: Core) -> None:
    with opened(core) as x:
        status, out = x.checkpoint(meta=c.cast(c.c_char_p(b"note"), Pointer), meta_len=4)
        assert status == OK
        buffer, length, key = c.create_string_buffer(1000), c.c_int64(), Key(1, None, 0, 0, 0)
        assert core.call("describe", x.history, where(key), where(buffer), 1000, where(length)) == OK
        numbers = memoryview(buffer.raw[: length.value - 4]).cast("Q").tolist()
        assert [numbers[0], *numbers[2:6]] == [out.ticket, out.layout, 128, 2, 4]
        assert (len(numbers), numbers[7], numbers[9]) == (10, 0, 0)
        assert buffer.raw[length.value - 4 : length.value] == b"note"
        for n in NEGATIVE:
            assert core.call("describe", x.history, where(key), where(buffer), n, where(length)) == INVALID
        assert core.call("describe", x.history, where(Key(1, None, 0, 7, 0)), None, 0, where(length)) == INVALID


def after_close(core: Core) -> None:
    x = Opened(core)
    status, lent = x.restore()
    assert status == OK
    fd = os.dup(x.fd)
    x.close()
    key, out, n = Key(1, None, 0, 0, 0), Outcome(), c.c_int64()
    for name, arguments in {
        "history_clear": [x.history],
        "retain": [x.history, where(Retention(last=1))],
        "hint_clear": [x.history],
        "prefetch": [x.history],
        "drop": [x.history, where(key)],
        "history_len": [x.history, where(n)],
        "lookup": [x.history, where(key), where(Info())],
        "describe": [x.history, where(key), None, 0, where(n)],
        "restore": [x.history, where(RestoreArgs()), where(out)],
        "ticket": [x.store, x.out.ticket, where(TicketState())],
        "checkpoint": [x.history, where(x.checkpoint_args()), where(out)],
        "stats": [x.store, None, 0, where(n)],
        "wait": [x.store, 0, 0, NO_TIER, fd, where(out)],
        "resize": [x.store, b"{}", 2, fd, where(out)],
        "history": [x.store, b"h", 1, where(c.c_uint64())],
        "keys": [x.history, None, 0, where(n)],
        "hint": [x.history, None, 0, None],
        "plan_next": [x.history, None, 0, where(n), where(PlanRestore())],
        "plan_undo": [x.history, where(key), 0, 0],
    }.items():
        assert core.call(name, *arguments) == CLOSED, (name, core.text())
    assert core.call("timeline", x.store, 0, None, 0, where(n)) == OK
    assert core.finish(core.call("close", x.store, fd, where(out)), out, fd) == OK
    for name, arguments in {
        "timeline": [x.store, 0, None, 0, where(n)],
        "close": [x.store, fd, where(out)],
        "history_len": [x.history, where(n)],
    }.items():
        assert core.call(name, *arguments) == STALE, (name, core.text())
    assert c.string_at(lent.base, 60) == bytes(range(60))
    assert core.call("lease_meta", lent.lease, None, 0, where(n)) == OK
    assert core.call("lease_take", lent.lease) == OK
    assert core.call("lease_release", lent.lease, None, 0) == OK
    os.close(fd)


def hooks_are_off(core: Core) -> None:
    with opened(core) as x:
        assert core.call("test_panic", 0) == UNAVAILABLE
        assert core.call("test_corrupt", x.history, where(Key(1, None, 0, 0, 0)), HOST, 0) == UNAVAILABLE
        assert core.call("init", b'{"max_procs": 77}', 17) == INVALID


def texts_are_cut_whole(core: Core) -> None:
    with opened(core) as x:
        name = ("é" * 5000).encode()
        handle = c.c_uint64()
        assert core.call("history", x.store, name, len(name), where(handle)) == OK
        for extra in (b"", b"a"):
            name = extra + name
            assert core.call("history", x.store, name, len(name), where(handle)) == OK
            assert core.call("drop", handle.value, where(Key(1, None, 0, 0, 0))) == NOT_FOUND
            assert 990 < core.error.text_len <= 1004
            core.text()


def durable_in_the_end(core: Core) -> None:
    with opened(core) as x:
        out = Outcome()
        assert core.finish(core.call("wait", x.store, x.history, 0, DISK, x.fd, where(out)), out, x.fd) == OK
        state = TicketState()
        assert core.call("ticket", x.store, x.out.ticket, where(state)) == OK
        assert (state.flags, state.durable, state.failed) == (1, 1 << HOST | 1 << DISK, 0)


TESTS: dict[str, Callable[[Core], None]] = {
    f.__name__: f
    for f in (
        null_pointers,
        handles_that_name_nothing,
        counts_and_sizes,
        regions_that_cannot_be,
        destinations_that_do_not_match,
        parts_that_cannot_be,
        many_at_once,
        keys,
        hints,
        loops_over_a_plan,
        leases_for_the_last_time,
        tiers_and_flags,
        one_operation_from_two_threads,
        configurations,
        small_buffers,
        descriptions,
        after_close,
        hooks_are_off,
        texts_are_cut_whole,
        durable_in_the_end,
    )
}


def main() -> None:
    core = Core(Path(sys.argv[1]))
    assert core.call("init", b"{}", 2) == OK
    for name, test in TESTS.items():
        print(json.dumps(["begin", name]), flush=True)
        wrong = None
        try:
            test(core)
        except Exception:
            wrong = traceback.format_exc() + "\ncore: " + core.text()
        print(json.dumps(["end", name, wrong]), flush=True)


if __name__ == "__main__":
    main()
