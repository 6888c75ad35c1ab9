"""Settings from the environment, read when the core is first loaded.

Go sees only the environment the process was started with, so Python reads it and hands the values over. Each knob can
be set by a variable, or for a while with `override`.

============================  =====================================================================
``VELOCPY_CORE``              path of the core to load instead of the one in the package
``VELOCPY_NODE_PROCESSES``    processes of the job on this node, which share budgets and processors; by
                              default what the launcher says: see `velocpy.node`
``VELOCPY_NODE``              name of this node, where ranks push together; by default that of the
                              host and its boot. Ranks of one name read each other's disks
``VELOCPY_MAX_PROCS``         processors the core may use; by default what the cgroup allows, and
                              where processes share the node the share of one, at most 8
``VELOCPY_GC_PERCENT``        Go's garbage collection target
``VELOCPY_MEMORY_LIMIT``      Go's soft memory limit, as a size; the tiers do not count
``VELOCPY_TEST_HOOKS``        1: the core can be told to fail, for tests
``VELOCPY_KILLPOINT``         with the hooks: ``place:n``, where the process kills itself, for tests
``VELOCPY_CATALOG_SLACK``     with the hooks: bytes a catalog may be too long before it is written anew
``VELOCPY_SEGMENT_BYTES``     with the hooks: length of the data files of a store that is made
``VELOCPY_EXIT_TIMEOUT``      seconds that open stores may take to close when Python exits
``VELOCPY_NVTX``              1: calls are NVTX ranges, for profilers: see `velocpy.ranges`
``VELOCPY_WATCH``             1: each store is published when it is opened, for ``velocpy top``
============================  =====================================================================
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import _core, limits, node
from ._version import __version__
from .budget import parse_size
from .errors import CoreUnavailable, InvalidArgument

#: The knobs, by the ends of their variables' names.
NAMES = (
    "core",
    "node_processes",
    "node",
    "max_procs",
    "gc_percent",
    "memory_limit",
    "test_hooks",
    "killpoint",
    "catalog_slack",
    "segment_bytes",
    "exit_timeout",
    "nvtx",
    "watch",
)

LIBRARY = "libvelocpy_core.so"
#: The GPU kernels. A build with VELOCPY_CUDA=0 has none.
KERNELS = "velocpy_kernels.fatbin"
_RANK_PROCS = 8

_overrides: dict[str, str | None] = {}
_state = {"ready": False}


@contextlib.contextmanager
def override(**values: Any) -> Iterator[None]:
    """Sets knobs for the length of a ``with`` block; None takes a knob back to its default.

    Raises
    ------
    InvalidArgument
        There is no knob of that name.

    Examples
    --------
    >>> from velocpy import knobs
    >>> with knobs.override(exit_timeout=1):
    ...     knobs.exit_timeout()
    1.0
    """
    for name in values:
        if name not in NAMES:
            raise InvalidArgument(f"there is no knob {name!r}; the knobs are {', '.join(NAMES)}.")
    before = dict(_overrides)
    _overrides.update({name: None if value is None else str(value) for name, value in values.items()})
    try:
        yield
    finally:
        _overrides.clear()
        _overrides.update(before)


def core_path() -> str:
    """Where the core is."""
    return _read("core") or str(Path(__file__).with_name(LIBRARY))


def kernels_path() -> str:
    """Where the GPU kernels are, if this build has any."""
    return str(Path(__file__).with_name(KERNELS))


def node_processes() -> int:
    """Processes that share this node's memory, disks and processors.

    Examples
    --------
    >>> from velocpy import knobs
    >>> with knobs.override(node_processes=4):
    ...     knobs.node_processes()
    4
    """
    text = _read("node_processes")
    return node.processes(os.environ) if text is None else _whole("node_processes", text, least=1)


def node_name() -> str:
    """What the node of this process is told from others by.

    Examples
    --------
    >>> from velocpy import knobs
    >>> with knobs.override(node="a"):
    ...     knobs.node_name()
    'a'
    """
    return _read("node") or node.name()


def max_procs() -> int | None:
    """Processors for the core; None leaves the choice to Go, which follows the cgroup."""
    text = _read("max_procs")
    if text is not None:
        return _whole("max_procs", text, least=1)
    sharing = node_processes()
    if sharing > 1:
        return max(1, min(_RANK_PROCS, len(os.sched_getaffinity(0)) // sharing))
    return None


def gc_percent() -> int | None:
    """Go's garbage collection target."""
    text = _read("gc_percent")
    return None if text is None else _whole("gc_percent", text, least=-1)


def memory_limit() -> int | None:
    """Go's soft memory limit in bytes."""
    text = _read("memory_limit")
    return None if text is None else parse_size(text, "VELOCPY_MEMORY_LIMIT")


def hooks() -> bool:
    """Whether the core accepts to be broken on purpose."""
    return _is_on("test_hooks")


def exit_timeout() -> float:
    """Seconds that open stores may take to close when Python exits."""
    text = _read("exit_timeout")
    try:
        seconds = 5.0 if text is None else float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise InvalidArgument(f"VELOCPY_EXIT_TIMEOUT is {text!r}; give seconds from 0 up.")
    return seconds


def marks_ranges() -> bool:
    """Whether the first store that is opened lets profilers see calls: see `velocpy.ranges`."""
    return _is_on("nvtx")


def publishes() -> bool:
    """Whether a store is published when it is opened: see `velocpy.Store.publish`."""
    return _is_on("watch")


def load_core() -> None:
    """Loads the core with the knobs as they are now; nothing when it is there already. Costs a few milliseconds once.

    Raises
    ------
    CoreUnavailable
        The core is not there, or this process may not map the address space or start the threads that it needs.
    """
    if _state["ready"]:
        return
    if not _core.loaded():
        limits.require(max_procs())
        _core.load(core_path(), _config())
    _require_same_version()
    _state["ready"] = True


def _config() -> str:
    values = {
        "max_procs": max_procs(),
        "gc_percent": gc_percent(),
        "memory_limit": memory_limit(),
        "test_hooks": hooks() or None,
        "kill_point": _read("killpoint") or None,
        "catalog_slack": _count("catalog_slack"),
        "segment_bytes": _count("segment_bytes"),
    }
    return json.dumps({name: value for name, value in values.items() if value is not None})


def _require_same_version() -> None:
    version = json.loads(_core.core_build_info()).get("version", "unknown")
    if version not in ("unknown", __version__):
        raise CoreUnavailable(
            f"the core at {_core.loaded_from()} is of velocpy {version}, the package of {__version__}. "
            "A core cannot be unloaded: restart Python; in a notebook, the kernel."
        )


def _read(name: str) -> str | None:
    if name in _overrides:
        return _overrides[name]
    return os.environ.get("VELOCPY_" + name.upper())


def _is_on(name: str) -> bool:
    return _read(name) not in (None, "", "0")


def _count(name: str) -> int | None:
    text = _read(name)
    return None if text is None else _whole(name, text, least=1)


def _whole(name: str, text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise InvalidArgument(f"VELOCPY_{name.upper()} is {text!r}; give a whole number from {least} up.")
    return value
