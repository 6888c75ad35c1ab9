"""What the control groups (cgroups) of this process allow it, in either version of the hierarchy.

A limit of a group counts for all groups below it, so the tightest one from the process's group up to the root counts.
Inside a container the groups above the container's own cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

#: Where the groups are mounted, and the file that names those of this process.
ROOT, MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

#: Names of the files with the limit and with the use of a controller, in version 1 and in version 2.
_FILES = {
    "memory": (("memory.limit_in_bytes", "memory.usage_in_bytes"), ("memory.max", "memory.current")),
    "pids": (("pids.max", "pids.current"), ("pids.max", "pids.current")),
}
#: Version 1 says that there is no limit by a number near 2^63.
_NO_LIMIT = 1 << 60


def limit(controller: str) -> int | None:
    """The tightest limit of a controller, "memory" in bytes or "pids" in threads; None where none is set.

    Examples
    --------
    >>> from velocpy import cgroups
    >>> bytes_allowed = cgroups.limit("memory")
    >>> bytes_allowed is None or bytes_allowed > 0
    True
    """
    return min((most for most, _ in _limits(controller)), default=None)


def left(controller: str) -> int | None:
    """How much the tightest group leaves of a controller's limit; None where none is set.

    Examples
    --------
    >>> from velocpy import cgroups
    >>> threads_left = cgroups.left("pids")
    >>> threads_left is None or threads_left >= 0
    True
    """
    return min((max(0, most - used) for most, used in _limits(controller) if used is not None), default=None)


def _limits(controller: str) -> Iterator[tuple[int, int | None]]:
    """Limit and use of each group of this process that has a limit."""
    for directory, (limit_name, use_name) in _groups(controller):
        most = _number(directory / limit_name)
        if most is not None and most < _NO_LIMIT:
            yield most, _number(directory / use_name)


def _groups(controller: str) -> Iterator[tuple[Path, tuple[str, str]]]:
    """The directories of this process's groups, from its own up to the root, and the names of their files."""
    first, second = _FILES[controller]
    try:
        lines = MEMBERSHIP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        below = Path(path.lstrip("/"))
        if controllers == "":
            yield from ((ROOT / level, second) for level in (below, *below.parents))
        elif controller in controllers.split(","):
            yield from ((ROOT / controller / level, first) for level in (below, *below.parents))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None  # "max", or not there
