"""Old names, which work for one version: the first use of one warns and names its successor."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any


def warn(old: str, successor: str, depth: int) -> None:
    """Gives a DeprecationWarning at the line that is ``depth`` callers above the one of this function."""
    warnings.warn(
        f"{old} is deprecated and goes with the next version; use {successor}.",
        DeprecationWarning,
        stacklevel=depth + 2,
    )


def moved_name(package: str, name: str, module: str) -> Any:
    """The object ``name`` of the package's module ``module``, for the package's ``__getattr__``.

    It is kept as an attribute of the package after the warning, so that a process is warned once for each name.
    """
    value = getattr(import_module(f"{package}.{module}"), name)
    warn(f"{package}.{name}", f"{package}.{module}.{name}", 2)
    vars(sys.modules[package])[name] = value
    return value


def moved_module(old: str, successor: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module that has moved as a whole: its names are those of its successor.

    A process is warned once, at the first name that it asks for.
    """
    warned = False

    def get(name: str) -> Any:
        nonlocal warned
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        value = getattr(import_module(successor), name)
        if not warned:
            warn(old, successor, 1)
            warned = True
        return value

    return get, lambda: dir(import_module(successor))
