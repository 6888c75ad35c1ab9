"""How far long waits are: told to a function of the caller, or shown as a bar by rich or tqdm.

A function gets how many bytes have got there, and how many there are in all, which may grow while others write.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from .errors import TIERS, InvalidType, WaitTimeout, timed_out
from .extra import MissingLibrary
from .figures import Stats

#: Bytes done, and bytes in all.
Progress = Callable[[int, int], Any]

#: Seconds between two looks, and those before the first: of a wait that is over by then nothing is shown.
_INTERVAL = 0.1


def waiting(
    wait: Callable[[float], None], stats: Callable[[], Stats], tier: int, timeout: float | None, told: bool | Progress
) -> None:
    """Waits until everything is durable in a tier, and tells how far it is.

    Parameters
    ----------
    wait
        Waits for that for so many seconds, and raises WaitTimeout then.
    told
        A function, or True for a bar.

    Raises
    ------
    WaitTimeout
        After ``timeout`` seconds.
    MissingLibrary
        A bar is asked for, and there is neither rich nor tqdm.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    with contextlib.ExitStack() as shown:
        tell, total = None if told is True else told, 0
        while True:
            left = _INTERVAL if deadline is None else min(_INTERVAL, deadline - time.monotonic())
            try:
                wait(max(left, 0.0))
            except WaitTimeout:
                if timeout is not None and deadline is not None and time.monotonic() >= deadline:
                    raise timed_out(timeout, None, None, "promise", tier) from None
            else:
                if callable(tell) and total:
                    tell(total, total)
                return
            if tell is None:
                tell = shown.enter_context(bar(f"waiting for the {TIERS[tier]} tier"))
            missing = remaining(stats(), tier)
            total = max(total, missing)
            if callable(tell):
                tell(total - missing, total)


def require_progress(told: object) -> bool | Progress:
    """The value, if it can be told of progress.

    Raises
    ------
    InvalidType
    """
    if isinstance(told, bool) or callable(told):
        return told
    raise InvalidType(f"progress is {told!r}; give a function of two numbers of bytes, or True for a bar.")


def remaining(stats: Stats, tier: int) -> int:
    """Bytes that lie above a tier and that no tier below their own has yet."""
    above = (stats["tiers"][name] for name in TIERS[:tier] if name in stats["tiers"])
    return sum(each["dirty"] + each["flushing"] for each in above)


def bar(text: str) -> AbstractContextManager[Progress]:
    """A bar on standard error, for as long as a ``with`` lasts.

    Raises
    ------
    MissingLibrary
        There is neither rich nor tqdm.
    """
    for make in (_of_rich, _of_tqdm):
        with contextlib.suppress(ImportError):
            return make(text)
    raise MissingLibrary("rich", "a progress bar", "pip install rich, or tqdm")


def _of_rich(text: str) -> AbstractContextManager[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )

    @contextmanager
    def shown() -> Iterator[Callable[[int, int], None]]:
        with Progress(*columns, console=Console(stderr=True), transient=True) as drawn:
            task = drawn.add_task(text, total=None)
            yield lambda done, total: drawn.update(task, completed=done, total=total or None)

    return shown()


def _of_tqdm(text: str) -> AbstractContextManager[Progress]:
    from tqdm import tqdm

    # Without the thread that tqdm starts to watch its bars: this one is renewed often enough.
    unwatched: Any = type("Bar", (tqdm,), {"monitor_interval": 0})

    @contextmanager
    def shown() -> Iterator[Callable[[int, int], None]]:
        with unwatched(desc=text, unit="B", unit_scale=True, unit_divisor=1024, leave=False) as drawn:

            def tell(done: int, total: int) -> None:
                drawn.total, drawn.n = total or None, done
                drawn.refresh()

            yield tell

    return shown()
