"""How the command ends: exit codes, and which error means which."""

from __future__ import annotations

import enum
import errno


class Exit(enum.IntEnum):
    """Exit codes of every command. A code that is not listed here is a failure too."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        """A code that knows what it means."""
        exit_ = int.__new__(cls, code)
        exit_._value_ = code
        exit_.meaning = meaning
        return exit_

    OK = 0, "done, and what was to be shown holds"
    FAILED = 1, "it failed, or what was to be shown does not hold"
    USAGE = 2, "the command line is wrong, or stores could not be compared"
    PARTIAL = 3, "finished, with damage found or with a part left out"
    NO_STORE = 10, "there is no store"
    LOCKED = 11, "another process writes the store"
    TOO_NEW = 12, "a later version of velocpy wrote the store"
    NO_SPACE = 13, "no space is left, or the quota is used up"
    WARNINGS = 20, "the doctor has warnings, and --strict was given"
    INTERRUPTED = 130, "interrupted"


# By name and nearest class first: no error has to be imported before one is raised.
_CODES = {
    "NotAStore": Exit.NO_STORE,
    "StoreLocked": Exit.LOCKED,
    "FormatTooNew": Exit.TOO_NEW,
    "DamagedStore": Exit.PARTIAL,
    "CorruptCheckpoint": Exit.PARTIAL,
    "BelatedCorruption": Exit.PARTIAL,
    "TierFull": Exit.NO_SPACE,
    "InvalidArgument": Exit.USAGE,
    "KeyboardInterrupt": Exit.INTERRUPTED,
}


def code_of(error: BaseException) -> Exit:
    """The exit code of a command that ended with an error.

    Examples
    --------
    >>> import velocpy
    >>> from velocpy.cli.exits import code_of
    >>> code_of(velocpy.errors.TierFull()), code_of(velocpy.errors.StoreClosed())
    (<Exit.NO_SPACE: 13>, <Exit.FAILED: 1>)
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Exit.NO_SPACE
    return next((_CODES[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _CODES), Exit.FAILED)
