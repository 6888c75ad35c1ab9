"""A library that an optional part needs and that is not installed."""

from __future__ import annotations

from .errors import VelocError


class MissingLibrary(VelocError, ImportError):
    """A library is not there; the message is one line that says how it is installed."""

    def __init__(self, module: str, wanted_by: str, install: str) -> None:
        super().__init__(f"{wanted_by} needs {module}, which is not installed: {install}")
        #: Name of the library, as an ImportError tells it.
        self.name = module


class MissingExtra(MissingLibrary):
    """An optional dependency is not there; the message is one line with the command that installs it."""

    def __init__(self, module: str, extra: str, wanted_by: str) -> None:
        super().__init__(module, wanted_by, f"pip install 'velocpy[{extra}]', or '.[{extra}]' in a checkout")
        self.extra = extra
