"""A view of a store that is renewed while the application goes on."""

from __future__ import annotations

import logging
import sys
import threading
import weakref
from contextlib import suppress
from typing import Any, Protocol

from velocpy.closing import Closing
from velocpy.errors import InvalidArgument, VelocError
from velocpy.extra import MissingLibrary
from velocpy.interfaces import StoreState

from .change import Change, change
from .page import page
from .sample import sample_of

log = logging.getLogger("velocpy")

#: Seconds that `Watch.stop` waits for the thread, which may be writing to a slow terminal.
_PATIENCE = 5.0


class Surface(Protocol):
    """Where a view is shown."""

    def show(self, shown: Change, ended: str) -> None:
        """Shows it in place of what was there."""

    def close(self) -> None:
        """Leaves what is there."""


class Watch(Closing):
    """A live view of a store; `velocpy.Store.watch` makes it.

    One thread renews it until `stop`, the end of a ``with``, or the end of the store. It keeps no store open.
    """

    def __init__(self, store: StoreState, interval: float, surface: Surface) -> None:
        self._stopped = threading.Event()
        self._words = ""
        self._shown = repr(store)
        first = change(None, sample_of(store))
        surface.show(first, "")  # by the thread of the caller: a notebook puts it below the caller's cell
        self._thread = threading.Thread(
            target=_renew,
            args=(weakref.ref(store), first, interval, self._stopped, surface, weakref.ref(self)),
            name="velocpy-watch",
            daemon=True,
        )
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the view is renewed."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ends the thread; what was shown last stays. A second call is nothing."""
        self._end("stopped")

    def close(self) -> None:
        """The same as `stop`."""
        self.stop()

    def _end(self, words: str) -> None:
        self._words = self._words or words
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE)

    def __repr__(self) -> str:
        return f"<Watch of {self._shown}: {'running' if self.running else 'ended'}>"


def _renew(
    store: weakref.ref[StoreState],
    shown: Change,
    interval: float,
    stopped: threading.Event,
    surface: Surface,
    watch: weakref.ref[Watch],
) -> None:
    """Runs in the thread of a view."""
    try:
        while not stopped.wait(interval):
            now = store()
            if now is None or now.closed:
                break
            try:
                shown = change(shown.now, sample_of(now))
            except VelocError:  # closed meanwhile, or failed: its own calls tell
                break
            del now
            surface.show(shown, "")
        ended = watch()
        surface.show(shown, (ended._words if ended is not None else "") or "closed")
    except Exception as error:  # the notebook or the terminal has gone: the application goes on
        log.warning("a live view has ended: %s", str(error))
    finally:
        with suppress(Exception):  # of the notebook or the terminal that has gone
            surface.close()


class NotebookSurface:
    """The output of a cell."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, shown: Change, ended: str) -> None:
        """Shows it; the first time in the output of the cell that runs."""
        from IPython.display import HTML, display

        made = HTML(page(shown, ended))  # type: ignore[no-untyped-call]
        if self._handle is None:
            self._handle = display(made, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(made)

    def close(self) -> None:
        """Leaves it there."""


class TerminalSurface:
    """The lower end of a terminal, on standard error; what the application prints goes above it."""

    def __init__(self) -> None:
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError:
            raise MissingLibrary("rich", "Store.watch in a terminal", "pip install rich") from None
        # What the application prints goes above the view, unless it goes to a file.
        self._live = Live(console=Console(stderr=True), auto_refresh=False, redirect_stdout=sys.stdout.isatty())

    def show(self, shown: Change, ended: str) -> None:
        """Shows it."""
        from .screen import screen

        if not self._live.is_started:
            self._live.start()
        self._live.update(screen(shown, ended), refresh=True)

    def close(self) -> None:
        """Leaves it there, and gives the terminal back."""
        self._live.stop()


def surface() -> Surface:
    """Where this process can show something: in a notebook, or in a terminal.

    Raises
    ------
    InvalidArgument
        There is neither.
    velocpy.extra.MissingLibrary
        In a terminal, without rich.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        return NotebookSurface()
    if sys.stderr is not None and sys.stderr.isatty():
        return TerminalSurface()
    raise InvalidArgument(
        "there is neither a notebook nor a terminal to show a store in: call publish() on the store, and run "
        "`velocpy top` in a terminal."
    )
