"""Limits of the process that the core has to stay within.

Go ends the process where it may not map address space or start a thread, at its start or later. Schedulers limit both:
address space by ``RLIMIT_AS`` (``ulimit -v``), threads by ``pids.max`` of a cgroup or ``RLIMIT_NPROC`` (``ulimit -u``).
So both are looked at before the core is loaded.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path

from . import _core, cgroups
from .budget import GIB, MIB
from .errors import CoreUnavailable, InvalidBudget
from .quantity import sized

#: Address space in bytes that stores at work map beside their host tiers. Measured on x86-64 with Go 1.26: 1.1 GiB for
#: Go's heap at once, and for each thread a stack and an arena of malloc; 2.0 GiB with 2 processors, 2.6 GiB with 64.
ADDRESS_SPACE = 3 * GIB

#: How much has to be left beside a store's host tier once the core is loaded, which has mapped most of its part.
_SPARE = 512 * MIB

#: Threads that a core with few processors has at work: 8 were seen with 2 processors, 14 with 16, 32 with 64.
_THREADS = 12

#: Length of a thread's stack that `ADDRESS_SPACE` allows for, and glibc's where RLIMIT_STACK says nothing.
_STACK, _UNLIMITED_STACK = 8 * MIB, 2 * MIB


@dataclass(frozen=True)
class Room:
    """What this process may still take, and what the core needs. Bytes of address space, and numbers of threads."""

    #: None: no limit.
    address_space: int | None
    needed_address_space: int
    threads: int
    needed_threads: int

    @property
    def enough(self) -> bool:
        """Whether the core can be loaded."""
        return self.short_of() is None

    def short_of(self) -> str | None:
        """What there is too little of, with both numbers; None where there is enough.

        Examples
        --------
        >>> from velocpy.limits import Room
        >>> print(Room(1 << 30, 3 << 30, 13, 13).short_of())
        RLIMIT_AS leaves 1.0 GiB of address space, and the core needs 3.0 GiB
        >>> print(Room(None, 3 << 30, 4, 13).short_of())
        this process may start 4 more threads, and the core needs 13
        """
        if self.address_space is not None and self.address_space < self.needed_address_space:
            return (
                f"RLIMIT_AS leaves {sized(self.address_space)} of address space, and the core needs "
                f"{sized(self.needed_address_space)}"
            )
        if self.threads < self.needed_threads:
            return f"this process may start {self.threads} more threads, and the core needs {self.needed_threads}"
        return None

    @property
    def remedy(self) -> str:
        """What to do about that."""
        if self.address_space is not None and self.address_space < self.needed_address_space:
            return (
                "Raise it (ulimit -v, or what the scheduler calls virtual memory: h_vmem, pvmem), or ask the scheduler "
                "for a limit on memory in use instead. Address space is not memory: most of it is never touched."
            )
        return (
            "Raise the limit on threads (pids.max of the cgroup, --pids-limit of the container, ulimit -u), or let the "
            "core use fewer processors: VELOCPY_MAX_PROCS=2."
        )


def room(processors: int | None = None, *, loaded: bool = False) -> Room:
    """What there is and what is needed. Starts that many threads for a moment, unless ``pids.max`` forbids it.

    Parameters
    ----------
    processors
        How many the core may use; None: as many as the process.
    loaded
        Whether the core is, which has mapped its part by then.

    Examples
    --------
    >>> from velocpy import limits
    >>> limits.room().enough
    True
    """
    threads, space = _threads_of(processors), _beside(processors, loaded)
    left = address_space_left()
    if left is not None and left < space:
        return Room(left, space, 0, threads)  # threads could not tell which of the limits keeps them away
    allowed = cgroups.left("pids")
    if allowed is not None and allowed < threads:
        return Room(left, space, allowed, threads)  # starting them would keep others of the cgroup from starting any
    return Room(left, space, _core.startable_threads(threads), threads)


def require(processors: int | None = None) -> None:
    """Refuses to load the core where it would end the process.

    Raises
    ------
    CoreUnavailable
        Names the number found and the number needed.
    """
    _refuse_where_short(room(processors), "Nothing was loaded.")


def within_address_space(host: int, processors: int | None = None, *, loaded: bool = False) -> int:
    """The bytes of a host tier that velocpy chooses: half of the address space that is left for one, or less.

    Parameters
    ----------
    host
        Bytes that the memory has room for.
    processors
        How many the core may use; None: as many as the process.
    loaded
        Whether the core is, which has mapped its part by then.

    Examples
    --------
    >>> from velocpy import limits
    >>> limits.within_address_space(1 << 20)
    1048576
    """
    left = address_space_left()
    if left is None:
        return host
    return min(host, max(64 * MIB, (left - _beside(processors, loaded)) // 2))


def require_address_space(host: int, processors: int | None = None, *, loaded: bool = False) -> None:
    """Refuses to open a store where the core, or the core and the store's host tier, find too little address space.

    Parameters
    ----------
    host
        Bytes of the tier; 0 without one.
    processors
        How many the core may use; None: as many as the process.
    loaded
        Whether the core is, which has mapped its part by then.

    Raises
    ------
    CoreUnavailable
        The core alone does not fit: no budget would. Names the number found and the number needed.
    InvalidBudget
        The core fits, and the host tier does not fit beside it. Names the same numbers and the budget.

    Examples
    --------
    >>> from velocpy import limits
    >>> limits.require_address_space(1 << 20)
    """
    left, beside = address_space_left(), _beside(processors, loaded)
    if left is None:
        return
    threads = _threads_of(processors)
    _refuse_where_short(Room(left, beside, threads, threads), "Nothing was opened.")
    if left < host + beside:
        raise InvalidBudget(
            f"host is {sized(host)}, RLIMIT_AS leaves {sized(left)} of address space, and the core needs "
            f"{sized(beside)} beside the tier: Go would end the process. Nothing was opened. Give host= less, or "
            "raise the limit (ulimit -v; the scheduler's limit on virtual memory)."
        )


def _refuse_where_short(found: Room, state: str) -> None:
    """Raises CoreUnavailable where there is too little; ``state`` says what has not happened."""
    short = found.short_of()
    if short is not None:
        raise CoreUnavailable(f"{short}: Go would end the process. {state} {found.remedy}")


def _threads_of(processors: int | None) -> int:
    """Threads of a core with so many processors at work."""
    return _THREADS + (processors or len(os.sched_getaffinity(0))) // 2


def _beside(processors: int | None, loaded: bool) -> int:
    """Bytes of address space that the core needs beside host tiers: all of it, or the rest once it is loaded."""
    return (_SPARE if loaded else ADDRESS_SPACE) + _threads_of(processors) * max(0, _stack() - _STACK)


def address_space_left() -> int | None:
    """Bytes that this process may still map; None without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        pages = 0
    return max(0, limit - pages * resource.getpagesize())


def _stack() -> int:
    """Bytes that a new thread's stack takes."""
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return _UNLIMITED_STACK if limit == resource.RLIM_INFINITY else limit
