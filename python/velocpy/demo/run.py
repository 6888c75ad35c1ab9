"""The demo itself: one migration with everything in memory, the same through velocpy, and the comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import velocpy

from .backend import Backend, backend_named
from .migration import Image, InHistory, InMemory, Keeper, Migration, Ticker, blank_image, silent
from .settings import Settings
from .survey import Survey

#: Opens a stage of the demo, (name, steps), and gives what is to be called after each step.
Stage = Callable[[str, int], AbstractContextManager[Ticker]]

#: Events kept per checkpoint: captured, flushed, evicted, loaded, restored, and waits between.
EVENTS_PER_CHECKPOINT = 10


@dataclass(frozen=True)
class Outcome:
    """What a run of the demo found."""

    settings: Settings
    survey: Survey
    backend: Backend
    image: Image  #: computed through velocpy
    reference: Image  #: computed with everything in memory
    budgets: dict[str, int]
    stats: dict[str, Any]  #: as `Store.stats` gave them after the last shot
    events: list[dict[str, Any]]  #: as `Store.timeline` gave them

    @property
    def equal(self) -> bool:
        """Whether both images are the same to the last bit."""
        return self.image.equals(self.reference, self.backend)

    @property
    def proven(self) -> bool:
        """Whether the images are equal and show something."""
        return self.equal and not self.image.blank(self.backend)

    @property
    def digest(self) -> str:
        """SHA-256 of the image's bytes."""
        return hashlib.sha256(self.backend.numpy(self.image.cross).tobytes()).hexdigest()


def unwatched(name: str, steps: int) -> AbstractContextManager[Ticker]:
    """A stage that nobody watches."""
    return nullcontext(silent)


def run(settings: Settings, stage: Stage = unwatched) -> Outcome:
    """Runs the demo; takes as much memory as the history for the reference, and gives it back before velocpy's turn.

    Examples
    --------
    >>> outcome = run(Settings(size=(40, 40), steps=60, shots=1))
    >>> outcome.equal, outcome.budgets["host"] < outcome.survey.history_bytes
    (True, False)
    """
    backend = backend_named(settings.backend, settings.device)
    survey = settings.survey()
    budgets = settings.budgets(survey)
    migration = Migration(backend, survey)
    shots = range(len(survey.sources))
    sweeps = len(shots) * survey.steps

    with stage("recording the shots", sweeps) as tick:
        migration.record(tick)

    with stage("migrating, all in memory", 2 * sweeps) as tick:
        reference = blank_image(backend, survey)
        memory: Keeper = InMemory(backend, survey)
        for shot in shots:
            migration.migrate(shot, memory, reference, tick)
        del memory

    with (
        stage("migrating through velocpy", 2 * sweeps) as tick,
        velocpy.open(
            settings.path, host=budgets["host"], disk=budgets["disk"], timeline=EVENTS_PER_CHECKPOINT * sweeps
        ) as store,
    ):
        image = blank_image(backend, survey)
        for shot in shots:
            history = store.history(f"shot {shot + 1}")
            migration.migrate(shot, InHistory(backend, history, survey.steps), image, tick)
        stats, events = store.stats(), store.timeline()

    return Outcome(settings, survey, backend, image, reference, budgets, stats, events)
