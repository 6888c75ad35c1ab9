"""What this machine has for a store, and what is wrong with it: ``velocpy doctor``."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from velocpy import _core, knobs, limits
from velocpy.errors import InvalidArgument, VelocError
from velocpy.opening import open as open_store
from velocpy.quantity import sized
from velocpy.trial import filesystem, system, watch

from .terms import in_terms_of_commands

WORKS = "the host and disk tiers work"


def examine(
    device: int | None = None, *, rates: bool = True, path: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """Looks at the host and disk tiers, at the driver, and at what lies between them and the GPUs.

    It takes a second or two for each GPU, some 200 MiB of memory on either side, and fails in nothing: what fails is a
    finding. With a path it tries what a store needs there, in a directory of its own that it removes, for ten seconds
    at most; a disk that does not answer is a finding too.

    Parameters
    ----------
    device
        The number of one GPU; None for all that the process sees.
    rates
        Whether copies and the disk's rates are measured. Without, a machine that is at work is hardly disturbed.
    path
        The directory of a store that is, or that may be.

    Returns
    -------
    dict
        ``verdict``, the worst of all: "ok", "warning" or "failed"; ``gpus``, how many can be used; ``findings``, each
        with ``what``, ``verdict`` (also "not there"), ``text``, and, where they make sense, ``device``, ``remedy``,
        ``facts`` (bytes, and bytes per second).

    Examples
    --------
    >>> from velocpy.cli import diagnosis
    >>> report = diagnosis.examine(rates=False)
    >>> [finding["verdict"] for finding in report["findings"] if finding["what"] == "host and disk tiers"]
    ['ok']
    """
    if device is not None and device < 0:
        raise InvalidArgument(f"device is {device}; numbers begin with 0.")
    place = None if path is None else _place(path)
    limited = _limits()
    if any(finding["verdict"] == "failed" for finding in limited):
        return {"verdict": "failed", "gpus": 0, "findings": limited}
    knobs.load_core()
    found = [*limited, _tiers(), _temporary(), *([] if place is None else watch.run(place, rates=rates))]
    request = {"device": device, "kernels": knobs.kernels_path(), "rates": rates}
    report: dict[str, Any] = json.loads(_core.doctor(json.dumps(request)))
    report["findings"] = found + report["findings"]
    verdicts = {report["verdict"], *(finding["verdict"] for finding in found)}
    report["verdict"] = next(verdict for verdict in ("failed", "warning", "ok") if verdict in verdicts)
    if place is not None:
        report["path"] = os.fsencode(place).decode(errors="replace")
    return report


def _place(path: str | os.PathLike[str]) -> str:
    place = os.fsdecode(path)
    if not place or "\0" in place:
        raise InvalidArgument(f"path is {place!r}, which names nothing.")
    return place


def _limits() -> list[dict[str, Any]]:
    """Whether the core can be loaded: where it cannot, Go would end the process, and nothing else can be tried."""
    room = limits.room(knobs.max_procs(), loaded=_core.loaded())
    space, facts = room.address_space, {"needed_bytes": room.needed_address_space}
    text = "any amount may be mapped" if space is None else f"{sized(space)} may be mapped"
    first = {
        "what": "address space",
        "verdict": "ok",
        "text": text,
        "facts": facts | ({"bytes": space} if space else {}),
    }
    if space is not None and space < room.needed_address_space:
        return [first | {"verdict": "failed", "text": f"{room.short_of()}", "remedy": room.remedy}]
    facts = {"needed": room.needed_threads, "startable": room.threads}
    second = {"what": "threads", "verdict": "ok", "text": f"{room.threads} can be started", "facts": facts}
    if not room.enough:
        second |= {"verdict": "failed", "text": f"{room.short_of()}", "remedy": room.remedy}
    return [first, second]


def _tiers() -> dict[str, Any]:
    """Sends checkpoints through memory and disk and compares what comes back."""
    found = {"what": "host and disk tiers", "verdict": "ok", "text": "checkpoints came back as they went"}
    states = np.random.default_rng(0).integers(0, 256, (8, 1 << 18), dtype=np.uint8)
    try:
        with open_store(host="1MiB", disk="4MiB") as store:
            history = store.history("doctor")
            for key, state in enumerate(states):
                history.checkpoint(key, state=state)
            same = all(np.array_equal(history.restore(key)["state"], state) for key, state in enumerate(states))
    except (VelocError, OSError) as error:
        remedy = "See whether the folder for temporary files (TMPDIR) can be written to, and what limits memory."
        return found | {"verdict": "failed", "text": in_terms_of_commands(str(error)), "remedy": remedy}
    if not same:
        remedy = "Test the machine's memory and disk, and report it."
        return found | {"verdict": "failed", "text": "checkpoints came back changed", "remedy": remedy}
    return found


def _temporary() -> dict[str, Any]:
    """Where the files of stores without a path lie, and whether that is memory."""
    directory = tempfile.gettempdir()
    found: dict[str, Any] = {"what": "temporary files", "facts": {"path": directory}}
    try:
        kind, free = system.magic(Path(directory)), shutil.disk_usage(directory).free
    except OSError as error:
        remedy = "Set TMPDIR to a directory on a disk that this user may write to."
        return found | {"verdict": "failed", "text": f"{directory}: {error.strerror}", "remedy": remedy}
    found["facts"] |= {"magic": kind, "free_bytes": free}
    known = filesystem.KINDS.get(kind)
    text = f"{sized(free)} free in {directory}" + ("" if known is None else f" ({known.name})")
    if kind not in filesystem.MEMORY:
        return found | {"verdict": "ok", "text": text}
    text += ": files of stores without a path lie in memory"
    return found | {"verdict": "warning", "text": text, "remedy": "Set TMPDIR to a directory on a disk."}


def lines(report: dict[str, Any], width: int | None = None) -> Iterator[str]:
    """A report as a table for people, with what helps below what is wrong, and a last line that sums it up.

    Parameters
    ----------
    report
        What `examine` returned.
    width
        Columns of the terminal; None breaks no lines.

    Examples
    --------
    >>> from velocpy.cli import diagnosis
    >>> finding = {"what": "link", "device": 0, "verdict": "ok", "text": "PCIe 5 x16"}
    >>> print(*diagnosis.lines({"verdict": "ok", "gpus": 1, "findings": [finding]}), sep=chr(10))
    ok  cuda:0 link  PCIe 5 x16
    1 GPU can be used; nothing to complain about
    """
    rows = [
        (f["verdict"], _name(f), [f["text"], *([f["remedy"]] if f.get("remedy") else [])]) for f in report["findings"]
    ]
    first, second = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
    room = None if width is None else max(width - first - second - 4, 30)
    for verdict, name, texts in rows:
        head = f"{verdict:<{first}}  {name:<{second}}  "
        for line in (part for text in texts for part in _broken(text, room)):
            yield head + line
            head = " " * len(head)
    yield _sum(report)


def _name(finding: dict[str, Any]) -> str:
    what: str = finding["what"]
    return what if "device" not in finding else f"cuda:{finding['device']} {what}"


def _broken(text: str, room: int | None) -> list[str]:
    if room is None:
        return [" ".join(text.split())]
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)


def _sum(report: dict[str, Any]) -> str:
    count = Counter(finding["verdict"] for finding in report["findings"])
    warnings = f"{count['warning']} warning{'s' if count['warning'] > 1 else ''}"
    gpus = f"{report['gpus']} GPU{'s' if report['gpus'] > 1 else ''} can be used"
    if count["failed"]:
        return f"{count['failed']} failed; {gpus if report['gpus'] else 'no GPU can be used'}"
    if not report["gpus"]:
        return f"no GPU: {WORKS}" + (f"; {warnings}" if count["warning"] else "")
    return f"{gpus}; {warnings if count['warning'] else 'nothing to complain about'}"
