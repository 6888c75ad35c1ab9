"""Metrics of the stores of this process, for Prometheus and for OpenTelemetry.

Both read `Store.stats` when they are scraped, and do nothing between two scrapes. They keep no store open: one that is
closed, or to which nothing else refers, has no metrics any more. `velocpy.metrics.families` lists the metrics.

Labels (attributes in OpenTelemetry) are ``store``: the directory of a durable store that is open for writing, and of
another one its number in this process; ``tier``; ``reason`` and ``cause`` of a wait, by the names in
`velocpy.figures`; ``history``. A job with thousands of histories leaves those of single histories out by
``histories=False``: each has five series, and ten if it is reduced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from velocpy.extra import MissingExtra
from velocpy.store import Store

from .families import FAMILIES, Family
from .source import Source

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

    from .prometheus import Collector

__all__ = ["FAMILIES", "Family", "instrument", "prometheus_collector"]


def prometheus_collector(*stores: Store, histories: bool = True) -> Collector:
    """A collector for a registry of prometheus_client, which reads stores when the registry is scraped.

    Parameters
    ----------
    stores
        Which ones. Without any: those that are open in this process at the time of a scrape.
    histories
        Whether there are series of single histories.

    Raises
    ------
    velocpy.extra.MissingExtra
        Without prometheus_client. It is an ImportError too.

    Examples
    --------
    Before ``prometheus_client.start_http_server``::

        from prometheus_client import REGISTRY

        REGISTRY.register(velocpy.metrics.prometheus_collector())

    A scrape then has, in bytes and seconds::

        velocpy_tier_used_bytes{store="/scratch/run",tier="host"} 8.388608e+06
        velocpy_wait_time_seconds_total{store="/scratch/run",reason="capture"} 0.35
    """
    try:
        from .prometheus import Collector
    except ImportError as error:
        raise MissingExtra("prometheus_client", "metrics", "velocpy.metrics.prometheus_collector") from error
    return Collector(Source(stores, histories))


def instrument(meter: Meter | None = None, *stores: Store, histories: bool = True) -> None:
    """Adds observable instruments to a meter of OpenTelemetry; they read stores when the meter's reader collects.

    A meter keeps its instruments for good, so call it once for a meter.

    Parameters
    ----------
    meter
        Which one. None: that of the meter provider of the process, with the name "velocpy".
    stores
        Which ones. Without any: those that are open in this process at the time of a collection.
    histories
        Whether there are series of single histories.

    Raises
    ------
    velocpy.extra.MissingExtra
        Without opentelemetry. It is an ImportError too.

    Examples
    --------
    After a meter provider was set::

        velocpy.metrics.instrument()

    Instruments are named ``velocpy.tier.used`` (By), ``velocpy.wait.time`` (s) and so on.
    """
    try:
        from .instruments import add
    except ImportError as error:
        raise MissingExtra("opentelemetry", "metrics", "velocpy.metrics.instrument") from error
    add(meter, Source(stores, histories))
