"""Arrays of libraries that velocpy does not know: what shows its memory by a protocol and by nothing else."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

CUDA, CUDA_MANAGED = 2, 13
READ_ONLY, COPIED = 1, 2

#: DLPack's codes and bits of some dtypes.
WORDS = {"|u1": (1, 8), "<i4": (0, 32), "<f4": (2, 32), "<c8": (5, 64), "=bfloat16": (4, 16)}


class Interface:
    """What has nothing but ``__cuda_array_interface__``."""

    def __init__(self, **interface: Any) -> None:
        whole = {"shape": (2, 3), "typestr": "<f4", "data": (0x7F0000000000, False), "version": 3}
        self.__cuda_array_interface__ = whole | interface


class DLTensor(ctypes.Structure):
    """DLPack's struct of that name."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Unversioned(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_opened = ctypes.pythonapi.PyCapsule_GetPointer
_opened.restype, _opened.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_named = ctypes.pythonapi.PyCapsule_GetName
_named.restype, _named.argtypes = ctypes.c_char_p, (ctypes.py_object,)

_NAMES = {True: b"dltensor_versioned", False: b"dltensor"}


class Dlpack:
    """What has nothing but DLPack.

    ``ordered`` is called with the consumer's stream, as a producer would make that one wait for its own. ``returned``
    counts the capsules that a consumer has let go of. Fields of the struct are overridden by name, or ``null``.
    """

    def __init__(
        self,
        address: int = 0x7F0000000000,
        shape: tuple[int, ...] = (2, 3),
        typestr: str = "<f4",
        *,
        strides: tuple[int, ...] | None = None,
        flags: int = 0,
        version: tuple[int, int] | None = (1, 0),
        ordered: Callable[[int | None], None] = lambda stream: None,
        null: tuple[str, ...] = (),
        **fields: Any,
    ) -> None:
        code, bits = WORDS[typestr]
        self.device = (CUDA, 0)
        self.streams: list[int | None] = []
        self.returned = 0
        self._version = version
        self._ordered = ordered
        self._keep: list[Any] = []
        self._described = (
            {
                "data": address,
                "device_type": CUDA,
                "device_id": 0,
                "ndim": len(shape),
                "code": code,
                "bits": bits,
                "lanes": 1,
                "shape": (ctypes.c_int64 * len(shape))(*shape),
                "strides": None if strides is None else (ctypes.c_int64 * len(strides))(*strides),
                "byte_offset": 0,
            }
            | fields
            | dict.fromkeys(null)
        )
        self._flags = flags

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> Any:
        self.streams.append(stream)
        self._ordered(stream)
        versioned = self._version is not None
        held: Any = Versioned() if versioned else Unversioned()
        for name, value in self._described.items():
            if name in ("shape", "strides") and value is not None:
                value = ctypes.cast(value, ctypes.POINTER(ctypes.c_int64))
            if value is not None:
                setattr(held.tensor, name, value)
        if versioned:
            held.version[:] = self._version
            held.flags = self._flags
        deleter = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self._take_back)
        held.deleter = ctypes.cast(deleter, ctypes.c_void_p)
        self._keep.append((held, deleter))
        return _new(ctypes.addressof(held), _NAMES[versioned], None)

    def _take_back(self, held: int) -> None:
        self.returned += 1


class Seen:
    """What a capsule shows to a consumer, which does not take it over."""

    def __init__(self, capsule: Any) -> None:
        self.name = _named(capsule)
        pointer = _opened(capsule, self.name)
        self.versioned = self.name == _NAMES[True]
        held: Any = (Versioned if self.versioned else Unversioned).from_address(pointer)
        self.flags = held.flags if self.versioned else None
        tensor = held.tensor
        self.address, self.device = tensor.data, (tensor.device_type, tensor.device_id)
        self.word = (tensor.code, tensor.bits, tensor.lanes)
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self.strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
