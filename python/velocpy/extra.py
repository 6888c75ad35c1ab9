"""A library that an optional part needs and that is not installed."""

from __future__ import annotations


class MissingExtra(ImportError):
    """An optional dependency is not there; the message is one line with the command that installs it."""

    def __init__(self, module: str, extra: str, wanted_by: str) -> None:
        super().__init__(
            f"{wanted_by} needs {module}, which is not installed: "
            f"pip install 'velocpy[{extra}]', or '.[{extra}]' in a checkout",
            name=module,
        )
        self.extra = extra
