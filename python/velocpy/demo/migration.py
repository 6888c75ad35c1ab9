"""Reverse time migration: the sweeps, and the two places where the history of the forward sweep can be kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .backend import Array, Backend, Field
from .survey import Survey
from .wave import Wave

#: Called after every step with the number of steps done.
Ticker = Callable[[int], None]


def silent(steps: int) -> None:
    """A ticker that tells nobody."""


class Keeper(Protocol):
    """Where a sweep leaves its fields and finds them again."""

    def keep(self, step: int, field: Array) -> None:
        """Takes a copy of ``field``, which the next step overwrites."""

    def turn(self) -> None:
        """The forward sweep is over."""

    def found(self, step: int) -> Any:
        """A context manager that gives the field of ``step``, for the last time."""


class InMemory:
    """Everything in one array, as large as the history: the reference."""

    def __init__(self, backend: Backend, survey: Survey) -> None:
        self._fields = backend.zeros((survey.steps, *survey.earth.shape))

    def keep(self, step: int, field: Array) -> None:
        """Copies the field to its place."""
        self._fields[step] = field

    def turn(self) -> None:
        """Changes nothing."""

    @contextmanager
    def found(self, step: int) -> Iterator[Array]:
        """Gives a view."""
        yield self._fields[step]


class InHistory:
    """A velocpy history: this is all that an adjoint code has to write to use one, on the CPU and on a GPU."""

    def __init__(self, history: Any, steps: int, every: int = 1) -> None:
        self._history = history
        history.hint(reversed(range(0, steps, every)))

    def keep(self, step: int, field: Array) -> None:
        """Captures the field, from where it lies between the walls."""
        self._history.checkpoint(step, u=field)

    def turn(self) -> None:
        """Lets the history fetch what comes first."""
        self._history.prefetch()

    @contextmanager
    def found(self, step: int) -> Iterator[Array]:
        """Gives the array of a lease, and the lease back afterwards."""
        with self._history.restore(step, last=True) as state:
            yield state["u"]


class InPointers(InHistory):
    """The same for a code without an array library: addresses, sizes, the number of the device, and a stream.

    Such a region has no strides, so fields pass through a buffer without gaps.

    Parameters
    ----------
    backend, survey
        What computes on a device, and what is computed.
    stream
        Handle of the stream in whose order the buffer is read and written; the current one of the backend.
    """

    def __init__(self, backend: Backend, survey: Survey, history: Any, stream: int) -> None:
        super().__init__(history, survey.steps)
        if backend.card is None:
            raise ValueError(f"{backend.name} computes on the CPU, where no device has pointers")
        self._buffer = backend.zeros(survey.earth.shape)
        self._region = (backend.card.address(self._buffer), survey.field_bytes, backend.card.number)
        self._stream = stream

    def keep(self, step: int, field: Array) -> None:
        """Captures the buffer, which the next step may overwrite."""
        self._buffer[...] = field
        self._history.checkpoint(step, u=self._region, stream=self._stream)

    @contextmanager
    def found(self, step: int) -> Iterator[Array]:
        """Fills the buffer."""
        self._history.restore(step, into={"u": self._region}, last=True, stream=self._stream)
        yield self._buffer


@dataclass
class Image:
    """What the correlation of both sweeps adds up to, over all shots.

    ``cross`` is the image; ``light`` is how strongly the sources lit each cell.
    """

    cross: Array
    light: Array
    seconds: dict[str, float] = field(default_factory=dict)

    def equals(self, other: Image, backend: Backend) -> bool:
        """Whether both are the same to the last bit, where they lie and in host memory."""
        return all(
            backend.same(mine, its) and backend.numpy(mine).tobytes() == backend.numpy(its).tobytes()
            for mine, its in ((self.cross, other.cross), (self.light, other.light))
        )

    def blank(self, backend: Backend) -> bool:
        """Whether the image shows nothing: only zeros, or anything that is not finite."""
        cross = backend.numpy(self.cross)
        return not np.isfinite(cross).all() or not cross.any()


def blank_image(backend: Backend, survey: Survey) -> Image:
    """An image before the first shot."""
    return Image(backend.zeros(survey.earth.shape), backend.zeros(survey.earth.shape))


class Migration:
    """Runs the shots of a survey; owns the wave field and its scratch, and reuses both.

    Parameters
    ----------
    backend, survey
        What computes, and what is computed.
    every
        Of so many steps one is kept and correlated.
    waves
        Makes the field of a sweep, through the true earth or the smooth one; None: a `Wave`.
    """

    def __init__(
        self, backend: Backend, survey: Survey, every: int = 1, waves: Callable[[bool], Wave] | None = None
    ) -> None:
        self._backend = backend
        self._survey = survey
        self._every = every
        self._waves = waves or self._wave
        self._product = backend.zeros(survey.earth.shape)
        self._smooth = self._waves(False)
        self._gain = self._smooth.gain(survey.receivers)
        #: Per shot, what the true earth sends back that the smooth model does not.
        self.recordings: list[Field] = []

    def record(self, tick: Ticker = silent) -> None:
        """Makes the observed data: one sweep per shot through the true earth."""
        truth = self._waves(True)
        self.recordings = [self._forward(truth, source, None, tick) for source in self._survey.sources]

    def _wave(self, true: bool) -> Wave:
        survey, earth = self._survey, self._survey.earth
        speed = earth.speed if true else earth.smooth
        return Wave(self._backend, speed, earth.spacing, survey.dt, survey.order, survey.sponge)

    def migrate(self, shot: int, keeper: Keeper, image: Image, tick: Ticker = silent) -> None:
        """Adds one shot to ``image``: forward, keeping every step, and backwards, correlating with what was kept."""
        start = time.perf_counter()
        calm = self._forward(self._smooth, self._survey.sources[shot], keeper, tick)
        keeper.turn()
        middle = time.perf_counter()
        self._reverse(self.recordings[shot] - calm, keeper, image, tick)
        end = time.perf_counter()
        for sweep, seconds in (("forward", middle - start), ("reverse", end - middle)):
            image.seconds[sweep] = image.seconds.get(sweep, 0.0) + seconds

    def _forward(self, wave: Wave, source: tuple[Any, ...], keeper: Keeper | None, tick: Ticker) -> Array:
        survey = self._survey
        strength = wave.gain(source)
        heard = self._backend.zeros((survey.steps, *survey.earth.shape[1:]))
        wave.rest()
        for step in range(survey.steps):
            field = wave.earth
            heard[step] = field[survey.receivers]
            if keeper is not None and step % self._every == 0:
                keeper.keep(step, field)
            wave.step()
            wave.earth[source] += float(survey.wavelet[step]) * strength
            tick(1)
        self._backend.finish()
        return heard

    def _reverse(self, residual: Array, keeper: Keeper, image: Image, tick: Ticker) -> None:
        survey, wave, xp = self._survey, self._smooth, self._backend.xp
        product = self._product
        wave.rest()
        for step in reversed(range(survey.steps)):
            wave.step()
            wave.earth[survey.receivers] += residual[step] * self._gain
            if step % self._every == 0:
                with keeper.found(step) as lit:
                    xp.multiply(lit, wave.earth, out=product)
                    image.cross += product
                    xp.multiply(lit, lit, out=product)
                    image.light += product
                    del lit  # an array that outlives its lease keeps the bytes in use
            tick(1)
        self._backend.finish()
