"""The demo: its solver, its proof, and what its pictures are drawn from."""

from __future__ import annotations

import ctypes
import io
import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import velocpy
from velocpy.demo import migration
from velocpy.demo.backend import Backend, backend_named, numpy_backend
from velocpy.demo.card import Card, number_of
from velocpy.demo.earth import LENS, layered_earth, lens
from velocpy.demo.migration import InHistory, InMemory, InPointers, Migration, blank_image
from velocpy.demo.picture import draw_image, reflectivity
from velocpy.demo.report import links, reduction, tables
from velocpy.demo.run import Outcome, run
from velocpy.demo.settings import Settings, shape_of
from velocpy.demo.survey import survey_over
from velocpy.demo.wave import WEIGHTS, Wave, stable_step
from velocpy.plot.stays import Record, record_of
from velocpy.plot.timeline import COLOURS, draw_timeline
from velocpy.quantity import sized

SMALL = {2: Settings(size=(48, 61), steps=300, shots=2), 3: Settings(dim=3, size=(26, 27, 29), steps=70)}


# --- the solver -------------------------------------------------------------------------------------------------------


def naive_step(previous: Any, current: Any, courant: Any, order: int) -> Any:
    """The scheme as in a textbook, in float64, without walls: rolled copies of the whole field."""
    centre, *pairs = WEIGHTS[order]
    total = centre * current.ndim * current
    for distance, weight in enumerate(pairs, 1):
        for axis in range(current.ndim):
            total = total + weight * (np.roll(current, distance, axis) + np.roll(current, -distance, axis))
    return 2 * current - previous + courant * total


@pytest.mark.parametrize("order", [4, 8])
@pytest.mark.parametrize("shape", [(33, 41), (15, 17, 19)])
def test_step_is_the_textbook_scheme(shape: tuple[int, ...], order: int) -> None:
    random = np.random.default_rng(1)
    speed = random.uniform(1500, 3000, shape).astype(np.float32)
    dt = stable_step(3000.0, 10.0, len(shape), order)
    wave = Wave(numpy_backend(), speed, 10.0, dt, order, sponge=0)
    rim = order // 2
    inner = tuple(slice(rim, -rim) for _ in shape)
    for field in (wave.previous, wave.current):
        field[inner] = random.standard_normal(shape)
    courant = np.pad((speed.astype(np.float64) * dt / 10.0) ** 2, rim)
    expected = naive_step(wave.previous.astype(np.float64), wave.current.astype(np.float64), courant, order)
    wave.step()
    np.testing.assert_allclose(wave.current[inner], expected[inner], rtol=0, atol=2e-6)


@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
def test_blocks_change_nothing(rows: int) -> None:
    def advanced(block: int) -> bytes:
        plain = numpy_backend()
        backend = Backend(**{**plain.__dict__, "block": block})
        wave = Wave(backend, layered_earth((31, 37)).speed, 10.0, 1e-3, sponge=5)
        wave.earth[4, 9] = 1.0
        for _ in range(50):
            wave.step()
        return bytes(wave.current.tobytes() + wave.previous.tobytes())

    assert advanced(rows * (37 + 10)) == advanced(0)


def test_wave_travels_at_the_speed_of_sound() -> None:
    dt, distance = 1e-3, 40
    wave = Wave(numpy_backend(), np.full((80, 120), 2000.0, np.float32), 10.0, dt, sponge=20)
    survey = survey_over(layered_earth((80, 120)), 1, steps=400, frequency=15.0)
    wavelet = survey_over(layered_earth((80, 120)), 1, steps=400, frequency=15.0).wavelet
    assert np.array_equal(survey.wavelet, wavelet)
    heard = {20: [], 20 + distance: []}  # type: dict[int, list[float]]
    for strength in wavelet:
        wave.step()
        wave.earth[40, 40] += float(strength)
        for far, trace in heard.items():
            trace.append(float(wave.earth[40, 40 + far]))
    near, far = (np.abs(trace).argmax() for trace in heard.values())
    assert (far - near) * dt == pytest.approx(distance * 10.0 / 2000.0, rel=0.03)


def test_walls_absorb() -> None:
    wave = Wave(numpy_backend(), np.full((60, 60), 2000.0, np.float32), 10.0, 1e-3)
    strongest = 0.0
    for strength in survey_over(layered_earth((60, 60)), 1, steps=600, frequency=15.0).wavelet:
        wave.step()
        wave.earth[30, 30] += float(strength)
        strongest = max(strongest, float(np.abs(wave.earth).max()))
    assert 0 < np.abs(wave.earth).max() < 2e-3 * strongest


def test_earth_has_layers_a_lens_and_a_smooth_model() -> None:
    earth = layered_earth((60, 90))
    assert len(np.unique(earth.speed)) == 6
    assert (earth.speed[lens((60, 90))] == LENS).all()
    steepest = np.abs(np.diff(earth.smooth, axis=0)).max()
    assert steepest < 0.35 * np.abs(np.diff(earth.speed, axis=0)).max()
    assert earth.smooth.mean() == pytest.approx(earth.speed.mean(), rel=0.03)


# --- the proof --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[2, 3])
def outcome(request: pytest.FixtureRequest) -> Outcome:
    return run(SMALL[request.param])


def test_image_is_bitwise_that_of_memory(outcome: Outcome) -> None:
    assert outcome.equal
    assert outcome.proven
    assert outcome.image.cross.tobytes() == outcome.reference.cross.tobytes()
    assert np.count_nonzero(outcome.image.cross) > 0.9 * outcome.image.cross.size


def test_nothing_of_the_timeline_is_lost(outcome: Outcome) -> None:
    assert outcome.stats["timeline_lost"] == 0


@pytest.mark.parametrize("fraction", [1e-9, 0.03, 1.5])
def test_any_memory_budget(fraction: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """From room for less than two checkpoints to room for more than all."""
    monkeypatch.setattr("velocpy.demo.settings.LEAST", 20_000)
    result = run(Settings(size=(48, 61), steps=120, shots=1, host_fraction=fraction))
    assert result.proven


def test_history_is_larger_than_the_memory_it_had(outcome: Outcome) -> None:
    assert outcome.survey.history_bytes > 2 * outcome.budgets["host"]


def test_image_shows_the_reflectors() -> None:
    """The strongest row of the image near the first boundary is the boundary itself."""
    survey = Settings(size=(96, 120), shots=3).survey()
    backend = numpy_backend()
    image = blank_image(backend, survey)
    engine = Migration(backend, survey)
    engine.record()
    memory = InMemory(backend, survey)
    for shot in range(3):
        engine.migrate(shot, memory, image)
    column = np.abs(reflectivity(image.cross, image.light)[:, 60])
    boundary = int(np.argmax(np.diff(survey.earth.speed[:, 60]) > 0))
    assert abs(int(column[15:30].argmax()) + 15 - boundary) <= 2


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_torch_computes_the_same(device: str) -> None:
    pytest.importorskip("torch")
    small = SMALL[2]
    result = run(Settings(size=small.size, steps=small.steps, shots=1, backend="torch", device=device))
    assert result.proven
    numpy = run(Settings(size=small.size, steps=small.steps, shots=1))
    scale = float(np.abs(numpy.image.cross).max())
    np.testing.assert_allclose(result.backend.numpy(result.image.cross), numpy.image.cross, atol=1e-3 * scale, rtol=0)


def test_one_wrong_bit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(InHistory):
        def keep(self, step: int, field: Any) -> None:
            field = np.array(field)
            if step == 150:
                field.view(np.uint32)[20, 30] ^= 1 << 20
            super().keep(step, field)

    monkeypatch.setattr("velocpy.demo.run.InHistory", Wrong)
    result = run(SMALL[2])
    assert not result.equal
    assert not result.proven


def test_a_blank_image_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration.Migration, "_reverse", lambda *arguments: None)
    result = run(Settings(size=(48, 61), steps=300, shots=1))
    assert result.equal
    assert not result.proven


def test_not_a_number_proves_nothing() -> None:
    backend = backend_named("numpy")
    image = blank_image(backend, SMALL[2].survey())
    image.cross[3, 4] = np.nan
    assert image.blank(backend)


# --- a device, without one --------------------------------------------------------------------------------------------


def pretended(**more: Any) -> Backend:
    """NumPy on a device that is host memory."""
    parts: dict[str, Any] = {
        "number": 0,
        "free": lambda: 1 << 40,
        "give_back": lambda: None,
        "finish": lambda: None,
        "stream": lambda: nullcontext(77),
        "address": lambda array: array.ctypes.data,
    }
    return replace(numpy_backend(), device="cuda:0", card=Card(**{**parts, **more}))


class Pointed:
    """A history of what lies at addresses."""

    def __init__(self) -> None:
        self.kept: dict[int, bytes] = {}
        self.streams: set[int] = set()
        self.hinted: list[int] = []

    def hint(self, keys: Any) -> None:
        self.hinted = list(keys)

    def prefetch(self) -> None:
        pass

    def checkpoint(self, key: int, *, u: tuple[int, int, int], stream: int) -> None:
        address, nbytes, device = u
        assert device == 0
        self.streams.add(stream)
        self.kept[key] = ctypes.string_at(address, nbytes)

    def restore(self, key: int, *, into: dict[str, tuple[int, int, int]], last: bool, stream: int) -> None:
        address, nbytes, device = into["u"]
        assert device == 0
        assert last
        assert nbytes == len(self.kept[key])
        self.streams.add(stream)
        ctypes.memmove(address, self.kept.pop(key), nbytes)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_loop_over_pointers_computes_the_same(dim: int) -> None:
    backend, survey = pretended(), SMALL[dim].survey()
    engine = Migration(backend, survey)
    engine.record()
    images = [blank_image(backend, survey) for _ in range(2)]
    history = Pointed()
    engine.migrate(0, InMemory(backend, survey), images[0])
    engine.migrate(0, InPointers(backend, survey, history, 77), images[1])
    assert images[1].equals(images[0], backend)
    assert not images[1].blank(backend)
    assert history.streams == {77}
    assert history.hinted == list(reversed(range(survey.steps)))
    assert history.kept == {}


def test_pointers_are_on_a_device() -> None:
    with pytest.raises(ValueError, match="CPU"):
        InPointers(numpy_backend(), SMALL[2].survey(), Pointed(), 0)


def on_host(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> list[dict[str, Any]]:
    """Lets the demo run on a pretended device, over a store of host and disk; gives what stores were opened with."""
    opened = []
    original = velocpy.open

    def without_device(path: Any = None, **options: Any) -> Any:
        opened.append(dict(options))
        return original(path, **{**options, "device": None})

    monkeypatch.setattr(velocpy, "open", without_device)
    monkeypatch.setattr("velocpy.demo.run.backend_named", lambda name, device: backend)
    return opened


def test_a_device_gets_its_budget_and_its_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []
    opened = on_host(monkeypatch, pretended(number=3, give_back=lambda: given.append("back")))
    settings = replace(SMALL[2], device="cuda:3", backend="cupy")
    result = run(settings)
    assert result.proven
    assert given == ["back"]
    assert [options["device"] for options in opened] == [{3: settings.budgets(result.survey)["device"]}]


def test_a_reference_too_large_for_the_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = on_host(monkeypatch, pretended(free=lambda: SMALL[2].survey().history_bytes))
    with pytest.raises(velocpy.errors.TierFull, match=r"needs .* on cuda:0, where .* are free"):
        run(replace(SMALL[2], device="cuda"))
    assert opened == []


@pytest.mark.parametrize("make", [numpy_backend, lambda: backend_named("torch")])
def test_bits_are_compared(make: Callable[[], Backend]) -> None:
    if make is not numpy_backend:
        pytest.importorskip("torch")
    backend = make()
    one = np.array([1.0, np.nan, 0.0], np.float32)
    assert backend.same(backend.array(one), backend.array(one.copy()))
    assert not backend.same(backend.array(one), backend.array(np.array([1.0, np.nan, -0.0], np.float32)))


# --- settings ---------------------------------------------------------------------------------------------------------


def test_sizes_are_read() -> None:
    assert shape_of("96", 2) == (96, 96)
    assert shape_of("96X120", 2) == (96, 120)
    assert shape_of("30x40x50", 3) == (30, 40, 50)


@pytest.mark.parametrize("text", ["", "x", "96x", "12", "-96", "96x120", "1e3", "96x96x96x96", "٩٦"])
def test_bad_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|cells"):
        shape_of(text, 3)


def test_defaults_are_meaningful() -> None:
    for dim in (2, 3):
        settings = Settings(dim=dim)
        survey = settings.survey()
        whole = survey.history_bytes * len(survey.sources)
        assert 0.5e9 < whole < 2.5e9
        assert settings.budgets(survey)["host"] == survey.history_bytes // 8


def test_defaults_on_a_device_need_every_tier() -> None:
    for dim in (2, 3):
        settings = Settings(dim=dim, device="cuda")
        survey = settings.survey()
        budgets = settings.budgets(survey)
        assert survey.history_bytes >= 4 * budgets["device"]
        assert survey.history_bytes > 1.4 * (budgets["device"] + budgets["host"])
        assert survey.history_bytes < budgets["disk"]
        assert settings.library == "torch"


@pytest.mark.parametrize(
    "wrong",
    [
        {"device": "cuda", "backend": "numpy"},
        {"device": "cuda:-1"},
        {"device": "CUDA"},
        {"backend": "cupy"},
        {"pointers": True},
        {"device_fraction": 0.5},
        {"device": "cuda", "device_fraction": float("nan")},
        {"device": "cuda", "host_fraction": 3.0},
    ],
)
def test_what_does_not_go_together_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"device|CPU|CUDA|fraction"):
        Settings(**wrong).check()


def test_what_goes_together() -> None:
    for right in ({}, {"backend": "torch"}, {"device": "cuda:1", "backend": "cupy", "pointers": True}):
        Settings(**right).check()  # type: ignore[arg-type]
    assert number_of("cuda:12") == 12


@given(st.integers(0, 10**15))
def test_sized_is_right_to_one_decimal(nbytes: int) -> None:
    number, unit = sized(nbytes).split()
    scale = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit)
    assert abs(float(number) * scale - nbytes) <= 0.0501 * scale
    assert float(number) < 1024 or unit == "TiB"


# --- the timeline -----------------------------------------------------------------------------------------------------


def event(t: int, what: str, key: int = 0, tier: str = "host", nbytes: int = 10, took: int = 0, **more: Any) -> Any:
    return {
        "t_ns": t, "what": what, "history": "h", "key": key, "tier": tier, "bytes": nbytes, "dur_ns": took, **more
    }  # fmt: skip


def test_stays_follow_a_checkpoint() -> None:
    record = record_of(
        [
            event(0, "capture"),
            event(30, "evict"),
            event(20, "flush", tier="disk", took=5),
            event(60, "load", took=10),
            event(70, "restore", last=True),
            event(40, "capture", key=1),
        ]
    )
    assert {(stay.row, stay.tier, stay.start, stay.end) for stay in record.stays} == {
        (0, "host", 0, 30),
        (0, "disk", 20, 70),
        (0, "host", 60, 70),
        (1, "host", 40, 70),
    }
    assert record.restores == [(70, 0)]
    assert [(t.tier, t.start, t.end) for t in record.transfers] == [("disk", 15, 20), ("host", 50, 60)]
    assert record.groups == [("h", 0, 2)]


def test_a_rewritten_key_is_a_new_row() -> None:
    record = record_of([event(0, "capture"), event(5, "capture"), event(9, "drop")])
    assert {(stay.row, stay.start, stay.end) for stay in record.stays} == {(0, 0, 5), (1, 5, 9)}


def test_a_load_may_end_after_the_restore_that_consumed_it() -> None:
    record = record_of([event(0, "capture"), event(5, "restore", last=True), event(8, "load", tier="device", took=6)])
    assert {(stay.row, stay.tier, stay.start, stay.end) for stay in record.stays} == {(0, "host", 0, 5)}
    assert [(t.tier, t.start, t.end, t.way) for t in record.transfers] == [("device", 2, 8, "up")]


def test_events_older_than_the_first_kept_are_left_out() -> None:
    record = record_of([event(1, "flush", tier="disk"), event(2, "restore"), event(3, "capture", key=1)])
    assert [stay.row for stay in record.stays] == [0]
    assert record.restores == []


def peak(record: Record, tier: str) -> int:
    """The most bytes that lay in a tier at once."""
    changes = sorted(
        change
        for stay in record.stays
        if stay.tier == tier
        for change in ((stay.start, stay.nbytes), (stay.end, -stay.nbytes))
    )
    level = highest = 0
    for _, change in changes:
        level += change
        highest = max(highest, level)
    return highest


def test_events_of_a_run_tell_where_everything_was(outcome: Outcome) -> None:
    record = record_of(outcome.events)
    checkpoints = outcome.survey.steps * len(outcome.survey.sources)
    assert len(record.captures) == checkpoints
    assert sorted(row for _, row in record.restores) == list(range(checkpoints))
    assert 0 < peak(record, "host") <= outcome.budgets["host"]
    assert 0 < peak(record, "disk") <= outcome.budgets["disk"]
    assert record.groups == [
        (f"shot {shot + 1}", shot * outcome.survey.steps, (shot + 1) * outcome.survey.steps)
        for shot in range(len(outcome.survey.sources))
    ]


def test_events_tell_all_the_waiting(tmp_path: Path) -> None:
    """Captures that outrun the disk wait for room; the timeline and the counters agree to the nanosecond."""
    with velocpy.open(tmp_path, host="9MiB", disk="512MiB", timeline=10_000) as store:
        forward = store.history("forward")
        for step in range(60):
            forward.checkpoint(step, u=np.full(1 << 20, step, np.float32))
        for step in range(60):
            with forward.restore(step, last=True) as state:
                assert (state["u"] == step).all()
        waits, record = store.stats()["waits_ns"], record_of(store.timeline())
    assert sum(end - start for start, end in record.waits) == waits["capture"] + waits["restore"] > 0
    assert peak(record, "host") <= 9 << 20


@pytest.fixture(scope="module")
def three_tiers() -> Any:
    """What a store with device, host and disk told of sixty checkpoints: its events and its counters."""
    return json.loads((Path(__file__).parent / "data" / "three_tiers.json").read_text())


def test_events_of_three_tiers_tell_where_everything_was(three_tiers: Any) -> None:
    record, tiers = record_of(three_tiers["events"]), three_tiers["stats"]["tiers"]
    assert len(record.captures) == len(record.restores) == 60
    for name, tier in tiers.items():
        assert 0 < peak(record, name) <= tier["capacity"]
    moved = {
        way: sum(t.nbytes for t in record.transfers if (t.tier, t.way) == way)
        for way in (("host", "down"), ("disk", "down"), ("host", "up"), ("device", "up"))
    }
    assert moved == {
        ("host", "down"): tiers["host"]["written_bytes"],
        ("disk", "down"): tiers["disk"]["written_bytes"],
        ("host", "up"): tiers["disk"]["read_bytes"],
        ("device", "up"): tiers["host"]["read_bytes"],
    }
    assert sum(moved.values()) == sum(t.nbytes for t in record.transfers)


def test_links_are_told_from_the_counters(three_tiers: Any) -> None:
    tiers = three_tiers["stats"]["tiers"]
    found = links(SimpleNamespace(stats=three_tiers["stats"]))  # type: ignore[arg-type]
    assert list(found) == ["device - host", "host - disk"]
    assert (found["device - host"]["down"], found["device - host"]["up"]) == (
        tiers["host"]["written_bytes"],
        tiers["host"]["read_bytes"],
    )
    assert found["host - disk"]["down"] == tiers["disk"]["written_bytes"]
    assert found["device - host"]["down_bytes_per_s"] == tiers["device"]["flush_bytes_per_s"]


def test_tables_tell_of_every_tier_and_link(outcome: Outcome, three_tiers: Any) -> None:
    from rich.console import Console

    budgets = {name: tier["capacity"] for name, tier in three_tiers["stats"]["tiers"].items()}
    shown = io.StringIO()
    for table in tables(replace(outcome, stats=three_tiers["stats"], budgets=budgets)):
        Console(file=shown, width=120).print(table)
    told = " ".join(shown.getvalue().split())
    for words in ("all on the device", "device - host", "host - disk", "2.0 MiB", "10.1 MiB", "11.5 MiB", "7.3 MiB"):
        assert words in told, words
    assert "the device waiting for room │ │ 1.25 s" in told or "the device waiting for room 1.25 s" in told, told


# --- the pictures -----------------------------------------------------------------------------------------------------


def pixels(figure: Any, path: Path) -> Any:
    from matplotlib.image import imread

    figure.savefig(path, dpi=50)
    assert path.read_bytes().startswith(b"\x89PNG")
    return imread(path)


def share_of(picture: Any, colour: str) -> float:
    """The share of pixels that are close to a colour."""
    from matplotlib.colors import to_rgb

    return float((np.abs(picture[..., :3] - to_rgb(colour)).max(axis=-1) < 0.04).mean())


def test_timeline_picture_shows_both_tiers(outcome: Outcome, tmp_path: Path) -> None:
    picture = pixels(draw_timeline(outcome.events, outcome.budgets, "title", "subtitle"), tmp_path / "t.png")
    assert share_of(picture, COLOURS["host"]) > 0.005
    assert share_of(picture, COLOURS["disk"]) > 0.02


def test_timeline_picture_shows_three_tiers(three_tiers: Any, tmp_path: Path) -> None:
    budgets = {name: tier["capacity"] for name, tier in three_tiers["stats"]["tiers"].items()}
    figure = draw_timeline(three_tiers["events"], budgets, "title", "subtitle")
    words = {text.get_text() for text in figure.legends[0].get_texts()}
    assert words == {"on the device", "in host memory", "on disk", "restored"}
    picture = pixels(figure, tmp_path / "t.png")
    for tier in ("device", "host", "disk"):
        assert share_of(picture, COLOURS[tier]) > 0.005, tier
    without = pixels(draw_timeline([e for e in three_tiers["events"] if e["tier"] != "device"]), tmp_path / "w.png")
    assert share_of(without, COLOURS["device"]) < 0.0005


def test_timeline_picture_of_nothing(tmp_path: Path) -> None:
    assert pixels(draw_timeline([]), tmp_path / "t.png").shape[2] >= 3


def test_timeline_picture_of_an_open_store(tmp_path: Path) -> None:
    with velocpy.open(host="4MiB", timeline=100) as store:
        forward = store.history("forward")
        for step in range(5):
            forward.checkpoint(step, u=np.full(1000, step))
        events = store.timeline()
    evenly = [{**event, "t_ns": 1000 * n, "dur_ns": 0} for n, event in enumerate(events)]
    picture = pixels(draw_timeline(evenly), tmp_path / "t.png")
    assert share_of(picture, COLOURS["host"]) > 0.005


def test_image_picture_shows_the_image(outcome: Outcome, tmp_path: Path) -> None:
    shown = outcome.image
    picture = pixels(draw_image(outcome.survey, shown.cross, shown.light, "title"), tmp_path / "i.png")
    blank = pixels(draw_image(outcome.survey, 0 * shown.cross, shown.light, "title"), tmp_path / "b.png")
    assert picture.shape == blank.shape
    assert (picture != blank).any(axis=-1).mean() > 0.03


def test_reduced_wavefields_give_the_same_image() -> None:
    """Encoded on their way to the disk, and decoded on the way back: the image is the same, and less was written."""
    settings = Settings(size=(160, 168), steps=120, shots=2, reduce="codec")
    outcome = run(settings)
    assert outcome.proven
    saved = reduction(outcome)
    assert saved is not None
    assert saved["encoded"] > 0
    assert saved["encoded_from"] > 1.2 * saved["encoded_to"] > 0
    assert reduction(run(replace(settings, reduce=None))) is None


@pytest.mark.parametrize("method", ["basic", "tree", "runs"])
def test_wavefields_without_duplicates_give_the_same_image(method: Any) -> None:
    """De-duplicated on their way to the disk: the image is the same, and the report says what that saved."""
    outcome = run(Settings(size=(160, 168), steps=120, shots=2, reduce=method))
    assert outcome.proven
    saved = reduction(outcome)
    assert saved is not None
    assert saved["encoded"] > saved["differences"] > 0
    assert saved["encoded_from"] > 1.2 * saved["first_bytes"] > 0
    assert saved["encoded_from"] > 1.5 * saved["encoded_to"] > saved["meta_bytes"] > 0
    last = tables(outcome)[-1]
    rows = dict(zip(*(list(column.cells) for column in last.columns), strict=True))
    assert rows["of these, refer to earlier ones"] == f"{saved['differences']}"
    assert {"bytes that no earlier one had", "bytes of metadata"} <= set(rows)
