"""Traces: what the Trace Event Format demands of every event, and what a picture of the store must show."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import velocpy
from velocpy.trace import trace_events, write_trace


@pytest.fixture
def events() -> list[dict[str, Any]]:
    """Those of a store whose checkpoints do not fit the host tier, so that calls wait."""
    with velocpy.open(host="1MiB", disk="32MiB", timeline=10_000) as store:
        history = store.history("forward")
        for n in range(40):
            history.checkpoint(n, u=np.full(100_000, n, np.uint8))
        history.hint(reversed(range(40)))
        for _, lease in history.restore_iter(last=True):
            lease.release()
        for n in range(3):
            history.checkpoint(n, u=np.zeros(10))
            history.drop(n)
        return store.timeline()


def require_valid(trace: dict[str, Any]) -> None:
    """The rules of the Trace Event Format for the kinds of events that are written."""
    assert trace["displayTimeUnit"] in ("ms", "ns")
    processes, tracks = set(), set()
    last = 0.0
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str)
        assert type(event["pid"]) is type(event["tid"]) is int
        assert event["ts"] >= 0
        if event["ph"] == "M":
            assert last == 0.0, "names come before what they name"
            assert event["name"] in ("process_name", "process_sort_index", "thread_name", "thread_sort_index")
            (value,) = event["args"].values()
            assert isinstance(value, str if event["name"].endswith("_name") else int)
            if event["name"] == "process_name":
                processes.add(event["pid"])
            if event["name"] == "thread_name":
                tracks.add((event["pid"], event["tid"]))
            continue
        assert event["ts"] >= last, "events are in order"
        last = event["ts"]
        assert event["pid"] in processes
        if event["ph"] == "C":
            assert all(isinstance(value, int) and value >= 0 for value in event["args"].values())
            continue
        assert (event["pid"], event["tid"]) in tracks, "every track has a name"
        assert event["ph"] in ("X", "i")
        if event["ph"] == "X":
            assert event["dur"] > 0
        else:
            assert event["s"] in ("g", "p", "t")
    for slices in by_track(trace["traceEvents"]):
        for before, after in zip(slices, slices[1:], strict=False):
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-3, "slices of one track do not overlap"


def by_track(events: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    found = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            found[event["pid"], event["tid"]].append(event)
    yield from found.values()


def test_a_trace_keeps_the_rules(events: list[dict[str, Any]], tmp_path: Path) -> None:
    write_trace(events, tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_bytes())
    require_valid(trace)
    made = [event for event in trace["traceEvents"] if event["ph"] in "Xi"]
    assert len(made) == len(events), "nothing is lost"
    kinds = {"capture", "flush", "load", "restore", "evict", "wait", "consume", "drop"}
    assert {event["cat"] for event in made} == kinds
    names = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in trace["traceEvents"]
        if event["name"] == "thread_name"
    }
    places = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    for event in made:
        assert names[event["pid"], event["tid"]].startswith("waits" if event["cat"] == "wait" else event["cat"])
    where = {(event["cat"], places[event["pid"]]) for event in made}
    assert where >= {("capture", "host"), ("flush", "disk"), ("load", "host"), ("wait", "calls"), ("evict", "host")}
    flush = next(event for event in made if event["cat"] == "flush")
    # A trace is ordered by starts, the timeline by ends: of two flushes beside each other the first may differ.
    source = next(event for event in events if event["what"] == "flush" and event["key"] == flush["args"]["key"])
    assert flush["dur"] == pytest.approx(source["dur_ns"] / 1000)
    assert flush["ts"] + flush["dur"] == pytest.approx(source["t_ns"] / 1000)
    assert flush["name"] == f"forward[{source['key']}]"
    assert flush["args"] == {"history": "forward", "key": source["key"], "bytes": source["bytes"]}


def test_the_counters_follow_the_bytes_in_a_tier(events: list[dict[str, Any]]) -> None:
    made = trace_events(events)
    for name, budget in (("bytes in host", 1 << 20), ("bytes in disk", 32 << 20)):
        levels = [event["args"]["bytes"] for event in made if event["name"] == name]
        assert 0 < max(levels) <= budget
        assert levels[-1] == 0


def test_transfers_beside_each_other_get_tracks_of_their_own() -> None:
    def flush(start: int, end: int) -> dict[str, Any]:
        facts = {"history": "h", "key": start, "tier": "disk", "bytes": 1}
        return {"what": "flush", "t_ns": end, "dur_ns": end - start} | facts

    made = trace_events([flush(0, 5000), flush(1000, 2000), flush(2000, 9000), flush(5000, 6000)])
    require_valid({"traceEvents": made, "displayTimeUnit": "ms"})
    assert [event["tid"] for event in made if event["ph"] == "X"] == [4001, 4002, 4002, 4001]
    assert [event["args"]["name"] for event in made if event["name"] == "thread_name"] == ["flush 1", "flush 2"]


@pytest.mark.parametrize("history", ["forward", "\udc80", 'a"b\n', "", "größe"])
@pytest.mark.parametrize("key", [0, -(1 << 63), "\udcff", "last"])
def test_any_name_and_key(tmp_path: Path, history: str, key: int | str) -> None:
    with velocpy.open(host="1MiB", timeline=10) as store:
        store.history(history).checkpoint(key, u=np.zeros(3))
        store.write_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_bytes())
    require_valid(trace)
    json.dumps(trace, ensure_ascii=False).encode("utf-8")  # no lone surrogate is left
    (made,) = (event for event in trace["traceEvents"] if event["ph"] == "X")
    assert str(made["args"]["key"]) == str(key).encode("utf-8", "backslashreplace").decode()


def test_a_compressed_trace(events: list[dict[str, Any]], tmp_path: Path) -> None:
    write_trace(events, tmp_path / "trace.json")
    write_trace(events, tmp_path / "trace.json.gz")
    assert gzip.decompress((tmp_path / "trace.json.gz").read_bytes()) == (tmp_path / "trace.json").read_bytes()


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with velocpy.open(host="1MiB") as store:
        with pytest.raises(velocpy.errors.InvalidArgument, match="timeline="):
            store.write_trace(tmp_path / "trace.json")
        with pytest.raises(velocpy.errors.InvalidArgument, match=r"Store\.timeline"):
            write_trace([{"what": "nothing", "t_ns": 0}], tmp_path / "trace.json")
    with pytest.raises(velocpy.errors.StoreClosed):
        store.write_trace(tmp_path / "trace.json")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "trace.json").write_text("before")
    with pytest.raises(OSError, match="none"):
        write_trace([], tmp_path / "none" / "trace.json")
    write_trace([], tmp_path / "trace.json")
    require_valid(json.loads((tmp_path / "trace.json").read_bytes()))
