"""Figures of this process's stores for other processes of the same user, which ask for them.

A process that publishes listens at a Unix-domain socket with an abstract name, which has no file: nothing is left
behind after whatever end, and there is no directory whose permissions matter. One thread answers, and sleeps while
nobody asks. The kernel tells both sides whose process the other one is (``SO_PEERCRED``): the thread answers processes
of its own user alone, and a reader believes those of its own user alone. Processes see each other in the same network
namespace; containers have one of their own.

A connection gets one JSON document, and is closed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import socket
import struct
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from velocpy._version import __version__
from velocpy.errors import VelocError
from velocpy.interfaces import StoreState

from .sample import Sample, from_json, sample_of, to_json

log = logging.getLogger("velocpy")

#: Beginning of the sockets' names, behind the byte that makes them abstract.
_PREFIX = "velocpy-figures-"
#: Where the kernel lists them.
_LISTED = Path("/proc/net/unix")
#: Seconds that one side waits for the other.
PATIENCE = 2.0
#: Bytes of an answer, at most.
_LONGEST = 16 << 20
#: Structure of SO_PEERCRED: process, user, group.
_CREDENTIALS = struct.Struct("3i")
#: Letters of the command line that are told.
_LETTERS = 200


class Publisher:
    """The stores that are published by this process, and the thread that answers while there is one."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._begin()

    def _begin(self) -> None:
        # A store that is closed by a garbage collection takes it within itself.
        self._lock = threading.RLock()
        self._stores: weakref.WeakSet[StoreState] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, store: StoreState) -> None:
        """Publishes a store; a second call is nothing.

        Raises
        ------
        OSError
            There is no socket to be had.
        """
        with self._lock:
            if store in self._stores:
                return
            if self._thread is None:
                self._socket = _listening()
                self._thread = threading.Thread(target=self._run, name="velocpy-figures", daemon=True)
                self._stores.add(store)
                self._thread.start()
            self._stores.add(store)
        weakref.finalize(store, self._wake).atexit = False

    def remove(self, store: StoreState) -> None:
        """Ends that. The thread and the socket go with the last store."""
        with self._lock:
            self._stores.discard(store)
            thread = None if self._is_needed() else self._thread
        if thread is not None:
            self._wake()
            thread.join(PATIENCE)

    def forget(self) -> None:
        """For a child of fork: the stores are the parent's, and so are the thread and the socket."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._begin()

    def _is_needed(self) -> bool:
        """Whether there is a store left. One that is being collected may be in the set, but is not found there."""
        return any(True for _ in self._stores)

    def _wake(self) -> None:
        """Lets the thread look whether there is a store left. Takes no lock, as a garbage collection may call it."""
        listening = self._socket
        if listening is not None and not self._is_needed():
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        listening = self._socket
        while listening is not None:
            try:
                connection, _ = listening.accept()
            except OSError:
                listening = self._next(listening)
                continue
            with connection:
                connection.settimeout(PATIENCE)
                try:
                    if _is_ours(connection):
                        connection.sendall(self._document())
                except OSError:  # the reader has gone, or does not read
                    pass
                except Exception as error:  # of one answer: there may be others
                    log.warning("the figures of stores were not told: %s", str(error))

    def _next(self, listening: socket.socket) -> socket.socket | None:
        """The socket to go on with after one that was shut down; None: no store is left."""
        with self._lock:
            listening.close()
            self._socket = None
            if self._is_needed():  # published while the former socket was shut down
                try:
                    self._socket = _listening()
                except OSError as error:
                    log.warning("the figures of stores are not published any more: %s", str(error))
            if self._socket is None:
                self._stores.clear()
                self._thread = None
            return self._socket

    def _document(self) -> bytes:
        samples = []
        for store in list(self._stores):
            with contextlib.suppress(VelocError):  # closed meanwhile
                samples.append(to_json(sample_of(store)))
        samples.sort(key=lambda sample: int(sample["number"]))
        facts = {"velocpy": __version__, "command": _command(), "stores": samples}
        return json.dumps(facts).encode("ascii")


def _listening() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(f"\0{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}")
        made.listen(8)
    except BaseException:
        made.close()
        raise
    return made


def _is_ours(connection: socket.socket) -> bool:
    """Whether a process of this user is on the other side."""
    return _peer(connection)[1] == os.geteuid()


def _peer(connection: socket.socket) -> tuple[int, int]:
    """Process and user on the other side."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(raw)
    return process, user


def _command() -> str:
    """The command line of this process, for people."""
    return " ".join(sys.orig_argv)[:_LETTERS]


publisher = Publisher()

os.register_at_fork(after_in_child=publisher.forget)


class Published(NamedTuple):
    """A process that publishes, as another process sees it."""

    pid: int
    command: str
    #: Of this version's form.
    stores: tuple[Sample, ...]
    #: Its version of velocpy, where that is another one than this process has; its stores are not read then.
    other_version: str | None


def published() -> list[Published]:
    """The processes that publish their stores to this one, by their numbers. One that does not answer is left out.

    Examples
    --------
    >>> import os, velocpy
    >>> from velocpy.live.channel import published
    >>> with velocpy.open(host="1MiB") as store:
    ...     store.publish()
    ...     [len(process.stores) >= 1 for process in published() if process.pid == os.getpid()]
    [True]
    """
    found = (_read(name) for name in _names())
    return sorted((each for each in found if each is not None), key=lambda process: process.pid)


def _names() -> Iterator[str]:
    """The abstract names in which there are figures, each once: connections have the name of the listener."""
    try:
        lines = _LISTED.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    yield from sorted({name[1:] for line in lines if (name := line.rpartition(" ")[2]).startswith(f"@{_PREFIX}")})


def _read(name: str) -> Published | None:
    """Asks one process."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(f"\0{name}")
            process, user = _peer(connection)
            if user != os.geteuid():  # anyone may take a name
                return None
            document = _whole(connection)
        facts = json.loads(document)
        command = str(facts["command"])[:_LETTERS]
        if facts["velocpy"] != __version__:
            return Published(process, command, (), str(facts["velocpy"])[:_LETTERS])
        return Published(process, command, tuple(map(from_json, facts["stores"])), None)
    except (OSError, ValueError, KeyError, TypeError):  # it ends just now, does not answer, or is something else
        return None


def _whole(connection: socket.socket) -> bytes:
    """All that is sent, within the limits of size and time."""
    parts, size, end = [], 0, time.monotonic() + PATIENCE
    while part := connection.recv(1 << 16):
        parts.append(part)
        connection.settimeout(max(end - time.monotonic(), 1e-3))
        size += len(part)
        if size > _LONGEST:
            raise ValueError("an answer without end")
    return b"".join(parts)
