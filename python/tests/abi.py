"""The contract of the core as ctypes sees it: for tests that speak to the core without the shim."""

from __future__ import annotations

import ctypes as c
import os
import select
from pathlib import Path
from typing import Any

Pointer = c.c_void_p


class Error(c.Structure):
    _fields_ = (
        ("status", c.c_int32),
        ("os_errno", c.c_int32),
        ("tier", c.c_int32),
        ("region", c.c_int32),
        ("text_len", c.c_int32),
        ("text", c.c_char * 1004),
    )


class Key(c.Structure):
    _fields_ = (
        ("number", c.c_int64),
        ("text", Pointer),
        ("text_len", c.c_int64),
        ("kind", c.c_int32),
        ("reserved", c.c_int32),
    )


class Region(c.Structure):
    _fields_ = (
        ("data", Pointer),
        ("offset", c.c_int64),
        ("nbytes", c.c_int64),
        ("shape", Pointer),
        ("strides", Pointer),
        ("ndim", c.c_int32),
        ("itemsize", c.c_int32),
        ("place", c.c_int32),
        ("reserved", c.c_int32),
    )


class CheckpointArgs(c.Structure):
    _fields_ = (
        ("key", Key),
        ("regions", Pointer),
        ("n_regions", c.c_int64),
        ("layout", Pointer),
        ("layout_len", c.c_int64),
        ("slot_bytes", c.c_int64),
        ("meta", Pointer),
        ("meta_len", c.c_int64),
        ("flags", c.c_int32),
        ("tier", c.c_int32),
        ("event_fd", c.c_int32),
        ("n_streams", c.c_int32),
        ("streams", Pointer),
    )


class Part(c.Structure):
    _fields_ = (
        ("offset", c.c_int64),
        ("itemsize", c.c_int64),
        ("shape", Pointer),
        ("strides", Pointer),
        ("ndim", c.c_int32),
        ("reserved", c.c_int32),
    )


class RestoreArgs(c.Structure):
    _fields_ = (
        ("key", Key),
        ("select", Pointer),
        ("n_select", c.c_int64),
        ("into", Pointer),
        ("n_into", c.c_int64),
        ("expected_layout", c.c_uint64),
        ("flags", c.c_int32),
        ("event_fd", c.c_int32),
        ("streams", Pointer),
        ("n_streams", c.c_int32),
        ("reserved", c.c_int32),
        ("parts", Pointer),
    )


class Outcome(c.Structure):
    _fields_ = (
        ("op", c.c_uint64),
        ("ticket", c.c_uint64),
        ("lease", c.c_uint64),
        ("layout", c.c_uint64),
        ("base", Pointer),
        ("slot_bytes", c.c_int64),
        ("meta_len", c.c_int64),
        ("hints_left", c.c_int64),
        ("key_number", c.c_int64),
        ("waited_ns", c.c_int64),
        ("flags", c.c_int32),
        ("place", c.c_int32),
    )


class Info(c.Structure):
    _fields_ = (
        ("ticket", c.c_uint64),
        ("layout", c.c_uint64),
        ("slot_bytes", c.c_int64),
        ("payload_bytes", c.c_int64),
        ("meta_len", c.c_int64),
        ("tiers", c.c_int32),
        ("ready", c.c_int32),
        ("captured_ns", c.c_int64),
    )


class Retention(c.Structure):
    _fields_ = (
        ("last", c.c_int64),
        ("every", c.c_int64),
        ("keys", Pointer),
        ("n_keys", c.c_int64),
        ("best", c.c_int64),
        ("by", Pointer),
        ("n_by", c.c_int64),
        ("named", c.c_int32),
        ("largest", c.c_int32),
    )


class HintItem(c.Structure):
    _fields_ = (("key", Key), ("op", c.c_int32), ("reserved", c.c_int32))


class PlanRestore(c.Structure):
    _fields_ = (("number", c.c_int64), ("last", c.c_int32), ("reserved", c.c_int32))


class TicketState(c.Structure):
    _fields_ = (("flags", c.c_int32), ("durable", c.c_int32), ("failed", c.c_int32), ("reserved", c.c_int32))


#: The contract's structs by their names there.
STRUCTS: dict[str, type[c.Structure]] = {
    "veloc_error": Error,
    "veloc_key": Key,
    "veloc_region": Region,
    "veloc_checkpoint_args": CheckpointArgs,
    "veloc_part": Part,
    "veloc_restore_args": RestoreArgs,
    "veloc_outcome": Outcome,
    "veloc_info": Info,
    "veloc_retention": Retention,
    "veloc_hint_item": HintItem,
    "veloc_plan_restore": PlanRestore,
    "veloc_ticket_state": TicketState,
}

I32, I64, U64 = c.c_int32, c.c_int64, c.c_uint64

#: Parameters of every function but the error, which comes last, and what has none.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "init": (Pointer, I64),
    "build_info": (Pointer, I64, Pointer),
    "in_use": (Pointer, I64, Pointer),
    "drain_log": (Pointer, I64, Pointer),
    "test_panic": (I32,),
    "test_corrupt": (U64, Pointer, I32, I64),
    "open": (Pointer, I64, Pointer),
    "close": (U64, I32, Pointer),
    "abandon": (U64,),
    "resize": (U64, Pointer, I64, I32, Pointer),
    "stats": (U64, Pointer, I64, Pointer),
    "timeline": (U64, I32, Pointer, I64, Pointer),
    "history": (U64, Pointer, I64, Pointer),
    "history_clear": (U64,),
    "retain": (U64, Pointer),
    "reduce": (U64, Pointer, I64),
    "course": (U64, Pointer, I64, Pointer),
    "history_len": (U64, Pointer),
    "keys": (U64, Pointer, I64, Pointer),
    "lookup": (U64, Pointer, Pointer),
    "describe": (U64, Pointer, Pointer, I64, Pointer),
    "checkpoint": (U64, Pointer, Pointer),
    "checkpoint_many": (U64, Pointer, I64, Pointer, Pointer),
    "restore": (U64, Pointer, Pointer),
    "drop": (U64, Pointer),
    "layout": (U64, U64, Pointer, I64, Pointer),
    "lease_meta": (U64, Pointer, I64, Pointer),
    "lease_take": (U64,),
    "lease_release": (U64, Pointer, I32),
    "lease_use": (U64, U64),
    "lease_read": (U64, I64, I64, Pointer),
    "hint": (U64, Pointer, I64, Pointer),
    "simulate": (Pointer, I64, Pointer, I64, Pointer),
    "doctor": (Pointer, I64, Pointer, I64, Pointer),
    "inspect": (Pointer, I64, Pointer, I64, Pointer, I64, Pointer),
    "hint_clear": (U64,),
    "plan_next": (U64, Pointer, I64, Pointer, Pointer),
    "plan_undo": (U64, Pointer, I64, I32),
    "prefetch": (U64,),
    "ticket": (U64, U64, Pointer),
    "wait": (U64, U64, U64, I32, I32, Pointer),
    "step": (U64, Pointer),
    "cancel": (U64, Pointer),
}

OK, PENDING, AGAIN = 0, 1, 2
INVALID, NOT_FOUND, CLOSED, STALE, TIER_FULL, UNAVAILABLE, POISONED = -1, -2, -3, -4, -5, -13, -10
HOST, DISK, NO_TIER = 1, 2, -1


class Core:
    """The core's functions, called by their names without the prefix; the error of the latest call is kept."""

    def __init__(self, path: Path) -> None:
        self._library = c.CDLL(str(path))
        self.error = Error()
        for name, parameters in FUNCTIONS.items():
            function = getattr(self._library, "veloc_" + name)
            function.argtypes = (*parameters, Pointer)
            function.restype = I32

    def call(self, name: str, *arguments: Any) -> int:
        c.memset(c.byref(self.error), 0, c.sizeof(self.error))
        status: int = getattr(self._library, "veloc_" + name)(*arguments, c.addressof(self.error))
        assert status >= 0 or self.error.status == status, (name, status, self.error.status)
        return status

    def silent(self, name: str, *arguments: Any) -> int:
        """The same without a place for the error."""
        return int(getattr(self._library, "veloc_" + name)(*arguments, None))

    def text(self) -> str:
        return bytes(self.error)[Error.text.offset :][: self.error.text_len].decode("utf-8", "surrogatepass")

    def finish(self, status: int, out: Outcome, fd: int) -> int:
        """Drives an operation to its end."""
        op = out.op
        while status > 0:
            if status == PENDING:
                select.select([fd], [], [], 10)
                os.eventfd_read(fd)
            status = self.call("step", op, c.addressof(out))
        return status


class Address(int):
    """An address that keeps what lies there."""

    thing: Any


def where(thing: Any) -> Address:
    address = Address(c.addressof(thing))
    address.thing = thing
    return address
