"""`Store.plot`: what the pictures show, of whatever a store may hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import velocpy
from velocpy.extra import MissingLibrary
from velocpy.plot.tiers import HISTORIES, shares

pytest.importorskip("matplotlib")

#: Names that a formula, a font or a file could trip over.
NAMES = ["forward", "$\\frac{", "a\nb", "\udc80", "<script>", "", "x" * 500]


@pytest.fixture
def store() -> Iterator[velocpy.Store]:
    with velocpy.open(host="1MiB", disk="16MiB", timeline=1000) as store:
        yield store


def titles(figure: Any) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def saved(figure: Any, file: Path) -> Path:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the font that matplotlib brings lacks some characters
        figure.savefig(file, dpi=40)
    return file


def test_tiers(store: velocpy.Store, tmp_path: Path) -> None:
    history = store.history("forward")
    for n in range(40):
        history.checkpoint(n, u=np.zeros(10_000)).wait("disk")
    figure = store.plot()
    assert titles(figure)[1] == "'forward': 40 checkpoints, 3.1 MiB"
    (picture,) = figure.axes[1].images
    shown = np.asarray(picture.get_array())[:, :, 3]
    assert shown.shape == (2, 40)
    for n in range(40):
        assert [bool(shown[0, n]), bool(shown[1, n])] == [tier in history.tiers(n) for tier in ("host", "disk")]
    assert shown[1].all()
    assert 0 < shown[0].sum() < 40
    words = [text.get_text() for text in figure.axes[0].texts]
    assert words[0].endswith(" of 1.0 MiB")
    assert words[1] == "3.1 MiB of 16.0 MiB"
    assert saved(figure, tmp_path / "tiers.png").stat().st_size > 3000


@pytest.mark.parametrize("what", ["tiers", "timeline"])
def test_any_name_can_be_drawn(store: velocpy.Store, what: Any, tmp_path: Path) -> None:
    for name in NAMES:
        store.history(name).checkpoint("$x$", u=np.zeros(3))
    saved(store.plot(what), tmp_path / "names.png")


@pytest.mark.parametrize("what", ["tiers", "timeline"])
def test_an_empty_store_can_be_drawn(store: velocpy.Store, what: Any, tmp_path: Path) -> None:
    store.history("empty")
    saved(store.plot(what), tmp_path / "empty.png")


def test_checkpoints_and_histories_without_number(tmp_path: Path) -> None:
    with velocpy.open(host="64MiB") as store:
        for n in range(20_000):
            store.history("long").checkpoint(n, u=np.zeros(1))
        for n in range(HISTORIES + 5):
            store.history(f"short {n}").checkpoint(0, u=np.zeros(1))
        figure = store.plot()
        assert len(figure.axes) == 1 + HISTORIES
        assert figure.axes[1].images[0].get_array().shape[1] < 1000
        assert any("and 6 histories" in text.get_text() for text in figure.texts)
        saved(figure, tmp_path / "many.png")


def test_shares_of_neighbours() -> None:
    sizes, held = np.array([4, 0, 4, 12]), np.array([1, 1, 0, 1])
    assert shares(sizes, held, 4).tolist() == [1, 1, 0, 1]
    assert shares(sizes, held, 2).tolist() == [1, 0.75]


@pytest.mark.parametrize("what", ["tiers", "timeline"])
def test_a_notebook_shows_it(store: velocpy.Store, what: Any) -> None:
    """Without pyplot: a figure alone has no representation but its text."""
    store.history("forward").checkpoint(0, u=np.zeros(10))
    assert store.plot(what)._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_timeline(store: velocpy.Store) -> None:
    store.history("forward").checkpoint(0, u=np.zeros(10))
    assert "Where every checkpoint is" in titles(store.plot("timeline"))


def test_what_cannot_be_drawn() -> None:
    with velocpy.open(host="1MiB") as store:
        with pytest.raises(velocpy.errors.InvalidArgument, match="timeline="):
            store.plot("timeline")
        with pytest.raises(velocpy.errors.InvalidArgument, match="it is one of tiers, timeline"):
            store.plot("pie")  # type: ignore[arg-type]
    with pytest.raises(velocpy.errors.StoreClosed):
        store.plot()


def test_without_matplotlib(run_python: Callable[..., Any]) -> None:
    result = run_python(
        """
        import sys
        sys.modules["matplotlib.figure"] = None
        import velocpy
        from velocpy.lineage import Lineage
        with velocpy.open(host="1MiB", timeline=10) as store:
            assert not any(name.startswith("velocpy.plot") for name in sys.modules)
            for draw in (lambda: store.plot("tiers"), lambda: store.plot("timeline"), Lineage("h", ()).plot):
                try:
                    draw()
                except velocpy.errors.VelocError as error:
                    assert isinstance(error, ImportError) and error.name == "matplotlib"
                    assert "pip install matplotlib" in str(error), error
                else:
                    raise AssertionError
        """
    )
    assert result.returncode == 0, result.stderr


def test_the_error_is_one_of_velocpy() -> None:
    error = MissingLibrary("x", "this", "pip install x")
    assert isinstance(error, velocpy.errors.VelocError)
    assert (error.name, error.history) == ("x", None)
