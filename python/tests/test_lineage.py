"""`velocpy.lineage`: which checkpoints of a stored history have the bytes of which, and the pictures of that."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from test_html import EVIL, TAGS, Page

import velocpy
from velocpy import errors, ondisk
from velocpy.cli import main
from velocpy.html import _short
from velocpy.lineage import MOST_BINS, CheckpointOrigins, Lineage, Origin, RegionOrigins, lineage
from velocpy.origins import GONE, OWN_COLOUR, THERE, colours_of
from velocpy.plot.lineage import others, some

CHUNK = 256
SMALL: dict[str, Any] = {"host": "16MiB", "disk": "64MiB"}

State = dict[str, np.ndarray[Any, Any]]


def states() -> list[State]:
    """States whose regions change in known places, move, grow, and come and go."""
    random = np.random.default_rng(7)
    a = random.integers(0, 256, 100_003, np.uint8)
    b = random.integers(0, 256, 70_000, np.uint8)
    found: list[State] = []
    for step in range(6):
        a = a.copy()
        a[CHUNK * 50 * step : CHUNK * (50 * step + 20)] += 1
        state: State = {"a": a, "empty": np.zeros((0, 3))}
        if step != 3:
            state["b"] = b[: 60_000 + 1000 * step]
        if step == 4:
            state["copy"] = a[CHUNK * 5 : CHUNK * 105].copy()
        found.append(state)
    return found


def write(path: Path, given: list[State], **reduction: Any) -> None:
    with velocpy.open(path, **SMALL) as store:
        history = store.history("h", **reduction)
        for step, state in enumerate(given):
            history.checkpoint(step, state).wait("disk")


def first_writers(given: list[State]) -> list[dict[str, list[int]]]:
    """For each state and region the step that has written each byte: that in which its chunk occurred first."""
    record: dict[bytes, int] = {}
    found = []
    for step, state in enumerate(given):
        owners: dict[str, list[int]] = {}
        for name, array in state.items():
            raw = array.tobytes()
            owners[name] = []
            for at in range(0, len(raw), CHUNK):
                chunk = raw[at : at + CHUNK]
                owners[name] += [record.setdefault(chunk, step)] * len(chunk)
        found.append(owners)
    return found


def expected(owners: list[int], own: int, bins: int) -> tuple[dict[int, int], list[int], list[int]]:
    """Bytes of each step; the step that has most of each bin, or the latest of several; own bytes of each bin."""
    count = min(bins, len(owners))
    parts = [Counter(owners[i * len(owners) // count : (i + 1) * len(owners) // count]) for i in range(count)]
    return Counter(owners), [max(part, key=lambda step: (part[step], step)) for part in parts], [p[own] for p in parts]


def is_what_was_written(found: Lineage, given: list[State], bins: int, dropped: frozenset[int] = frozenset()) -> None:
    writers = first_writers(given)
    for checkpoint in found.checkpoints:
        step = int(checkpoint.key)
        assert (checkpoint.form, checkpoint.nbytes) == ("difference", sum(a.nbytes for a in given[step].values()))
        first = found.checkpoints[0].origins[0].number
        assert first is not None
        steps = [origin.number - first for origin in checkpoint.origins if origin.number is not None]
        assert [origin.key for origin in checkpoint.origins] == [None if each in dropped else each for each in steps]
        totals: Counter[int] = Counter()
        for region, (name, owners) in zip(checkpoint.regions, writers[step].items(), strict=True):
            shares, most, own = expected(owners, step, bins)
            assert (region.name, region.nbytes) == (name, len(owners))
            assert {steps[place]: nbytes for place, nbytes in region.shares.items()} == dict(shares)
            assert [steps[place] for place in region.bins] == most
            assert list(region.own) == own
            totals.update(shares)
        assert [origin.nbytes for origin in checkpoint.origins] == [totals[each] for each in steps]
        assert checkpoint.own_nbytes == totals[step]


@pytest.mark.parametrize("bins", [1, 7, 300, MOST_BINS])
@pytest.mark.parametrize("method", ["list", "tree", "runs"])
def test_it_says_what_was_written(tmp_path: Path, method: Any, bins: int) -> None:
    given = states()
    write(tmp_path / "s", given, reduce=method, chunk=CHUNK)
    found = lineage(tmp_path / "s", "h", bins=bins)
    assert [each.key for each in found.checkpoints] == list(range(6))
    is_what_was_written(found, given, bins)
    listed = {each.key: each for each in ondisk.checkpoints(tmp_path / "s", "h")}
    for checkpoint in found.checkpoints:
        entry = listed[checkpoint.key]
        assert (checkpoint.serial, checkpoint.stored_nbytes) == (entry.serial, entry.stored_nbytes)
        assert sum(origin.stored_nbytes for origin in checkpoint.origins[:-1]) == entry.source_nbytes


def test_containers_of_a_compressor_of_the_host(tmp_path: Path) -> None:
    """Catalogs list them as contents of their own."""
    given = states()
    write(tmp_path / "s", given, reduce="tree", chunk=CHUNK, compress="zstd")
    is_what_was_written(lineage(tmp_path / "s", "h"), given, 256)


def test_after_the_first_ones_were_dropped(tmp_path: Path) -> None:
    given = states()
    write(tmp_path / "s", given, reduce="tree", chunk=CHUNK)
    before = lineage(tmp_path / "s", "h", [4])
    with velocpy.open(tmp_path / "s", **SMALL) as store:
        for step in (0, 1):
            store.history("h").drop(step)
    found = lineage(tmp_path / "s", "h")
    assert [each.key for each in found.checkpoints] == [2, 3, 4, 5]
    is_what_was_written(found, given, 256, frozenset({0, 1}))
    (was,), now = before.checkpoints, found.checkpoints[2]
    assert [origin.key for origin in was.origins[:3]] == [0, 1, 2]
    assert now == replace(was, origins=tuple(replace(o, key=None if o.key in (0, 1) else o.key) for o in was.origins))


@pytest.mark.parametrize(
    ("reduction", "form"),
    [({}, "raw"), ({"reduce": "codec"}, "encoded"), ({"reduce": "codec", "compress": "zstd"}, "encoded")],
)
def test_checkpoints_without_sources(tmp_path: Path, reduction: dict[str, Any], form: str) -> None:
    given = [{"a": np.arange(30_000.0) + step, "empty": np.zeros(0), "b": np.ones(3, np.uint8)} for step in range(2)]
    write(tmp_path / "s", given, **reduction)
    found = lineage(tmp_path / "s", "h", bins=5)
    for step, each in enumerate(found.checkpoints):
        (entry,) = (entry for entry in ondisk.checkpoints(tmp_path / "s", "h") if entry.key == step)
        assert (each.form, each.lineage, each.own_nbytes, each.nbytes) == (form, None, 240_003, 240_003)
        assert each.origins == (Origin(None, step, entry.stored_nbytes, 240_003),)
        assert [region.bins for region in each.regions] == [(0,) * 5, (), (0,) * 3]
        assert [region.own for region in each.regions] == [(48_000,) * 5, (), (1,) * 3]
    assert list(found.objects().values()) == [0, 1]


@pytest.mark.parametrize(("digest", "same"), [("xxh3", True), ("murmur3", False)])
def test_a_history_that_was_opened_again_has_two_lineages_if_its_options_changed(
    tmp_path: Path, digest: Any, same: bool
) -> None:
    given = states()[:2]
    for _ in range(2):
        write(tmp_path / "s", given, reduce="tree", chunk=CHUNK)
    with velocpy.open(tmp_path / "s", **SMALL) as store:
        history = store.history("h", reduce="tree", chunk=CHUNK, digest=digest)
        for step in (2, 3):
            history.checkpoint(step, given[step - 2]).wait("disk")
    found = lineage(tmp_path / "s", "h")
    assert [each.key for each in found.checkpoints] == [0, 1, 2, 3]
    ids = [each.lineage for each in found.checkpoints]
    assert ids[0] == ids[1]
    assert ids[2] == ids[3]
    assert (ids[1] == ids[2]) == same
    counts = [len(each.origins) for each in found.checkpoints]
    if same:
        assert min(counts[2:]) > 1
    else:
        assert counts[2:] == [1, 2]


def test_the_latest_ones_and_those_asked_for(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "s", **SMALL) as store:
        history = store.history("h")
        history.checkpoint_many((n, {"u": np.zeros(1)}) for n in range(120))
        store.wait("disk")
        history.checkpoint('"\udc80', u=np.zeros(1)).wait("disk")
    assert [each.key for each in lineage(tmp_path / "s", "h").checkpoints] == [*range(21, 120), '"\udc80']
    assert [each.key for each in lineage(tmp_path / "s", "h", iter([5, '"\udc80', 5])).checkpoints] == [5, '"\udc80', 5]
    assert lineage(tmp_path / "s", "h", []).checkpoints == ()


def test_what_cannot_be_asked(tmp_path: Path) -> None:
    write(tmp_path / "s", states()[:1], reduce="tree")
    for bins in (0, -1, MOST_BINS + 1):
        with pytest.raises(errors.InvalidArgument, match=f"bins is {bins}; give a number from 1 to 4096"):
            lineage(tmp_path / "s", "h", bins=bins)
    for history, keys in (("none", None), ("none", [0]), ("h", [7])):
        with pytest.raises(errors.CheckpointNotFound):
            lineage(tmp_path / "s", history, keys)
    with pytest.raises(errors.NotAStore):
        lineage(tmp_path / "no store", "h")


def test_damaged_metadata_are_named(tmp_path: Path) -> None:
    write(tmp_path / "s", states(), reduce="tree", chunk=CHUNK)
    (extent,) = ondisk.describe(tmp_path / "s", "h", 0).extents
    number = lineage(tmp_path / "s", "h", [0]).checkpoints[0].origins[0].number
    file = tmp_path / "s" / extent.file
    data = bytearray(file.read_bytes())
    data[data.index(b"VELOCOBJ", extent.offset) + 9] ^= 1
    file.write_bytes(data)
    with pytest.raises(errors.DamagedStore, match=rf"its object: .*\({extent.file}\)"):
        lineage(tmp_path / "s", "h", [0])
    with pytest.raises(errors.DamagedStore, match=f"checkpoint 3 .*an earlier checkpoint, number {number} of the lin"):
        lineage(tmp_path / "s", "h", [3])


@st.composite
def located(draw: Any) -> CheckpointOrigins:
    """A checkpoint of a few regions, with any bins."""
    origins = draw(st.integers(1, 4))
    regions = []
    for name in range(draw(st.integers(0, 4))):
        nbytes = draw(st.integers(0, 40))
        count = min(nbytes, draw(st.integers(1, 12)))
        bins = tuple(draw(st.integers(0, origins - 1)) for _ in range(count))
        own = tuple(1 if each == origins - 1 else draw(st.integers(0, 1)) for each in bins)
        regions.append(RegionOrigins(name, nbytes, {}, bins, own))
    objects = tuple(Origin(number, number, 4096, 0) for number in range(origins))
    return CheckpointOrigins("k", 1, "difference", "ab", sum(each.nbytes for each in regions), objects, tuple(regions))


def by_byte(checkpoint: CheckpointOrigins) -> list[tuple[int, bool]]:
    """The object of each byte, and whether its bin has new bytes."""
    found = []
    for region in checkpoint.regions:
        for byte in range(region.nbytes):
            (at,) = (
                i
                for i in range(len(region.bins))
                if i * region.nbytes // len(region.bins) <= byte < (i + 1) * region.nbytes // len(region.bins)
            )
            found.append((region.bins[at], region.own[at] > 0))
    return found


@given(located(), st.integers(1, 30))
def test_spans_and_columns_are_those_of_the_bins(checkpoint: CheckpointOrigins, count: int) -> None:
    wanted = by_byte(checkpoint)
    spans = list(checkpoint.spans())
    assert [(s.origin, s.new) for s in spans for _ in range(s.start, s.stop)] == wanted
    assert all(span.start < span.stop for span in spans)
    columns = checkpoint.columns(count)
    n, count = checkpoint.nbytes, min(count, checkpoint.nbytes)
    assert len(columns) == count
    for i, column in enumerate(columns):
        part = wanted[-(-i * n // count) : -(-(i + 1) * n // count)]
        bytes_of = Counter(origin for origin, _ in part)
        assert column == (max(bytes_of, key=lambda each: (bytes_of[each], each)), any(new for _, new in part))


def example(history: str = "h", key: Any = 1) -> Lineage:
    """Two checkpoints: the second one has bytes of a dropped one, of the first one, and some of its own."""
    gone, first = Origin(1, None, 8192, 50), Origin(2, 0, 4096, 50)
    halves = RegionOrigins("a", 100, {0: 50, 1: 50}, (0, 1), (0, 50))
    mixed = RegionOrigins("a", 100, {0: 50, 1: 45, 2: 5}, (0, 1), (0, 5))
    second = (gone, replace(first, nbytes=45), Origin(3, key, 12288, 5))
    return Lineage(
        history,
        (
            CheckpointOrigins(0, 2, "difference", "ab", 100, (gone, first), (halves,)),
            CheckpointOrigins(key, 3, "difference", "ab", 100, second, (mixed,)),
        ),
    )


def test_a_row_of_characters() -> None:
    assert str(example()).splitlines() == [
        "history 'h': '#' new in the checkpoint, '+' new in part",
        "0  " + 32 * "a" + 32 * "#",
        "1  " + 32 * "a" + 32 * "+",
        "",
        "a  dropped, number 1",
    ]
    assert example().text(2).splitlines()[1:3] == ["0  a#", "1  a+"]
    assert "\x1b" not in example("\x1b[2J", "\x1b[2J\n").text()
    assert len(example("\x1b[2J", "\n").text().splitlines()) == 5
    assert repr(example()) == "<Lineage history='h' checkpoints=2>"
    assert str(Lineage("h", ())) == "history 'h': '#' new in the checkpoint, '+' new in part"


def test_more_objects_than_letters() -> None:
    origins = tuple(Origin(n, n, 4096, 1) for n in range(71))
    region = RegionOrigins("a", 71, dict.fromkeys(range(71), 1), tuple(range(71)), (0,) * 70 + (1,))
    text = Lineage("h", (CheckpointOrigins(70, 9, "difference", "ab", 71, origins, (region,)),)).text(71).splitlines()
    assert text[1] == "70  abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789********#"
    assert text[3] == "a  0"
    assert text[-1] == "*  69"


@pytest.mark.parametrize("name", EVIL)
def test_what_users_name_is_text(name: str) -> None:
    origins = (Origin(1, name, 4096, 50), Origin(2, name, 4096, 50))
    region = RegionOrigins(name, 100, {0: 50, 1: 50}, (0, 1), (0, 50))
    text = Lineage(name, (CheckpointOrigins(name, 3, "raw", "ab", 100, origins, (region,)),))._repr_html_()
    page = Page(text)
    assert text.count("object 1, of ") == 1
    assert page.tags <= TAGS
    assert page.names <= {"style", "title"}
    assert len(page.text) < 600
    assert page.text.count(_short(name)) == 2


def test_a_page_has_strips_of_what_is_new() -> None:
    page = example()._repr_html_()
    assert page.count(f"background:{OWN_COLOUR}") == 2
    assert page.count(f"flex:80;background:{GONE[0]}") == 0  # its columns are bytes: there are 100
    assert page.count(f"flex:50;background:{GONE[0]}") == 2
    assert page.count("object 1, of a dropped checkpoint: 50 B") == 2
    assert "its own object: 5 B" in page
    text = Page(page).text
    for words in (
        "Lineage of 'h': 2 checkpoints",
        "bytes that are new in the checkpoint",
        "difference",
        "12.0 KiB",
        "50 B",
        "5 B",
        "100 B",
    ):
        assert words in text
    many = Lineage("h", example().checkpoints * 30)._repr_html_()
    assert "20 earlier ones are not shown" in many
    assert many.count("flex:50;background") == 2 * 40
    assert "0 checkpoints" in Lineage("h", ())._repr_html_()


def test_colours_tell_the_dropped_and_the_age() -> None:
    colours = colours_of(example().objects())
    assert list(colours) == [("ab", 1), ("ab", 2), ("ab", 3)]
    assert (colours["ab", 1], colours["ab", 3]) == (GONE[0], THERE[1])
    assert len(set(colours.values())) == 3


def test_objects_are_in_the_order_of_writing() -> None:
    first, second = example().checkpoints
    earlier = replace(first, origins=first.origins[1:], regions=())
    other = replace(second, lineage="aa", serial=9)
    raw = replace(earlier, lineage=None, form="raw", serial=5, origins=(Origin(None, "raw", 0, 0),))
    assert list(Lineage("h", (earlier, second)).objects()) == [("ab", 1), ("ab", 2), ("ab", 3)]
    assert list(Lineage("h", (other, raw, earlier)).objects()) == [
        ("ab", 2), ("", 5), ("aa", 1), ("aa", 2), ("aa", 3),
    ]  # fmt: skip


def saved(figure: Any, file: Path) -> Path:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        figure.savefig(file, dpi=40)
    return file


def bars(figure: Any) -> list[list[tuple[float, float, float, float, str]]]:
    """For earlier and new bytes each the bars: from where to where, from which row to which, in which colour."""
    from matplotlib.colors import to_hex

    found = []
    for collection in figure.axes[0].collections[:2]:
        faces = [to_hex(face) for face in collection.get_facecolors()]
        boxes = [path.get_extents() for path in collection.get_paths()]
        faces = faces * len(boxes) if len(faces) == 1 else faces
        found.append([(b.x0, b.x1, b.y0, b.y1, face) for b, face in zip(boxes, faces, strict=True)])
    return found


def test_the_picture_has_a_bar_for_each_span(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = example().plot()
    earlier, new = bars(figure)
    colours = colours_of(example().objects())
    half, whole = 50 / 1024, 100 / 1024
    assert earlier == [
        (0, half, pytest.approx(0.08), pytest.approx(0.92), colours["ab", 1]),
        (0, half, pytest.approx(1.08), pytest.approx(1.92), colours["ab", 1]),
        (half, whole, pytest.approx(1.08), pytest.approx(1.92), colours["ab", 2]),
    ]
    assert new == [
        (half, whole, pytest.approx(0.08), pytest.approx(0.92), OWN_COLOUR),
        (half, whole, pytest.approx(1.5), pytest.approx(1.92), OWN_COLOUR),
    ]
    axes = figure.axes[0]
    assert axes.get_title(loc="left") == "'h': 2 checkpoints, 200 B"
    assert axes.get_xlabel() == "position in the checkpoint, KiB"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1"]
    assert list(axes.get_yticks()) == [0.5, 1.5]
    assert [text.get_text() for text in axes.texts] == ["a", "4.0 KiB", "12.0 KiB", "takes on disk"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["new in the checkpoint", "dropped, number 1", "from 0"]
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert saved(figure, tmp_path / "lineage.png").stat().st_size > 2000


def test_a_picture_of_a_store(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write(tmp_path / "s", states(), reduce="tree", chunk=CHUNK)
    found = lineage(tmp_path / "s", "h")
    figure = found.plot()
    earlier, new = bars(figure)
    for row, checkpoint in enumerate(found.checkpoints):
        wide = sum(x1 - x0 for x0, x1, _, y1, _ in earlier + new if row < y1 < row + 1 and y1 > 0)
        halves = sum(x1 - x0 for x0, x1, y0, _, _ in new if y0 == row + 0.5)
        assert wide - halves == pytest.approx(checkpoint.nbytes / 1024)
    assert {each[4] for each in new} == {OWN_COLOUR}
    assert OWN_COLOUR not in {each[4] for each in earlier}
    assert [found.objects()[each] for each in others(found.checkpoints)] == [0, 1, 2, 3, 4]
    saved(figure, tmp_path / "lineage.png")


@pytest.mark.parametrize("name", ["$\\frac{", "a\nb", "\udc80", "<script>", "", "x" * 500])
def test_any_name_can_be_drawn(tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    with velocpy.open(tmp_path / "s", **SMALL) as store:
        history = store.history(name, reduce="tree")
        for key in (name, "second"):
            history.checkpoint(key, {name: np.arange(20_000.0), "none": np.zeros(0)}).wait("disk")
    figure = lineage(tmp_path / "s", name).plot()
    assert len(figure.legends[0].get_texts()) == 2
    saved(figure, tmp_path / "names.png")


def test_pictures_of_nothing_and_of_much(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    empty = CheckpointOrigins(0, 1, "raw", None, 0, (Origin(None, 0, 0, 0),), ())
    for checkpoints, rows in (((), 0), ((empty,), 1), (example().checkpoints * 100, 30)):
        figure = Lineage("h", checkpoints).plot()
        assert rows - 4 < len(figure.axes[0].get_yticks()) <= rows
        saved(figure, tmp_path / "lineage.png")


def test_some_of_many_objects_are_in_the_legend() -> None:
    assert some([("ab", n) for n in range(6)]) == [("ab", n) for n in range(6)]
    for count in (7, 8, 64, 1000):
        shown = [number for _, number in some([("ab", n) for n in range(count)])]
        assert (shown[0], shown[-1], len(set(shown))) == (0, count - 1, 6)


def test_the_command_shows_a_lineage(tmp_path: Path) -> None:
    write(tmp_path / "s", states(), reduce="tree", chunk=CHUNK)
    with velocpy.open(tmp_path / "s", **SMALL) as store:
        store.history("h").drop(1)
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "s"), "h", "4", "--lineage"])
    assert shown.exit_code == 0, shown.output
    text = lineage(tmp_path / "s", "h", [0, 2, 3, 4]).text()
    assert shown.stdout.endswith(f"\n\n{text}\n")
    assert "dropped, number" in text
    assert "new in part" not in CliRunner().invoke(main, ["show", str(tmp_path / "s"), "h", "4"]).stdout
    told = CliRunner().invoke(main, ["show", str(tmp_path / "s"), "h", "4", "--lineage", "--json"])
    origins = lineage(tmp_path / "s", "h", [4]).checkpoints[0].origins
    assert json.loads(told.stdout)["origins"] == [vars(origin) for origin in origins]
    assert "origins" not in json.loads(
        CliRunner().invoke(main, ["show", str(tmp_path / "s"), "h", "4", "--json"]).stdout
    )
