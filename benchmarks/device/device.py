"""What captures, transfers and leases of device memory cost, beside plain copies of the same bytes in the same run."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import velocpy
from benchmarks.engines.card import HostCard
from benchmarks.engines.contenders import card_for
from velocpy.bench.report import Report
from velocpy.bench.timing import median

from .steps import beside_ring

MANY = 500  # arrays of one checkpoint
LAP = 3  # checkpoints of so many in a row
PINNED_WITHIN = 60.0  # seconds
STEPS = 2  # matrix products per chunk of the training-like sequence: a little longer than the flush of a checkpoint
CHUNKS = 24


def run(size: int = 128 << 20, rounds: int = 16, copies: int = 12) -> Report:
    """Checkpoints of size bytes; on host memory where there is no GPU, which says nothing but that it runs."""
    card = card_for(max(size, 8 * size // MANY))
    with contextlib.closing(card):
        rates = card.rates(size)
        report = Report("device", {"size_mib": size / (1 << 20), "rounds": rounds, "card": card.name})
        report.measure({f"{name} GB/s": round(rate / 1e9, 2) for name, rate in rates.items()})
        _captures(report, card, size, rounds, copies)
        _many(report, card, 8 * size, rounds)
        _leases(report, card, size, rounds)
        beside_ring(report, card, size // 8, 2 * rounds)
        _transfers(report, card, size, rates)
        _beside_training(report, card, size, rounds)
    if card.name == HostCard.name:
        report.bars.clear()
    return report


@contextlib.contextmanager
def opened(card: Any, device: int, host: int, **options: Any) -> Iterator[velocpy.Store]:
    """A store of a device and a pinned host tier; on host memory the host tier alone."""
    if card.name == HostCard.name:
        with velocpy.open(host=device + host, **options) as store:
            yield store
        return
    with velocpy.open(device=device, host=host, **options) as store:
        deadline = time.monotonic() + PINNED_WITHIN
        while (tier := store.stats()["tiers"]["host"])["pinned_bytes"] < tier["capacity"]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{tier['pinned_bytes']} of {tier['capacity']} bytes of host memory were pinned")
            time.sleep(0.01)
        yield store


def _captures(report: Report, card: Any, size: int, rounds: int, copies: int) -> None:
    """checkpoint() when there is room: what the host spends, and what the device."""
    source, there = card.device(size), card.device(size)
    card.stamp(source, 1)
    room = 2 * copies * (size + (1 << 20))
    host: dict[str, list[float]] = {}
    gpu: dict[str, list[float]] = {"plain copy": []}
    with opened(card, room, room) as checked, opened(card, room, room, tuning=velocpy.Tuning(checksum=False)) as plain:
        for number in range(rounds + 1):
            laps: dict[str, list[float]] = {}
            for name, store in (("checksum on", checked), ("checksum off", plain)):
                history = store.history("capture")
                card.spin(5e-3)  # the device is busy, as an application keeps it
                laps[name] = [_timed(lambda i=i, h=history: h.checkpoint(i, u=source)) for i in range(copies)]  # type: ignore[misc]
                gpu_times = [
                    card.seconds(lambda i=i, h=history: h.checkpoint(copies + i, u=source)) for i in range(copies)
                ]
                _equal(card, history.restore(2 * copies - 1), 1)
                history.clear()
                card.join()
                if number:
                    host.setdefault(name, []).extend(laps[name])
                    gpu.setdefault(name, []).extend(gpu_times)
            card.spin(5e-3)
            laps["plain copy"] = [_timed(lambda: card.copy(there, source)) for _ in range(copies)]
            if number:
                host.setdefault("plain copy", []).extend(laps["plain copy"])
                gpu["plain copy"] += [card.seconds(lambda: card.copy(there, source)) for _ in range(copies)]
    for name in ("plain copy", "checksum off", "checksum on"):
        row = _host_times("copy()" if name == "plain copy" else f"checkpoint(), {name}", host[name], copies)
        row |= {"device µs": median(gpu[name]) * 1e6, "of a plain copy": median(gpu[name]) / median(gpu["plain copy"])}
        report.rows.append(row)
    off, on = report.rows[-2:]
    report.bar("checksum off: device time of a capture by a plain copy's", off["of a plain copy"], 1.05, at_least=False)
    report.bar("checksum on: device time of a capture by a plain copy's", on["of a plain copy"], 1.15, at_least=False)
    report.bar("host time of checkpoint(), median, µs", on["host median µs"], 15, at_least=False)
    report.bar("host time of checkpoint(), p99, µs", on["host p99 µs"], 50, at_least=False)
    report.notes += [
        "'first' is the first call of each row of calls, after a pause in which the host waited for the device.",
        "Stores are measured once their host memory is pinned; how the first checkpoints fare is another benchmark's.",
    ]


def _host_times(what: str, times: list[float], lap: int) -> dict[str, Any]:
    """What the host spent in calls, so many in a row."""
    ordered = sorted(times)
    row = {"what": what, "host median µs": median(times) * 1e6, "host p99 µs": ordered[len(times) * 99 // 100] * 1e6}
    return row | {"first, host median µs": median(times[::lap]) * 1e6}


def _many(report: Report, card: Any, total: int, rounds: int) -> None:
    """Checkpoints of many arrays, beside one copy of as many bytes and the library's own copy of as many arrays."""
    each = total // MANY // 16 * 16
    arrays, others = ([card.device(each) for _ in range(MANY)] for _ in range(2))
    for number, array in enumerate(arrays):
        card.stamp(array, number)
    one, there = card.device(each * MANY), card.device(each * MANY)
    ours, theirs = f"checkpoint() of {MANY} arrays, {total >> 20} MiB in all", f"copies of {MANY} arrays in one call"
    host: dict[str, list[float]] = {ours: [], theirs: []}
    gpu: dict[str, list[float]] = {ours: [], theirs: [], "plain": []}
    room = 2 * (LAP + 1) * total  # a round finds room while flushes of the one before are still being ended
    with opened(card, room, room) as store:
        history = store.history("many")
        calls = {ours: lambda key: history.checkpoint(key, arrays), theirs: lambda _: card.copy_all(others, arrays)}
        for number in range(rounds + 1):
            for name, call in list(calls.items())[:: 1 if number % 2 else -1]:
                card.spin(5e-3)
                laps = [_timed(lambda key=key, call=call: call(key)) for key in range(LAP)]  # type: ignore[misc]
                busy = card.seconds(lambda call=call: call(LAP), head=5e-3)
                if number:
                    host[name] += laps
                    gpu[name].append(busy)
                history.wait("host")
            with history.restore(LAP) as lease:
                for n in (0, MANY // 2, MANY - 1):
                    card.compare(lease[n], n)
            if card.differences():
                raise AssertionError("one of many arrays came back different")
            history.clear()
            copied = card.seconds(lambda: card.copy(there, one))
            if number:
                gpu["plain"].append(copied)
    for name, times in host.items():
        row = _host_times(name, times, LAP) | {"device µs": median(gpu[name]) * 1e6}
        report.rows.append(row | {"of a plain copy": median(gpu[name]) / median(gpu["plain"])})
    row = report.rows[-2]
    report.bar(f"{MANY} arrays: device time by one copy's", row["of a plain copy"], 1.3, at_least=False)
    report.bar(f"{MANY} arrays: host time of calls in a row, µs", row["host median µs"], 300, at_least=False)
    first = row["first, host median µs"]
    report.bar(f"{MANY} arrays: host time of the first call after a pause, µs", first, 300, at_least=False)


def _leases(report: Report, card: Any, size: int, rounds: int) -> None:
    """restore() of what lies on the device."""
    source = card.device(size)
    card.stamp(source, 2)
    times: list[float] = []
    with opened(card, 4 * (size + (1 << 20)), 4 * (size + (1 << 20))) as store:
        history = store.history("lease")
        history.checkpoint(0, u=source)
        _equal(card, first := history.restore(0), 2)
        with history.restore(0) as second:
            if _address(first["u"]) != _address(second["u"]):
                raise AssertionError("two leases of one checkpoint show two places: something copied")
        first.release()
        for _ in range(64 * rounds):
            times.append(_timed(lambda: history.restore(0)["u"]))
    row = {"what": "restore() as a lease, with its array", "host median µs": median(times) * 1e6}
    report.rows.append(row | {"host p99 µs": sorted(times)[len(times) * 99 // 100] * 1e6})
    report.bar("lease of what lies on the device, host, µs", median(times) * 1e6, 20, at_least=False)


def _transfers(report: Report, card: Any, size: int, rates: dict[str, float]) -> None:
    """Flushes, prefetches, and both at once, beside plain copies."""
    source = card.device(size)
    card.stamp(source, 3)
    held, count = 16, 80
    room, below = held * (size + (1 << 20)), (count + held) * (size + (1 << 20))
    found: dict[str, list[float]] = {"down": [], "up": [], "both": []}
    with opened(card, room, below, tuning=velocpy.Tuning(flush="eager")) as store:
        for number in range(4):
            history = store.history(f"transfers {number}")
            before, began = _moved(store), time.perf_counter()
            for i in range(count):
                history.checkpoint(i, u=source)
            history.wait("host")
            card.join()
            laps = {"down": (_moved(store)[0] - before[0]) / (time.perf_counter() - began)}
            for way, writes in (("up", False), ("both", True)):
                keys = range(count // 2) if way == "up" else range(count // 2, count)
                history.hint(keys, last=True)
                before, began = _moved(store), time.perf_counter()
                for key in keys:
                    if writes:
                        history.checkpoint(count + key, u=source)
                    lease = history.restore(key, last=True)
                    if number == 0:
                        card.compare(lease["u"], 3)
                    lease.release()
                card.join()
                down, up = (now - then for now, then in zip(_moved(store), before, strict=True))
                laps[way] = (down + up if writes else up) / (time.perf_counter() - began)
            if card.differences():
                raise AssertionError("a transfer changed bytes")
            history.clear()
            if number:  # the first one meets memory that is not ready yet
                for way, rate in laps.items():
                    found[way].append(rate)
    for way, least in (("down", 0.97), ("up", 0.97), ("both", 0.95)):
        ratio = median(found[way]) / rates[way]
        report.rows.append({"what": f"transfers, {way}", "GB/s": median(found[way]) / 1e9, "of a plain copy": ratio})
        report.bar(f"transfers {way}, of the pinned copy rate", ratio, least, at_least=True)


def _moved(store: velocpy.Store) -> tuple[int, int]:
    """Bytes that crossed the device's link, down and up."""
    host = store.stats()["tiers"]["host"]
    return host["written_bytes"], host["read_bytes"]


def _beside_training(report: Report, card: Any, size: int, rounds: int) -> None:
    """How much longer a training-like sequence takes beside flushes than beside plain copies of the same bytes."""
    source, slots = card.device(size), [card.device(size) for _ in range(4)]
    below, side = card.pinned(4, size), card.lane()
    room = 16 * (size + (1 << 20))
    times: dict[str, list[float]] = {"alone": [], "plain copies": [], "velocpy": []}
    with opened(card, room, 2 * CHUNKS * (size + (1 << 20)), tuning=velocpy.Tuning(flush="eager")) as store:
        history = store.history("training")

        left: deque[Any] = deque()

        def plainly(i: int) -> None:
            if len(left) == len(slots):
                card.after([left.popleft()])
            card.copy(slots[i % 4], source)
            card.after([card.mark()], side)
            card.copy(below[i % 4][:size], slots[i % 4], side)
            left.append(card.mark(side))

        def with_us(i: int) -> None:
            history.checkpoint(i, u=source)

        ways: dict[str, Callable[[int], object]] = {
            "alone": lambda _: None,
            "plain copies": plainly,
            "velocpy": with_us,
        }
        for number in range(rounds + 1):
            for name, way in ways.items():
                took = card.seconds(lambda way=way: _train(card, way))
                card.mark(side).wait()
                history.wait("host")
                history.clear()
                if number:
                    times[name].append(took)
    slower = median([ours / plain for ours, plain in zip(times["velocpy"], times["plain copies"], strict=True)])
    for name, values in times.items():
        report.rows.append({"what": f"training-like sequence, {name}", "device µs": median(values) * 1e6})
    report.bar("training-like sequence beside flushes, by beside plain copies", slower, 1.02, at_least=False)


def _train(card: Any, way: Callable[[int], object]) -> None:
    for i in range(CHUNKS):
        card.train(STEPS)
        way(i)


def _equal(card: Any, lease: velocpy.Lease, key: int) -> None:
    card.compare(lease["u"], key)
    if card.differences():
        raise AssertionError("the checkpoint is not what was captured")


def _address(array: Any) -> int:
    return int(array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data)


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
