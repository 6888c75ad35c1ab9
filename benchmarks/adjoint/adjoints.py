"""Adjoints that pyrevolve drives for the benchmark of storages, and the clock that runs inside save and load."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

HALO = 4
FIELDS = 2  # of one checkpoint: what a scheme of second order in time needs


class Adjoint(Protocol):
    """One gradient: a forward computation whose steps can be undone from checkpoints of its fields."""

    #: Number of elements (float32) of a checkpoint.
    entries: int

    def fields(self) -> list[Any]:
        """The arrays of a checkpoint, as they are now."""

    def begin(self) -> None:
        """Back to the start, the gradient blank."""

    def forward(self, step: int) -> None:
        """One step."""

    def reverse(self, step: int) -> None:
        """The adjoint of the step that was done last."""

    def gradient(self) -> Any:
        """The result: one contiguous array."""


class Toy:
    """A wave that costs next to nothing, on cubes within halos: rows of a cube are what is contiguous."""

    def __init__(self, edge: int) -> None:
        padded = [np.zeros((edge + 2 * HALO,) * 3, np.float32) for _ in range(FIELDS)]
        self._fields = [p[HALO:-HALO, HALO:-HALO, HALO:-HALO] for p in padded]
        self._gradient = np.zeros_like(self._fields[0])
        self.entries = FIELDS * edge**3

    def fields(self) -> list[Any]:
        """Both cubes."""
        return self._fields

    def begin(self) -> None:
        """A ramp."""
        self._fields[0][...] = np.linspace(0, 1, len(self._gradient), dtype=np.float32)
        self._fields[1][...] = 0
        self._gradient[...] = 0

    def forward(self, step: int) -> None:
        """Damps, and adds something that depends on the step."""
        np.multiply(self._fields[0], np.float32(0.999), out=self._fields[1])
        np.add(self._fields[1], np.float32(step * 1e-4), out=self._fields[0])

    def reverse(self, step: int) -> None:
        """Adds up."""
        np.add(self._gradient, self._fields[0], out=self._gradient)

    def gradient(self) -> Any:
        """The sum of the fields before each step."""
        return self._gradient


class Shot:
    """One shot of the demo's acoustic migration; a checkpoint is both whole fields, as `velocpy.adjoint` keeps them."""

    def __init__(self, shape: tuple[int, ...], steps: int) -> None:
        from velocpy.demo.backend import numpy_backend
        from velocpy.demo.migration import Migration
        from velocpy.demo.settings import Settings

        self._backend = numpy_backend()
        self._survey = Settings(size=shape, steps=steps, shots=1).survey()
        migration = Migration(self._backend, self._survey)
        migration.record()
        self._recording = migration.recordings[0]
        self._steps = steps
        self.begin()
        self.entries = sum(field.size for field in self.fields())

    def begin(self) -> None:
        """A fresh model."""
        from velocpy.demo.shot import ShotModel

        survey = self._survey
        self._model = ShotModel(self._backend, survey, survey.sources[0], self._recording)
        self._model.begin_adjoint(self._steps)

    def fields(self) -> list[Any]:
        """The field and the one before, walls included; they change roles at every step."""
        return list(self._model.state().values())

    def forward(self, step: int) -> None:
        """Advances the wave."""
        self._kept = self._model.step(step, True)

    def reverse(self, step: int) -> None:
        """Correlates with the wave that is sent back."""
        assert self._kept is not None
        self._model.adjoint_step(step, self._kept)

    def gradient(self) -> Any:
        """The image."""
        return self._model.image.cross


def reverse(adjoint: Adjoint, storage: Any, steps: int, slots: int) -> tuple[float, int, str]:
    """Reverses with the storage: the seconds inside it, how many saves and loads those were, the gradient's digest."""
    from pyrevolve import Checkpoint, Operator
    from pyrevolve.pyrevolve import SingleLevelRevolver

    class State(Checkpoint):  # type: ignore[misc]
        size = adjoint.entries
        dtype = np.float32

        def get_data(self, timestep: int) -> list[Any]:
            return adjoint.fields()

        def get_data_location(self, timestep: int) -> list[Any]:
            return adjoint.fields()

    class Steps(Operator):  # type: ignore[misc]
        def __init__(self, step: Callable[[int], None]) -> None:
            self._step = step

        def apply(self, **span: int) -> None:
            for t in range(span["t_start"], span["t_end"]):
                self._step(t)

    adjoint.begin()
    revolver = SingleLevelRevolver(State(), Steps(adjoint.forward), Steps(adjoint.reverse), slots, steps)
    revolver.storage_list[0] = storage
    clock = _Clock(storage)
    if hasattr(storage, "follow"):
        began = time.perf_counter()
        storage.follow(revolver.scheduler)
        clock.seconds += time.perf_counter() - began
    revolver.apply_forward()
    revolver.apply_reverse()
    return clock.seconds, clock.calls, hashlib.sha256(adjoint.gradient()).hexdigest()


class _Clock:
    """Adds up the time inside save and load of one storage."""

    def __init__(self, storage: Any) -> None:
        self.seconds = 0.0
        self.calls = 0
        for name in ("save", "load"):
            setattr(storage, name, self._timed(getattr(storage, name)))

    def _timed(self, call: Any) -> Any:
        def run(*args: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*args)
            finally:
                self.seconds += time.perf_counter() - began
                self.calls += 1

        return run
