"""What the demo computes, and with how much memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from velocpy.choices import Reduction

from .earth import layered_earth
from .survey import Survey, survey_over

#: Cells of the earth by number of dimensions: a history of one to two gigabytes in all, done well within a minute.
SHAPES = {2: (216, 336), 3: (60, 72, 72)}
#: The same for a CUDA device: sixteen gigabytes in all.
DEVICE_SHAPES = {2: (480, 720), 3: (120, 160, 160)}
SHOTS = {2: 3, 3: 1}
#: Thickness of the absorbing walls by number of dimensions.
SPONGE = {2: 32, 3: 16}
#: Room on disk beyond the history: alignment, and slots that are still to be reused.
DISK_SLACK = 1.25
#: The least a tier is given, whatever the fraction; a device hands out its memory in larger pieces.
LEAST = 1 << 20
DEVICE_LEAST = 8 << 20
#: Memory budgets as fractions of one shot's history: of the host alone, and of a device and the host below it.
HOST_FRACTION = 0.125
DEVICE_FRACTION, HOST_FRACTION_BELOW = 0.125, 0.5


@dataclass(frozen=True)
class Settings:
    """The demo's options; None means: what suits the dimensions and the device."""

    dim: int = 2
    backend: str | None = None
    device: str = "cpu"
    size: tuple[int, ...] | None = None
    steps: int | None = None
    shots: int | None = None
    order: int = 8
    host_fraction: float | None = None
    device_fraction: float | None = None
    #: Whether fields on a device are given as addresses and a stream, not as arrays.
    pointers: bool = False
    #: How the wavefields are reduced on their way down: see `velocpy.Store.history`. None: not at all.
    reduce: Reduction | None = None
    #: Folder for the disk tier; None: the system's for temporary files.
    path: Path | None = None

    def check(self) -> None:
        """Refuses what cannot run, before anything is computed.

        Raises
        ------
        ValueError
            When the backend, the device and the rest do not go together, or a fraction is none.
        """
        for fraction in (self.host_fraction, self.device_fraction):
            if fraction is not None and not 0.0 < fraction <= 2.0:
                raise ValueError(f"a memory budget is a fraction of the history, up to 2, not {fraction}")
        if not re.fullmatch(r"cpu|cuda(:[0-9]{1,4})?", self.device):
            raise ValueError(f"a device is 'cpu', 'cuda' or 'cuda:1', not {self.device!r}")
        if self.library == "numpy" and self.on_device:
            raise ValueError(f"numpy computes on the CPU, not on {self.device!r}: use the torch or the cupy backend")
        if self.library == "cupy" and not self.on_device:
            raise ValueError("cupy computes on a CUDA device: add --device cuda")
        if not self.on_device and (self.pointers or self.device_fraction is not None):
            raise ValueError("pointers and a device's budget need a CUDA device: add --device cuda")

    @property
    def on_device(self) -> bool:
        """Whether a CUDA device computes."""
        return self.device != "cpu"

    @property
    def library(self) -> str:
        """Name of the backend."""
        return self.backend or ("torch" if self.on_device else "numpy")

    def survey(self) -> Survey:
        """The experiment that these settings describe."""
        shape = self.size or (DEVICE_SHAPES if self.on_device else SHAPES)[self.dim]
        return survey_over(
            layered_earth(shape),
            shots=self.shots or SHOTS[self.dim],
            steps=self.steps,
            order=self.order,
            sponge=SPONGE[self.dim],
        )

    def budgets(self, survey: Survey) -> dict[str, int]:
        """Capacity of each tier in bytes: fractions of one shot's history in memory, the rest on disk."""
        history = survey.history_bytes
        host = self.host_fraction or (HOST_FRACTION_BELOW if self.on_device else HOST_FRACTION)
        budgets = {"host": max(LEAST, int(history * host)), "disk": max(LEAST, int(history * DISK_SLACK))}
        if self.on_device:
            device = self.device_fraction or DEVICE_FRACTION
            budgets = {"device": max(DEVICE_LEAST, int(history * device)), **budgets}
        return budgets


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
