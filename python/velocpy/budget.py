"""Budgets of the tiers: sizes as people write them, and what "auto" means on this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from . import cgroups
from .choices import DeviceBudgets
from .errors import InvalidArgument, InvalidBudget
from .quantity import sized

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40

#: Letters alone are powers of 1024, as in ulimit and dd; with a B they are what the standards say.
_UNITS = {
    "": 1,
    "b": 1,
    "k": KIB,
    "m": MIB,
    "g": GIB,
    "t": TIB,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": TIB,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*", re.ASCII)
_LARGEST = 1 << 60
#: ``4e9`` is a number of bytes. A smaller float, like 2.0, may be meant as a share, as GiB, or as 200 %.
_LEAST_FLOAT = 10**6
_OF_NODE = re.compile(r"(.*)/\s*node\s*", re.ASCII | re.IGNORECASE)
#: What a budget may be, as messages say it.
FORMS = (
    'Give bytes as an int, a text like "4GiB", "500 MB" or "1.5G", "64GiB/node" for all processes of the node, '
    'a share of what is free as 0.25 or "25%", "auto", or None for a tier that is not used.'
)

_DEVICE_FORMS = (
    'Give bytes, a text like "4GiB", a share of what is free as 0.25 or "25%", or a mapping of devices to these.'
)

#: Of a device whose arrays are captured into host memory: the least that a device maps. What is larger passes it by.
_PASSED_BY = 2 * MIB

_AUTO_SHARE = 4
_AUTO_MOST = 32 * GIB
_AUTO_LEAST = 64 * MIB


def parse_size(size: object, name: str, least: int = 1) -> int:
    """Bytes of a size, which is no less than ``least``.

    Examples
    --------
    >>> from velocpy.budget import parse_size
    >>> parse_size("1.5 KiB", "host"), parse_size("2kB", "host"), parse_size(7, "host")
    (1536, 2000, 7)
    """
    nbytes = _bytes_of(size, name)
    if not least <= nbytes <= _LARGEST:
        raise InvalidBudget(
            f"{name} is {size!r}: a budget has at least {sized(least)} and at most {sized(_LARGEST)}. {FORMS}"
        )
    return nbytes


def _bytes_of(size: object, name: str) -> int:
    if isinstance(size, bool):
        raise InvalidBudget(f"{name} is {size!r}, which is no size. {FORMS}")
    if isinstance(size, Integral):
        return int(size)
    if isinstance(size, Real):
        number = float(size)
        if not number.is_integer() or number < _LEAST_FLOAT:
            raise InvalidBudget(
                f"{name} is {size!r}, which is neither a share (a float between 0 and 1) nor bytes (an int, or a whole "
                f"float from 1e6 up). {FORMS}"
            )
        return int(number)
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        if match and match[2].lower() in _UNITS:
            return (
                int(float(match[1]) * _UNITS[match[2].lower()])
                if "." in match[1]
                else int(match[1]) * _UNITS[match[2].lower()]
            )
    raise InvalidBudget(f"{name} is {size!r}, which is no size. {FORMS}")


def reads_as_size(text: str) -> bool:
    """Whether a text is a budget with a unit, a share, or "auto". Names like "7b" and "2024" are none.

    Examples
    --------
    >>> from velocpy.budget import reads_as_size
    >>> reads_as_size("64MiB"), reads_as_size("25%"), reads_as_size("7b"), reads_as_size("2024")
    (True, True, False, False)
    """
    if text == "auto":
        return True
    if text.endswith("%"):
        return _SIZE.fullmatch(text[:-1]) is not None
    whole = _OF_NODE.fullmatch(text)
    match = _SIZE.fullmatch(text if whole is None else whole[1])
    return match is not None and _UNITS.get(match[2].lower(), 1) > 1


def share_of(size: object, name: str, processes: int, least: int = 1) -> int:
    """Bytes of one process: the size, which is no less than ``least``, or its share where the size is that of a node.

    Examples
    --------
    >>> from velocpy.budget import share_of
    >>> share_of("1KiB/node", "host", processes=4), share_of("1KiB", "host", processes=4)
    (256, 1024)
    """
    whole = _OF_NODE.fullmatch(size) if isinstance(size, str) else None
    if whole is None:
        return parse_size(size, name, least)
    share = parse_size(whole[1], name) // processes
    if share == 0:
        raise InvalidBudget(f"{name} is {size!r}, which leaves nothing for each of the node's {processes} processes.")
    return share


def host_budget(size: object, processes: int = 1) -> int | None:
    """Bytes of the host tier; a process's part of a fraction of the memory available, or of "auto".

    "auto" is a quarter, at most 32 GiB for a process.
    """
    if size is None:
        return None
    relative = _host_part(size, processes, 0)
    return share_of(size, "host", processes) if relative is None else relative


def _host_part(size: object, processes: int, own: int) -> int | None:
    """Bytes of a size that depends on the memory available, of which a store has ``own`` itself; None for others."""
    if size == "auto":
        return max(_AUTO_LEAST, min(_AUTO_MOST, (available_memory() + own) // _AUTO_SHARE // processes))
    fraction = _fraction(size, "host", FORMS)
    return None if fraction is None else max(1, int((available_memory() + own) * fraction) // processes)


def new_host_budget(size: object, most: int, own: int, processes: int = 1) -> int:
    """Bytes of the host tier of an open store, which has ``own`` bytes of memory and can have ``most``.

    What depends on the memory available is ``most`` where it would be more.

    Examples
    --------
    >>> from velocpy.budget import new_host_budget
    >>> new_host_budget("1KiB", 4096, 0), new_host_budget(0, 4096, 0), new_host_budget(1.0, 4096, 0)
    (1024, 0, 4096)
    """
    relative = _host_part(size, processes, own)
    return share_of(size, "host", processes, least=0) if relative is None else min(relative, most)


def new_disk_budget(size: object, path: Path, own: int, processes: int = 1) -> int:
    """Bytes of the disk tier of an open store, which has ``own`` bytes at the path; a fraction counts them as free."""
    fraction = _fraction(size, "disk", FORMS)
    if fraction is None and size != "auto":
        return share_of(size, "disk", processes, least=0)
    free = shutil.disk_usage(path).free + own
    return max(_AUTO_LEAST, free // 2 // processes) if fraction is None else max(1, int(free * fraction) // processes)


def device_budgets(device: DeviceBudgets | None, least: int = 1) -> list[dict[str, int | float]]:
    """What `velocpy.open` was told of devices, as the core wants it: per device its number and bytes, or a share.

    No budget may have less than ``least`` bytes.

    Examples
    --------
    >>> from velocpy.budget import device_budgets
    >>> device_budgets({"cuda:1": "1GiB"}), device_budgets({0: "25%"})
    ([{'ordinal': 1, 'bytes': 1073741824}], [{'ordinal': 0, 'share': 0.25}])
    """
    if device is None:
        return []
    sizes: Mapping[Any, Any] = device if isinstance(device, Mapping) else {_current_device(): device}
    return [{"ordinal": _ordinal(name), **_part(size, least)} for name, size in sizes.items()]


def passed_by(ordinals: Iterable[int]) -> dict[int, int] | None:
    """Budgets of devices whose arrays are to be captured into host memory; None without a device.

    A store takes arrays only of devices that have a budget. This one is small, so that hardly any checkpoint fits.

    Examples
    --------
    >>> from velocpy.budget import passed_by
    >>> passed_by([1]), passed_by([])
    ({1: 2097152}, None)
    """
    return dict.fromkeys(sorted(set(ordinals)), _PASSED_BY) or None


def _part(size: object, least: int) -> dict[str, int | float]:
    fraction = _fraction(size, "device", _DEVICE_FORMS)
    if fraction is not None:
        return {"share": fraction}
    if isinstance(size, str) and _OF_NODE.fullmatch(size):
        raise InvalidBudget(f"device is {size!r}; budgets of devices are those of each process. {_DEVICE_FORMS}")
    return {"bytes": parse_size(size, "device", least)}


def _fraction(size: object, name: str, forms: str) -> float | None:
    """The fraction of what is free that a budget names; None where it names none."""
    fraction = None
    if isinstance(size, str) and size.strip().endswith("%"):
        try:
            fraction = float(size.strip()[:-1]) / 100
        except ValueError:
            raise InvalidBudget(f"{name} is {size!r}, which is no size. {forms}") from None
    elif isinstance(size, Real) and not isinstance(size, Integral) and 0 < float(size) <= 1:
        fraction = float(size)
    if fraction is not None and not 0 < fraction <= 1:
        raise InvalidBudget(f"{name} is {size!r}: a share lies above 0 and at 100 % at most. {forms}")
    return fraction


def _ordinal(name: object) -> int:
    number = name
    if isinstance(name, str) and re.fullmatch(r"cuda:\d+", name):
        number = int(name[5:])
    if isinstance(number, bool) or not isinstance(number, Integral) or not 0 <= int(number) < 1 << 16:
        raise InvalidArgument(f"device names {name!r}; devices are numbers or texts like 'cuda:0'.")
    return int(number)


def _current_device() -> int:
    """The device that is current in torch, or else in CuPy, if the application has loaded one of them; 0 otherwise."""
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch, "cuda", None) is not None and torch.cuda.is_initialized():
        return int(torch.cuda.current_device())
    if "cupy" in sys.modules:
        return int(sys.modules["cupy"].cuda.runtime.getDevice())
    return 0


def disk_budget(size: object, path: Path | None, processes: int = 1) -> int | None:
    """Bytes of the disk tier; a process's part of a fraction of what is free at a path, or of "auto".

    "auto" is half of it, or no tier without a path; a fraction is one of the directory for temporary files then.
    """
    if size is None:
        return None
    fraction = _fraction(size, "disk", FORMS)
    if fraction is not None:
        return max(1, int(shutil.disk_usage(path or tempfile.gettempdir()).free * fraction) // processes)
    if size == "auto":
        if path is None:
            return None
        return max(_AUTO_LEAST, shutil.disk_usage(path).free // 2 // processes)
    return share_of(size, "disk", processes)


def available_memory() -> int:
    """Bytes that this process may still use: what the machine has left, or less where its cgroup says so."""
    machine, group = _machine_memory_left(), cgroups.left("memory")
    return machine if group is None else min(machine, group)


def machine_memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _machine_memory_left() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * KIB
    except (OSError, ValueError, IndexError):
        pass
    return machine_memory()
