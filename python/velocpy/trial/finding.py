"""What a trial comes to, and what helps against the errors that any of them may meet."""

from __future__ import annotations

import dataclasses
import errno
import os
from typing import Any, Literal

Verdict = Literal["ok", "warning", "failed", "not there"]

NOTHING = "Nothing has to be done"

_REMEDIES = {
    errno.EACCES: "Give this user the right to write there, or choose another directory.",
    errno.EPERM: "Give this user the right to write there, or choose another directory.",
    errno.EROFS: "Mount it for writing, or choose another directory. After errors, file systems turn read-only.",
    errno.ENOSPC: "Free space or inodes there, or choose another directory.",
    errno.EDQUOT: "The quota is used up: remove files there, or ask for more.",
    errno.ENOENT: "Make it first: mkdir -p.",
    errno.ENOTDIR: "Name a directory.",
    errno.ELOOP: "Its links lead in a circle: name the directory itself.",
    errno.ENAMETOOLONG: "Name a shorter path.",
    errno.EIO: "The disk or its server fails: see the kernel's log, and keep nothing there that is needed.",
    errno.ESTALE: "The server has lost what is mounted there: mount it again.",
    errno.EMFILE: "Allow more open files: ulimit -n 4096.",
}


@dataclasses.dataclass(frozen=True)
class Finding:
    """What was found. Facts are in seconds, bytes, and bytes per second; whatever is not ok says what helps."""

    verdict: Verdict
    text: str
    remedy: str | None = None
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.verdict == "ok") != (self.remedy is None):
            raise ValueError(f"{self.verdict} with the remedy {self.remedy!r}: {self.text}")

    def named(self, what: str) -> dict[str, Any]:
        """The finding as the doctor's report has it."""
        parts = {"what": what, "verdict": self.verdict, "text": self.text, "remedy": self.remedy, "facts": self.facts}
        return {name: part for name, part in parts.items() if part}


def ok(text: str, **facts: Any) -> Finding:
    """Nothing to complain about."""
    return Finding("ok", text, None, facts)


def warning(text: str, remedy: str, **facts: Any) -> Finding:
    """It works, and could be faster, or behave in a way that a user does not expect."""
    return Finding("warning", text, remedy, facts)


def failed(text: str, remedy: str, **facts: Any) -> Finding:
    """A store will not work there."""
    return Finding("failed", text, remedy, facts)


def absent(text: str, remedy: str, **facts: Any) -> Finding:
    """It is not there, which is no fault."""
    return Finding("not there", text, remedy, facts)


def refused(error: OSError, doing: str = "it") -> Finding:
    """What the system's refusal of something means that every store needs."""
    code = error.errno or 0
    remedy = _REMEDIES.get(code, "See what the kernel's log or the file system's operator says of it.")
    return failed(f"{doing} failed: {os.strerror(code)}", remedy, errno=errno.errorcode.get(code, str(code)))


def unsupported(error: OSError) -> bool:
    """Whether the error says that the file system does not know how, rather than that something went wrong."""
    return error.errno in (errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL, errno.ENOTTY, errno.EISDIR)
