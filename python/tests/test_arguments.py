"""Arguments under a wrong name: none that was meant as an option is taken for a region, or ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import velocpy
from velocpy import arguments, knobs

U = np.arange(10.0)


@pytest.fixture
def history() -> Iterator[velocpy.History]:
    with velocpy.open(host="4MiB", disk="16MiB") as opened:
        yield opened.history("h")


@pytest.mark.parametrize("psi", [U, np.zeros(()), np.float32(1), "psi", 1.5, True, [U]])
def test_a_stream_that_is_none_is_refused_without_a_device_too(history: velocpy.History, psi: Any) -> None:
    history.checkpoint(0, u=U)
    back = np.zeros_like(U)
    with pytest.raises(velocpy.errors.InvalidType, match="stream"):
        history.checkpoint(1, u=U, stream=psi)
    with pytest.raises(velocpy.errors.InvalidType, match="stream"):
        history.restore(0, into={"u": back}, stream=psi)
    with pytest.raises(velocpy.errors.InvalidType, match="stream"):
        history.restore(0, stream=psi)
    assert list(history) == [0]
    assert not back.any()


def test_a_stream_that_is_one_is_taken_without_a_device_too(history: velocpy.History) -> None:
    for stream in (None, 0, 1, np.int64(7), [1, 2], ()):
        history.checkpoint(0, u=U, stream=stream)
        assert np.array_equal(history.restore(0, into=np.zeros_like(U), stream=stream), U)
    with pytest.raises(velocpy.errors.InvalidArgument, match="no handle"):
        history.checkpoint(1, u=U, stream=-1)
    assert list(history) == [0]


@pytest.mark.parametrize("option", ["stream", "timeout", "copy", "tier", "meta"])
@pytest.mark.parametrize("value", [U, np.zeros(1), np.zeros(())])
def test_an_array_in_place_of_an_option_is_refused(history: velocpy.History, option: str, value: Any) -> None:
    """It was meant as a region of that name; the error says how such a region is kept."""
    with pytest.raises(velocpy.errors.InvalidType, match=rf"{option}.*checkpoint\(key, {{'{option}': "):
        history.checkpoint(0, u=U, **{option: value})
    assert not len(history)
    history.checkpoint(0, {"u": U, option: value})
    assert np.array_equal(history.restore(0)[option], value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("key", "key"), ("regions", "regions"), ("Key", "key"), ("kye", "key"), ("keys", "key"), ("region", "regions"),
     ("timout", "timeout"), ("timeOut", "timeout"), ("time_out", "timeout"), ("tiemout", "timeout"),
     ("timeoutt", "timeout"), ("timeaut", "timeout"), ("sream", "stream"), ("streams", "stream"),
     ("teir", "tier"), ("tiers", "tier"), ("mtea", "meta"), ("COPY", "copy"), ("_meta", "meta")],
)  # fmt: skip
def test_a_misspelt_option_is_no_region(history: velocpy.History, name: str, meant: str) -> None:
    for value in (np.int64(6), np.float64(1), U):
        with pytest.raises(velocpy.errors.InvalidArgument) as raised:
            history.checkpoint(0, u=U, **{name: value})
        assert repr(name) in str(raised.value)
        assert meant in str(raised.value)
        assert f"checkpoint(key, {{{name!r}: " in str(raised.value)
        assert not len(history)
    history.checkpoint(1, {"u": U, name: U})
    assert set(history.restore(1)) == {"u", name}


def test_the_key_goes_by_position(history: velocpy.History) -> None:
    with pytest.raises(velocpy.errors.InvalidArgument, match=r"by position"):
        history.checkpoint(key=np.int64(6), u=U)
    with pytest.raises(velocpy.errors.InvalidArgument, match=r"by position"):
        history.checkpoint(6, regions={"u": U})  # type: ignore[arg-type]
    assert not len(history)


@pytest.mark.parametrize(
    "name",
    ["u", "psi", "eta", "zeta", "beta", "theta", "ke", "ky", "kex", "last", "into", "m", "v_y", "time", "t", "strain",
     "stress", "trace", "tide", "times", "energy", "copies", "key0", "metal", "mata",
     "region_of_interest"],
)  # fmt: skip
def test_names_of_fields_stay_names_of_regions(history: velocpy.History, name: str) -> None:
    history.checkpoint(0, **{name: U})
    assert list(history.restore(0)) == [name]


def test_a_value_that_is_no_array_is_told_with_the_option_it_resembles(history: velocpy.History) -> None:
    with pytest.raises(velocpy.errors.InvalidType, match=r"'cpoyy'.*copy"):
        history.checkpoint(0, u=U, cpoyy=False)
    with pytest.raises(velocpy.errors.InvalidType) as raised:
        history.checkpoint(0, u=object(), velocity=False)
    assert "copy" not in str(raised.value)
    assert not len(history)


def test_a_tree_by_keywords_has_no_options_in_it(history: velocpy.History) -> None:
    for name in ("cpoyy", "time", "met"):
        for value in (False, 3, {"x": 1.5}):
            with pytest.raises(velocpy.errors.InvalidType, match=rf"'{name}'.*Nothing was captured.*Is \w+= meant"):
                history.checkpoint(0, model={"w": U}, **{name: value})
    for values in ({"u": 5}, {"step": 3, "loss": None}, {"u": [1.0, 2.0]}, {"u": (1.0, 2.0), "v": 3}):
        with pytest.raises(velocpy.errors.InvalidType, match=r"region '(u|step)' is"):
            history.checkpoint(0, **values)
    assert not len(history)
    history.checkpoint(0, model={"w": U}, step=3, lr=0.1, time={"u": U})
    tree = history.restore(0).tree
    for values in ({"optim": {"lr": 0.1}}, {"u": [U], "n": 3}):
        history.checkpoint(1, **values)
        assert list(history.restore(1).tree) == list(values)
    assert (list(tree), tree["step"], tree["lr"], list(tree["time"])) == (
        ["model", "step", "lr", "time"],
        3,
        0.1,
        ["u"],
    )


def test_arrays_to_fill_go_by_keyword(history: velocpy.History) -> None:
    """As regions they would only name what is wanted, and nothing would be filled."""
    history.checkpoint(0, u=U)
    back = np.zeros_like(U)
    for given in ({"u": back}, [back], back, (back,)):
        with pytest.raises(velocpy.errors.InvalidArgument, match="into="):
            history.restore(0, given)  # type: ignore[call-overload]
    history.restore(0, into={"u": back})
    assert np.array_equal(back, U)


def test_a_knob_that_is_none_is_refused() -> None:
    with pytest.raises(velocpy.errors.InvalidArgument, match=r"node_proceses.*node_processes"):
        knobs.override(node_proceses=4).__enter__()
    assert knobs.node_processes() == 1


def test_every_argument_of_checkpoint_is_known() -> None:
    import inspect

    given = inspect.signature(velocpy.History.checkpoint).parameters.values()
    named = {one.name for one in given if one.kind is not one.VAR_KEYWORD} - {"self"}
    assert named == set(arguments.OPTIONS) | set(arguments.BY_POSITION)
