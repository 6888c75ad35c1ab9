"""One shot of a migration as a model for `velocpy.adjoint.drive`."""

from __future__ import annotations

from collections.abc import Mapping

from .backend import Array, Backend
from .migration import blank_image
from .survey import Survey
from .wave import Wave


class ShotModel:
    """Forward: the wave of a source through the smooth earth. Adjoint: what it did not predict, sent back, correlated.

    The restart data of a step are the two whole fields; its adjoint needs the present field without the walls.

    Parameters
    ----------
    backend, survey
        As for `Migration`.
    source
        Where the shot is.
    recording
        What the receivers heard in truth, one row per step.
    """

    def __init__(self, backend: Backend, survey: Survey, source: tuple[int, ...], recording: Array) -> None:
        earth = survey.earth
        self._survey = survey
        self._source = source
        self._recording = recording
        self._heard = backend.zeros((survey.steps, *earth.shape[1:]))
        self._wave = Wave(backend, earth.smooth, earth.spacing, survey.dt, survey.order, survey.sponge)
        self._back = Wave(backend, earth.smooth, earth.spacing, survey.dt, survey.order, survey.sponge)
        self._product = backend.zeros(earth.shape)
        self._multiply = backend.xp.multiply
        self._strength = self._wave.gain(source)
        self._gain = self._wave.gain(survey.receivers)
        #: The gradient, after the adjoint sweep.
        self.image = blank_image(backend, survey)

    def state(self) -> Mapping[str, Array]:
        """Both whole fields, walls included."""
        return {"previous": self._wave.previous, "current": self._wave.current}

    def step(self, n: int, keep: bool) -> Mapping[str, Array] | None:
        """Listens, advances, and shakes the source."""
        wave, survey = self._wave, self._survey
        self._heard[n] = wave.earth[survey.receivers]
        wave.step()
        wave.earth[self._source] += float(survey.wavelet[n]) * self._strength
        return {"u": wave.earth_before} if keep else None

    def begin_adjoint(self, steps: int) -> None:
        """Silence, and a blank image."""
        self._back.rest()
        self.image.cross[...] = 0.0
        self.image.light[...] = 0.0

    def adjoint_step(self, n: int, kept: Mapping[str, Array]) -> None:
        """Sends back what was not predicted at step ``n``, and correlates."""
        back, receivers, lit = self._back, self._survey.receivers, kept["u"]
        back.step()
        back.earth[receivers] += (self._recording[n] - self._heard[n]) * self._gain
        self._multiply(lit, back.earth, out=self._product)
        self.image.cross += self._product
        self._multiply(lit, lit, out=self._product)
        self.image.light += self._product
