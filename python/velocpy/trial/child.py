"""The process that tries: it says what it begins and what it finds, one JSON line each. It may be killed."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable
from typing import Any

from .course import COURSE
from .finding import Finding, failed, refused
from .place import Place

#: What is begun behind the last trial.
END = "cleaning up"


def main(path: str, names: Iterable[str]) -> None:
    """Runs the trials of these names in a directory, and cleans up also when it is terminated."""
    signal.signal(signal.SIGTERM, _end)
    with Place(path) as place:
        writable = True
        for name in names:
            if COURSE[name].writes and not writable:
                continue
            _say({"begun": name})
            finding = attempt(name, place)
            _say({"finding": finding.named(name)})
            if name == "directory" and finding.verdict == "failed":
                writable = False
                if not os.path.isdir(path):  # noqa: PTH112 - the name may be of any bytes
                    break
        _say({"begun": END})
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end has come


def _end(*_: object) -> None:
    """Ends the process once: what cleans up is not interrupted."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def attempt(name: str, place: Place) -> Finding:
    """One trial. Whatever goes wrong in it is a finding."""
    try:
        return COURSE[name].look(place)
    except OSError as error:
        return refused(error)
    except Exception as error:
        return failed(f"{type(error).__name__}: {error}", "This is a defect of velocpy: please report it.")


def _say(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")
