"""The demo itself: one migration with everything in memory, the same through velocpy, and the comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import velocpy
from velocpy.figures import Stats
from velocpy.quantity import sized

from .backend import Backend, backend_named
from .migration import Image, InHistory, InMemory, InPointers, Keeper, Migration, Ticker, blank_image, silent
from .settings import Settings
from .survey import Survey

#: Opens a stage of the demo, (name, steps), and gives what is to be called after each step.
Stage = Callable[[str, int], AbstractContextManager[Ticker]]

#: Events kept per checkpoint: captured, flushed, evicted, loaded, restored, and waits between; in three tiers.
EVENTS_PER_CHECKPOINT = 16
#: What the solver itself holds, in fields: two waves with their walls, coefficients and scratch, and the images.
FIELDS_OF_SOLVER = 32
#: What it holds beside the recording of each shot, in recordings: what is heard, the residual, and their sum.
RECORDINGS_OF_SOLVER = 3


@dataclass(frozen=True)
class Outcome:
    """What a run of the demo found."""

    settings: Settings
    survey: Survey
    backend: Backend
    image: Image  #: computed through velocpy
    reference: Image  #: computed with everything in memory
    budgets: dict[str, int]
    stats: Stats  #: as `Store.stats` gave them after the last shot
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

    On a CUDA device that memory is the device's, and velocpy captures from there.

    Raises
    ------
    MissingLibrary
        Without the library of the backend.
    TierUnavailable, TierFull
        When the device cannot be used, or lacks the memory for the reference.

    Examples
    --------
    >>> outcome = run(Settings(size=(40, 40), steps=60, shots=1))
    >>> outcome.equal, outcome.budgets["host"] < outcome.survey.history_bytes
    (True, False)
    """
    backend = backend_named(settings.library, settings.device)
    survey = settings.survey()
    budgets = settings.budgets(survey)
    _require_room(backend, survey)
    migration = Migration(backend, survey)
    shots = range(len(survey.sources))
    sweeps = len(shots) * survey.steps

    with stage("recording the shots", sweeps) as tick:
        migration.record(tick)

    with stage("migrating, all in memory" if backend.card is None else "migrating, all on device", 2 * sweeps) as tick:
        reference = blank_image(backend, survey)
        memory: Keeper = InMemory(backend, survey)
        for shot in shots:
            migration.migrate(shot, memory, reference, tick)
        del memory
        if backend.card is not None:
            backend.card.give_back()

    with (
        stage("migrating through velocpy", 2 * sweeps) as tick,
        velocpy.open(
            settings.path,
            device=None if backend.card is None else {backend.card.number: budgets["device"]},
            host=budgets["host"],
            disk=budgets["disk"],
            durable=False,
            timeline=EVENTS_PER_CHECKPOINT * sweeps,
        ) as store,
        _stream(backend, settings) as stream,
    ):
        image = blank_image(backend, survey)
        for shot in shots:
            keeper = _keeper(backend, survey, store.history(f"shot {shot + 1}", reduce=settings.reduce), stream)
            migration.migrate(shot, keeper, image, tick)
        stats, events = store.stats(), store.timeline()

    return Outcome(settings, survey, backend, image, reference, budgets, stats, events)


def _stream(backend: Backend, settings: Settings) -> AbstractContextManager[int | None]:
    """A stream of its own for pointers; None where arrays tell theirs."""
    if not settings.pointers or backend.card is None:
        return nullcontext(None)
    return backend.card.stream()


def _keeper(backend: Backend, survey: Survey, history: velocpy.History, stream: int | None) -> Keeper:
    if stream is None:
        return InHistory(history, survey.steps)
    return InPointers(backend, survey, history, stream)


def _require_room(backend: Backend, survey: Survey) -> None:
    """Refuses a reference that does not fit onto the device, before anything is computed."""
    if backend.card is None:
        return
    recordings = (len(survey.sources) + RECORDINGS_OF_SOLVER) * (survey.history_bytes // survey.earth.shape[0])
    need = survey.history_bytes + FIELDS_OF_SOLVER * survey.field_bytes + recordings
    free = backend.card.free()
    if need > free:
        raise velocpy.errors.TierFull(
            f"the run that keeps everything needs {sized(need)} on {backend.device}, where {sized(free)} are free: "
            "take fewer --steps or a smaller --size.",
            tier="device",
        )
