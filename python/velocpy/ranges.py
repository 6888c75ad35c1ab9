"""NVTX ranges around the calls of velocpy, for Nsight Systems and other profilers: ``VELOCPY_NVTX=1``.

A range begins when an application calls and ends when the call returns; copies that a device does later, in the order
of a stream, are the profiler's own rows. Ranges are named after the method and the history, ``checkpoint forward``, and
lie in the domain "velocpy". They come by the package nvtx, or else by torch.cuda.nvtx, which has no domains: there
their names begin with ``velocpy.``.

The methods are replaced when the first store is opened with that setting. Without it nothing is: it costs no time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from .extra import MissingLibrary


class Ranges(Protocol):
    """How a profiler is told of ranges, which nest in each thread."""

    def push(self, name: str) -> None:
        """Begins a range."""

    def pop(self) -> None:
        """Ends the range that began last in this thread."""


_marked: set[tuple[type, str]] = set()


def mark(methods: Mapping[type, tuple[str, ...]]) -> None:
    """Replaces methods of classes by such as tell a profiler when they run; a second call is nothing.

    Raises
    ------
    MissingLibrary
        There is neither nvtx nor a PyTorch with CUDA. Nothing was replaced.
    """
    left = [(cls, name) for cls, names in methods.items() for name in names if (cls, name) not in _marked]
    if not left:
        return
    ranges = available()
    for cls, name in left:
        setattr(cls, name, ranged(getattr(cls, name), ranges))
        _marked.add((cls, name))


def ranged(method: Callable[..., Any], ranges: Ranges) -> Callable[..., Any]:
    """A method that does the same inside of a range."""
    called = {"__next__": "restore_iter"}.get(method.__name__, method.__name__)

    @functools.wraps(method)
    def within(self: Any, *arguments: Any, **named: Any) -> Any:
        history = getattr(getattr(self, "_history", self), "name", None)
        ranges.push(called if history is None else f"{called} {_printable(history)}")
        try:
            return method(self, *arguments, **named)
        finally:
            ranges.pop()

    return within


def _printable(name: str) -> str:
    """A name without lone surrogates: NVTX takes UTF-8."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode("utf-8")


def available() -> Ranges:
    """What this process can tell a profiler by.

    Raises
    ------
    MissingLibrary
    """
    try:
        return OfNvtx()
    except ImportError:
        pass
    try:
        return OfTorch()
    except (ImportError, RuntimeError):  # a PyTorch without CUDA has functions that raise
        raise MissingLibrary("nvtx", "VELOCPY_NVTX=1", "pip install nvtx, or PyTorch with CUDA") from None


class OfNvtx:
    """By the package nvtx. What it needs of a range is made once for each name."""

    def __init__(self) -> None:
        import nvtx

        self._domain = nvtx.get_domain("velocpy")
        self._attributes: dict[str, Any] = {}

    def push(self, name: str) -> None:
        """Begins a range."""
        known = self._attributes.get(name)
        if known is None:
            known = self._attributes[name] = self._domain.get_event_attributes(message=name)
        self._domain.push_range(known)

    def pop(self) -> None:
        """Ends a range."""
        self._domain.pop_range()


class OfTorch:
    """By torch.cuda.nvtx."""

    def __init__(self) -> None:
        from torch.cuda import nvtx

        self._nvtx: Any = nvtx
        self._nvtx.range_push("velocpy")  # which raises here rather than in the first call
        self._nvtx.range_pop()

    def push(self, name: str) -> None:
        """Begins a range."""
        self._nvtx.range_push(f"velocpy.{name}")

    def pop(self) -> None:
        """Ends a range."""
        self._nvtx.range_pop()
