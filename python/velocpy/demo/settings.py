"""What the demo computes, and with how much memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .earth import layered_earth
from .survey import Survey, survey_over

#: Cells of the earth by number of dimensions: a history of one to two gigabytes in all, done well within a minute.
SHAPES = {2: (216, 336), 3: (60, 72, 72)}
SHOTS = {2: 3, 3: 1}
#: Thickness of the absorbing walls by number of dimensions.
SPONGE = {2: 32, 3: 16}
#: Room on disk beyond the history: alignment, and slots that are still to be reused.
DISK_SLACK = 1.25
#: The least a tier is given, whatever the fraction.
LEAST = 1 << 20


@dataclass(frozen=True)
class Settings:
    """The demo's options; None means: what suits the dimensions."""

    dim: int = 2
    backend: str = "numpy"
    device: str = "cpu"
    size: tuple[int, ...] | None = None
    steps: int | None = None
    shots: int | None = None
    order: int = 8
    host_fraction: float = 0.125
    #: Folder for the disk tier; None: the system's for temporary files.
    path: Path | None = None

    def check(self) -> None:
        """Refuses what cannot run, before anything is computed.

        Raises
        ------
        ValueError
            When the backend and the device do not go together, or the fraction is none.
        """
        if not 0.0 < self.host_fraction <= 2.0:
            raise ValueError(f"the memory budget is a fraction of the history, up to 2, not {self.host_fraction}")
        if self.backend == "numpy" and self.device != "cpu":
            raise ValueError(f"numpy computes on the CPU, not on {self.device!r}: use the torch backend")

    def survey(self) -> Survey:
        """The experiment that these settings describe."""
        shape = self.size or SHAPES[self.dim]
        return survey_over(
            layered_earth(shape),
            shots=self.shots or SHOTS[self.dim],
            steps=self.steps,
            order=self.order,
            sponge=SPONGE[self.dim],
        )

    def budgets(self, survey: Survey) -> dict[str, int]:
        """Capacity of each tier in bytes: a fraction of one shot's history in memory, the rest on disk."""
        history = survey.history_bytes
        return {
            "host": max(LEAST, int(history * self.host_fraction)),
            "disk": max(LEAST, int(history * DISK_SLACK)),
        }


def shape_of(text: str, dim: int) -> tuple[int, ...]:
    """Reads a size: one number for all axes, or one per axis, depth first, as in "200x300".

    Raises
    ------
    ValueError
        For anything else, and for an axis too short to hold the layers.

    Examples
    --------
    >>> shape_of("96", 3), shape_of("200x300", 2)
    ((96, 96, 96), (200, 300))
    """
    parts = text.lower().split("x")
    if not all(part.isascii() and part.isdigit() for part in parts) or len(parts) not in (1, dim):
        raise ValueError(f"a size is one number, or {dim} joined by 'x' (depth first), not {text!r}")
    cells = tuple(int(part) for part in parts)
    shape = cells * dim if len(cells) == 1 else cells
    if min(shape) < 24:
        raise ValueError(f"the earth needs at least 24 cells along each axis, not {min(shape)}")
    return shape
