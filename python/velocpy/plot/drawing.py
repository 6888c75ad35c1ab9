"""Figures that notebooks show by themselves."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class Drawing(Figure):
    """A figure that a notebook shows without pyplot, whose global state a library leaves alone."""

    def _repr_png_(self) -> bytes:
        png = BytesIO()
        self.savefig(png, format="png", dpi=72, bbox_inches="tight")
        return png.getvalue()
