"""The watcher of the process that tries: no disk holds it up."""

from __future__ import annotations

import contextlib
import json
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from .child import END
from .course import COURSE
from .finding import NOTHING, Finding, absent, failed

#: Seconds for all trials; for their process to begin, to clean up, and to do so when it is told to end.
ALL, START, CLEAN, GRACE = 10.0, 10.0, 3.0, 1.0

#: So many trials may owe their answers before the rest is left out.
PATIENCE = 2

RATES = "disk rates"

# The package is taken as it lies there, without what importing it means: NumPy and the core would only cost time.
_BOOT = """
import json, sys, types
request = json.loads(sys.argv[1])
package = sys.modules["velocpy"] = types.ModuleType("velocpy")
package.__path__ = [request["package"]]
from velocpy.trial.child import main
main(request["path"], request["names"])
"""


def run(path: str, *, rates: bool = True) -> list[dict[str, Any]]:
    """Tries what a directory can do: findings as the doctor's report has them, after ten seconds or little more.

    Nothing of the directory is touched but a directory of its own, which goes in the end. It is left behind where the
    disk does not answer; a later run removes it.
    """
    return _Watch(path, [name for name in COURSE if rates or name != RATES]).findings


def command(path: str, names: Sequence[str]) -> list[str]:
    """The process that tries: an interpreter with its own library and nothing else."""
    request = {"package": str(Path(__file__).parents[1]), "path": path, "names": names}
    return [sys.executable, "-I", "-S", "-c", _BOOT, json.dumps(request)]


class _Watch:
    """Goes through the trials, with a process that is begun anew behind one that gave no answer."""

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self.findings: list[dict[str, Any]] = []
        self._left = list(names)
        self._seconds = ALL
        for _ in range(PATIENCE):
            missing = self._once(path)
            if missing in (None, "directory") or not self._left:
                return
        remedy = f"{NOTHING} about these: see first why there was no answer."
        self.findings.append(absent(f"left out: {', '.join(self._left)}", remedy).named("other trials"))

    def _once(self, path: str) -> str | None:
        """Lets one process try what is left; the trial that owes its answer, if any. That is a finding then."""
        with _Process(command(path, self._left)) as process:
            current, limit = "", START
            while True:
                allowed = min(limit, self._seconds) if current else limit
                began = time.monotonic()
                try:
                    message = process.message(allowed)
                except TimeoutError:
                    return self._missing(current, _silent(allowed) if current else _unborn(allowed))
                if current:
                    self._seconds = max(self._seconds - (time.monotonic() - began), 0.0)
                if message is None:
                    return None if current == END else self._missing(current, _died(process.status()))
                if "begun" in message:
                    current = message["begun"]
                    limit = COURSE[current].seconds if current in COURSE else CLEAN
                else:
                    self._found(message["finding"])

    def _missing(self, name: str, finding: Finding) -> str:
        name = name or self._left[0]
        self._found(finding.named(name))
        return name

    def _found(self, finding: dict[str, Any]) -> None:
        self.findings.append(finding)
        with contextlib.suppress(ValueError):
            self._left.remove(finding["what"])


def _unborn(seconds: float) -> Finding:
    remedy = "Ask again when the machine is less busy."
    return failed(f"the process that tries did not begin within {seconds:.3g} s", remedy, waited_seconds=seconds)


def _silent(seconds: float) -> Finding:
    remedy = "The disk, its server or its lock service hangs, or is very busy: see the kernel's log."
    return failed(f"no answer within {seconds:.3g} s", remedy, waited_seconds=seconds)


def _died(status: int | None) -> Finding:
    how = f"by signal {-status}" if status is not None and status < 0 else f"with status {status}"
    remedy = (
        "See whether memory ran out (the kernel's log tells); otherwise this is a defect of velocpy: please report it."
    )
    return failed(f"the process that tried it ended {how}", remedy)


class _Process:
    """A process that writes one JSON message a line, and is out of the way at the end of the ``with``.

    It has a session of its own: Ctrl-C reaches the watcher alone, which ends the child.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        self._text = b""

    def message(self, seconds: float) -> dict[str, Any] | None:
        """The next message; None after the last. Raises TimeoutError when there is none in time."""
        assert self._process.stdout is not None
        end = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        while b"\n" not in self._text:
            if not poll.poll(max(end - time.monotonic(), 0) * 1e3):
                raise TimeoutError
            part = self._process.stdout.read(1 << 16)
            if not part:
                return None
            self._text += part
        line, self._text = self._text.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def status(self) -> int | None:
        """How it ended; None if it has not."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(GRACE)
        return None

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdout is not None
        try:
            for number in (signal.SIGTERM, signal.SIGKILL):
                if self._process.poll() is None:
                    self._process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(GRACE)
                    break
        finally:
            # One that the disk holds survives even that, and ends by itself when the disk lets it go.
            self._process.kill()
            self._process.stdout.close()
