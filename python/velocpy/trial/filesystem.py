"""What kind of file system it is, and what is known of that kind."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

from . import system
from .finding import Finding, ok, warning
from .place import Place

_MEMORY = "What lies there goes when the machine restarts, and takes memory: choose a directory on a disk."
_NETWORK = "See that locks and syncs reach the server: no mount with 'nolock', no export with 'async'."
_UNKNOWN_SYNC = "What a sync means there is for its documentation to tell; a local disk is sure."
_READ_ONLY = "Choose a directory on a disk that can be written."


@dataclasses.dataclass(frozen=True)
class Kind:
    """A type of file system; caveat and remedy, where it is no ordinary disk."""

    name: str
    caveat: str | None = None
    remedy: str = ""


#: By the number of statfs(2).
KINDS = {
    0xEF53: Kind("ext2, ext3 or ext4"),
    0x58465342: Kind("XFS"),
    0x9123683E: Kind("Btrfs"),
    0x2FC12FC1: Kind("ZFS"),
    0xF2F52010: Kind("F2FS"),
    0xCA451A4E: Kind("bcachefs"),
    0x47504653: Kind("GPFS"),
    0x00C36400: Kind("CephFS"),
    0x19830326: Kind("BeeGFS"),
    0x0BD00BD0: Kind("Lustre"),
    0x01021994: Kind("tmpfs", "it is memory and not durable", _MEMORY),
    0x858458F6: Kind("ramfs", "it is memory and not durable", _MEMORY),
    0x958458F6: Kind("hugetlbfs", "it is memory and not durable", _MEMORY),
    0x6969: Kind("NFS", "locks and syncs are the server's", _NETWORK),
    0xFF534D42: Kind("CIFS", "locks and syncs are the server's", _NETWORK),
    0xFE534D42: Kind("SMB", "locks and syncs are the server's", _NETWORK),
    0x5346414F: Kind("AFS", "locks and syncs are the server's", _NETWORK),
    0x01021997: Kind("9P", "it is the host's, or another machine's", _UNKNOWN_SYNC),
    0x65735546: Kind("FUSE", "a program stands behind it", _UNKNOWN_SYNC),
    0x794C7630: Kind(
        "overlay",
        "it is mostly a container's own layer, which goes with the container",
        "Mount a volume or a directory of the host, and name that.",
    ),
    0x73717368: Kind("SquashFS", "it cannot be written", _READ_ONLY),
    0xE0F5E1E2: Kind("EROFS", "it cannot be written", _READ_ONLY),
    0x9660: Kind("ISO 9660", "it cannot be written", _READ_ONLY),
}

#: The numbers of those that are memory.
MEMORY = frozenset(number for number, kind in KINDS.items() if kind.remedy == _MEMORY)


@dataclasses.dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo."""

    point: str
    type: str
    options: frozenset[str]


def mount_of(path: Path, mountinfo: str) -> Mount | None:
    """The mount that a path lies on: the last one, and so the uppermost, of those with the longest name."""
    found = None
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if "-" not in fields[6:]:
            continue
        tail = fields[fields.index("-", 6) + 1 :]
        point = _plain(fields[4])
        inside = point == "/" or str(path) == point or str(path).startswith(point + "/")
        if inside and len(tail) >= 3 and (found is None or len(point) >= len(found.point)):
            found = Mount(point, tail[0], frozenset(fields[5].split(",") + tail[2].split(",")))
    return found


def _plain(text: str) -> str:
    """The text without the kernel's escapes for spaces and the like."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def look(place: Place) -> Finding:
    """Names the type, and warns of what it may lack."""
    number = system.magic(place.path)
    mount = mount_of(Path(os.path.realpath(place.path)), _mountinfo())
    facts: dict[str, Any] = {"magic": number}
    if mount is not None:
        facts |= {"type": mount.type, "mount": mount.point, "options": sorted(mount.options)}
    return _judge(number, mount, facts)


def _judge(number: int, mount: Mount | None, facts: dict[str, Any]) -> Finding:
    kind = KINDS.get(number)
    if kind is None:
        name = mount.type if mount else "a type unknown to velocpy"
        return ok(f"{name} (0x{number:x}), of which nothing particular is known", **facts)
    name = kind.name
    if mount is not None:
        name = (
            mount.type
            if mount.type.lower() in kind.name.lower() or kind.name == "FUSE"
            else f"{kind.name} ({mount.type})"
        )
        name += f", mounted on {mount.point}"
    if kind.name == "Lustre" and mount is not None:
        return _lustre(name, mount, facts)
    if kind.caveat is None:
        return ok(name, **facts)
    return warning(f"{name}: {kind.caveat}", kind.remedy, **facts)


def _lustre(name: str, mount: Mount, facts: dict[str, Any]) -> Finding:
    if "flock" in mount.options:
        return ok(name, **facts)
    reach = "only within a machine ('localflock')" if "localflock" in mount.options else "not at all"
    remedy = "Have it mounted with '-o flock'; until then see yourself that one process alone writes a store."
    return warning(f"{name}: locks hold {reach}", remedy, **facts)


def _mountinfo() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
