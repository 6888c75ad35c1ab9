"""The collector for prometheus_client."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from .families import FAMILIES, Family
from .source import Source, Values


class Collector:
    """A collector that reads stores when its registry is scraped; `velocpy.metrics.prometheus_collector` makes it."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def describe(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """The metrics without values: a registry compares their names with those that it has."""
        return (_family(family, []) for family in FAMILIES.values())

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """The metrics that have values now."""
        read = self._source.read()
        return (_family(FAMILIES[name], values) for name, values in read.items())


def _family(family: Family, values: Values) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if family.grows else GaugeMetricFamily
    made = kind(family.prometheus, family.text, labels=["store", *family.labels])
    for labels, value in values:
        made.add_metric(list(labels), value)
    return made
