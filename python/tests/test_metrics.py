"""Metrics: what a scrape gives is what `Store.stats` says, and a scrape keeps nothing alive."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import velocpy
from velocpy.metrics import FAMILIES, instrument, prometheus_collector
from velocpy.metrics.families import readings
from velocpy.metrics.source import Source


@pytest.fixture
def store(tmp_path: Path) -> Iterator[velocpy.Store]:
    """One that has moved, encoded and waited."""
    with velocpy.open(tmp_path / "store", host="1MiB", disk="64MiB", archive=tmp_path / "archive") as opened:
        history = opened.history("forward", reduce="codec")
        for n in range(30):
            history.checkpoint(n, u=np.zeros(20_000))
        for n in reversed(range(30)):
            history.restore(n).release()
        opened.history("größe").checkpoint("last", u=np.zeros(3)).wait("disk")
        opened.wait("disk")
        yield opened


def test_every_reading_belongs_to_a_family(store: velocpy.Store) -> None:
    seen = set()
    for name, labels, value in readings(store.stats(), histories=True):
        assert len(labels) == len(FAMILIES[name].labels), name
        assert isinstance(value, int | float)
        seen.add(name)
    assert seen == FAMILIES.keys() - {"store.info"}, "every family has a reading"
    per_history = {name for name, labels, _ in readings(store.stats(), histories=False) if name.startswith("history.")}
    assert per_history == set()


def test_every_figure_is_a_metric_or_left_out_for_a_reason(store: velocpy.Store) -> None:
    """A new figure of the stats is either among the readings or named here."""
    left_out = {"fragments", "direct_io", "streams_waited_ns"}
    shown = {
        "capacity", "used", "high_water", "evictable", "flushing", "dirty", "promised", "held", "evicted_bytes",
        "written_bytes", "read_bytes", "flush_bytes_per_s", "load_bytes_per_s", "pinned_bytes", "resident_bytes",
        "given_back_bytes", "stalled_ns", "commits", "pending_changes",
    }  # fmt: skip
    stats = store.stats()
    assert stats["tiers"]["disk"].keys() == shown | left_out
    assert stats.keys() == {
        "tiers", "waits_ns", "waits_by_cause_ns", "restores", "bytes", "histories", "captures", "consumed",
        "broken_promises", "eviction_decisions", "mapped_bytes", "users", "timeline_lost", "archive",
    }  # fmt: skip
    assert stats["archive"] is not None
    assert stats["archive"].keys() == {
        "keys", "parts", "bytes", "pushes", "failures", "pushing_ns", "requests", "sent_bytes",
        "received_bytes", "waiting",
    }  # fmt: skip


def test_names_keep_the_conventions() -> None:
    names = [family.prometheus for family in FAMILIES.values()]
    assert len(set(names)) == len(names)
    for family in FAMILIES.values():
        assert re.fullmatch("velocpy_[a-z_]+", family.prometheus)
        assert not family.prometheus.endswith("_total"), "the client adds it"
        assert family.prometheus.endswith(family.unit)
        assert re.fullmatch("[a-z_]+([.][a-z_]+)*", family.opentelemetry[0])


def test_a_source_holds_no_store(tmp_path: Path) -> None:
    source, every = Source([], histories=True), 0
    with velocpy.open(host="1MiB") as one, velocpy.open(tmp_path / "store", host="1MiB", disk="16MiB") as two:
        chosen = Source([one], histories=True)
        every = len(source.read()["captures"])
        assert every >= 2
        names = [labels[0] for labels, _ in source.read()["captures"]]
        assert str(two.path) in names
        assert str(one._turn) in names
        with velocpy.open(tmp_path / "store", host="1MiB", mode="r") as reader:
            assert len({labels[0] for labels, _ in source.read()["captures"]}) == every + 1
            info = {labels[0]: labels[1:] for labels, _ in source.read()["store.info"]}
            assert info[str(reader._turn)] == (str(tmp_path / "store"), "r")
            assert info[str(one._turn)] == ("", "a")
        assert len(chosen.read()["captures"]) == 1
        one.close()
        assert chosen.read() == {}
        assert len(source.read()["captures"]) == every - 1
    seen = weakref.ref(two)
    del one, two, reader
    gc.collect()
    assert seen() is None


def test_one_collection_reads_the_stores_once(store: velocpy.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    real = Source.read

    def counted(self: Source) -> Any:
        nonlocal count
        count += 1
        return real(self)

    monkeypatch.setattr(Source, "read", counted)
    source = Source([store], histories=True)
    for collection in range(1, 4):
        for name in FAMILIES:
            source.values(name)
        assert count == collection
    before = dict(source.values("captures"))
    store.history("forward").checkpoint(99, u=np.zeros(3))
    assert sum(dict(source.values("captures")).values()) == sum(before.values()) + 1


def test_scrapes_while_stores_come_and_go() -> None:
    source, ended = Source([], histories=True), threading.Event()
    failures: list[BaseException] = []

    def scrape() -> None:
        try:
            while not ended.is_set():
                for name in FAMILIES:
                    source.values(name)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=scrape) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        with velocpy.open(host="1MiB") as opened:
            opened.history("h").checkpoint(0, u=np.zeros(3))
    ended.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_prometheus(store: velocpy.Store) -> None:
    prometheus = pytest.importorskip("prometheus_client")
    parser = pytest.importorskip("prometheus_client.parser")
    registry = prometheus.CollectorRegistry()
    registry.register(prometheus_collector(store))
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(prometheus_collector(store))
    text = prometheus.generate_latest(registry).decode()
    found = {family.name: family for family in parser.text_string_to_metric_families(text)}
    assert found.keys() == {family.prometheus for family in FAMILIES.values()}
    for family in FAMILIES.values():
        assert found[family.prometheus].type == ("counter" if family.grows else "gauge")
        assert found[family.prometheus].documentation == family.text
    stats, path = store.stats(), str(store.path)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"store": path} | labels)

    assert value("velocpy_captures_total") == 31
    assert value("velocpy_tier_used_bytes", tier="disk") == stats["tiers"]["disk"]["used"]
    assert value("velocpy_tier_state_bytes", tier="host", state="evictable") == stats["tiers"]["host"]["evictable"]
    assert value("velocpy_wait_time_seconds_total", reason="restore") == stats["waits_ns"]["restore"] / 1e9
    assert value("velocpy_history_checkpoints", history="größe") == 1
    reduction = stats["histories"]["forward"]["reduction"]
    assert reduction is not None
    assert value("velocpy_history_encoded_to_bytes_total", history="forward") == reduction["encoded_to"]
    store.close()
    assert prometheus.generate_latest(registry) == b""


def test_prometheus_without_single_histories(store: velocpy.Store) -> None:
    prometheus = pytest.importorskip("prometheus_client")
    registry = prometheus.CollectorRegistry()
    registry.register(prometheus_collector(store, histories=False))
    assert b"history=" not in prometheus.generate_latest(registry)


def test_opentelemetry(store: velocpy.Store) -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    reader = export.InMemoryMetricReader()
    provider = sdk.MeterProvider(metric_readers=[reader])
    instrument(provider.get_meter("test"), store)
    for _ in range(2):
        (resource,) = reader.get_metrics_data().resource_metrics
        (scope,) = resource.scope_metrics
        found = {metric.name: metric for metric in scope.metrics}
        assert found.keys() == {family.opentelemetry[0] for family in FAMILIES.values()}
    for family in FAMILIES.values():
        metric = found[family.opentelemetry[0]]
        assert metric.unit == family.opentelemetry[1]
        assert isinstance(metric.data, export.Sum if family.grows else export.Gauge)
        assert not family.grows or metric.data.is_monotonic
    (point,) = found["velocpy.captures"].data.data_points
    assert (point.value, dict(point.attributes)) == (31, {"store": str(store.path)})
    used = {point.attributes["tier"]: point.value for point in found["velocpy.tier.used"].data.data_points}
    assert used == {name: tier["used"] for name, tier in store.stats()["tiers"].items()}
    store.close()
    closed = reader.get_metrics_data()
    assert closed is None or not any(
        metric.data.data_points for each in closed.resource_metrics[0].scope_metrics for metric in each.metrics
    )
    provider.shutdown()


@pytest.mark.parametrize(
    ("call", "library"), [("prometheus_collector", "prometheus_client"), ("instrument", "opentelemetry")]
)
def test_the_error_says_what_to_install(run_python: Any, call: str, library: str) -> None:
    done = run_python(
        """
        import sys
        import velocpy, velocpy.metrics
        assert sys.argv[2] not in sys.modules
        sys.modules[sys.argv[2]] = None
        try:
            getattr(velocpy.metrics, sys.argv[1])()
        except velocpy.errors.VelocError as error:
            assert isinstance(error, ImportError) and error.name == sys.argv[2]
            print(error)
        """,
        call,
        library,
    )
    assert done.stdout == (
        f"velocpy.metrics.{call} needs {library}, which is not installed: pip install 'velocpy[metrics]', or "
        "'.[metrics]' in a checkout\n"
    ), done.stderr


def test_the_page_lists_every_metric(root: Path) -> None:
    page = (root / "docs" / "observing.md").read_text(encoding="utf-8")
    written = dict(re.findall(r"^\| `(velocpy_\w+)` \| [^|]+ \| ([^|]+) \|", page, re.MULTILINE))
    assert len(written) == len(FAMILIES)
    for family in FAMILIES.values():
        labels = ", ".join(f"`{label}`" for label in family.labels)
        assert written[family.prometheus + ("_total" if family.grows else "")] == (labels or "–")
