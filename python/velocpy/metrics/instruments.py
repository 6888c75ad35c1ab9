"""The observable instruments for OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter

from velocpy._version import __version__

from .families import FAMILIES, Family
from .source import Source


def add(meter: Meter | None, source: Source) -> None:
    """Makes an instrument for each metric."""
    into = get_meter("velocpy", __version__) if meter is None else meter
    for family in FAMILIES.values():
        make = into.create_observable_counter if family.grows else into.create_observable_gauge
        name, unit = family.opentelemetry
        make(name, [_callback(family, source)], unit, family.text)


def _callback(family: Family, source: Source) -> Callable[[CallbackOptions], Iterable[Observation]]:
    labels = ["store", *family.labels]

    def observe(options: CallbackOptions) -> list[Observation]:
        values = source.values(family.name)
        return [Observation(value, dict(zip(labels, each, strict=True))) for each, value in values]

    return observe
