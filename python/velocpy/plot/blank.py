"""Empty figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from velocpy.extra import MissingLibrary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def blank(what: str, width: float, height: float) -> Figure:
    """An empty white figure of so many inches, which a notebook shows by itself.

    Raises
    ------
    MissingLibrary
        Without matplotlib; the message says that this picture needs it.
    """
    try:
        from .drawing import Drawing
    except ImportError:
        raise MissingLibrary("matplotlib", what, "pip install matplotlib") from None
    return Drawing(figsize=(width, height), facecolor="white")
