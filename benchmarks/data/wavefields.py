"""The forward sweep of the demo's migration: both pressure fields at even distances, from the shot on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from velocpy.demo.backend import numpy_backend
from velocpy.demo.earth import layered_earth
from velocpy.demo.survey import survey_over
from velocpy.demo.wave import Wave


def forward(side: int, checkpoints: int) -> Iterator[dict[str, np.ndarray]]:
    """Fields of ``side`` by ``side`` cells: what a sweep can be continued from."""
    survey = survey_over(layered_earth((side, side)), shots=1)
    wave = Wave(numpy_backend(), survey.earth.smooth, survey.earth.spacing, survey.dt)
    source, every = survey.sources[0], max(1, survey.steps // checkpoints)
    strength = wave.gain(source)
    for step in range(every * checkpoints):
        wave.step()
        if step < survey.steps:
            wave.earth[source] += float(survey.wavelet[step]) * strength
        if step % every == every - 1:
            yield {"current": np.array(wave.earth), "previous": np.array(wave.earth_before)}
