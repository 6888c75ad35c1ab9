"""Names and keywords of the version before: they work, and each warns once and names its successor."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import velocpy
from velocpy import deprecation, errors, plan
from velocpy.tuning import FormerKeywords, Tuning

HINTS = ("Advance", "Drop", "Last", "Restore")
MODULES = {"inspect": "velocpy.ondisk", "files": "velocpy.interchange", "doctor": "velocpy.cli.diagnosis"}

#: A value for each keyword that `velocpy.open` no longer lists.
FORMER: dict[str, Any] = {
    "flush": "lazy",
    "policy": "lru",
    "pinning": "off",
    "prefetch": False,
    "guess": False,
    "checksum": False,
    "lookahead": 7,
    "workers": 2,
    "copiers": 1,
    "direct": False,
}


def warned(call: Callable[[], object]) -> tuple[object, list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        return call(), told


@pytest.fixture
def fresh() -> Iterator[None]:
    """Lets a name warn that this process may have asked for before."""
    before = dict(vars(velocpy))
    for name in (*HINTS, *errors.__all__):
        vars(velocpy).pop(name, None)
    yield
    for name in vars(velocpy).keys() - before.keys():
        del vars(velocpy)[name]


@pytest.mark.parametrize("name", [*HINTS, *errors.__all__])
def test_a_former_name_warns_once(fresh: None, name: str) -> None:
    module = plan if name in HINTS else errors
    found, told = warned(lambda: getattr(velocpy, name))
    assert found is getattr(module, name)
    (warning,) = told
    assert warning.category is DeprecationWarning
    assert f"velocpy.{name} is deprecated" in str(warning.message)
    assert f"use {module.__name__}.{name}." in str(warning.message)
    assert warning.filename == __file__
    assert warned(lambda: getattr(velocpy, name)) == (found, [])
    assert name not in dir(velocpy)
    assert name not in velocpy.__all__


def test_a_former_name_can_be_imported(fresh: None) -> None:
    def imported() -> object:
        from velocpy import TierFull

        return TierFull

    found, (warning,) = warned(imported)
    assert found is errors.TierFull
    assert warning.filename == __file__


def test_a_name_that_never_was_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'CheckpointLost'"):
        velocpy.CheckpointLost  # type: ignore[attr-defined]  # noqa: B018


def test_the_names_that_are_shown() -> None:
    assert dir(velocpy) == sorted(velocpy.__all__)
    assert len(velocpy.__all__) <= 15
    for name in velocpy.__all__:
        found, told = warned(lambda name=name: getattr(velocpy, name))  # type: ignore[misc]
        assert found is not None
        assert told == []


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_has_moved_warns_once(name: str) -> None:
    old, new = f"velocpy.{name}", importlib.import_module(MODULES[name])
    get, names = deprecation.moved_module(old, MODULES[name])
    public = [each for each in vars(new) if not each.startswith("_") and callable(vars(new)[each])]
    found, (warning,) = warned(lambda: [get(each) for each in public])
    assert all(one is getattr(new, each) for one, each in zip(found, public, strict=True))  # type: ignore[call-overload]
    assert f"{old} is deprecated" in str(warning.message)
    assert MODULES[name] in str(warning.message)
    assert names() == dir(new)
    with pytest.raises(AttributeError):
        get("__path__")
    module = importlib.import_module(old)
    assert warned(lambda: getattr(module, public[0]))[0] is getattr(new, public[0])


def test_every_former_keyword_is_a_field() -> None:
    assert FORMER.keys() == FormerKeywords.__annotations__.keys()
    assert FORMER.keys() == Tuning.__dataclass_fields__.keys() - {"together"}  # it has always been a field
    with pytest.raises(TypeError, match="unexpected keyword argument 'together'"):
        velocpy.open(host="1MiB", together=False)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", FORMER)
def test_a_former_keyword_does_what_its_field_does(name: str) -> None:
    store, (warning,) = warned(lambda: velocpy.open(host="1MiB", disk="1MiB", **{name: FORMER[name]}))
    assert isinstance(store, velocpy.Store)
    assert f"open(tuning=velocpy.Tuning({name}=…))" in str(warning.message)
    assert warning.filename == __file__
    assert warning.category is DeprecationWarning
    with store, velocpy.open(host="1MiB", disk="1MiB", tuning=Tuning(**{name: FORMER[name]})) as tuned:
        assert store._config == tuned._config
        assert store._lookahead == tuned._lookahead


def test_one_call_with_many_former_keywords_warns_once() -> None:
    store, (warning,) = warned(lambda: velocpy.open(host="1MiB", **FORMER))
    assert isinstance(store, velocpy.Store)
    store.close()
    for name in FORMER:
        assert f"{name}=…" in str(warning.message)


def test_keywords_that_are_wrong_are_refused_without_a_warning() -> None:
    wrong: tuple[tuple[type[Exception], str, dict[str, Any]], ...] = (
        (TypeError, "unexpected keyword argument 'worker'", {"worker": 1}),
        (errors.InvalidArgument, r"tuning= and workers=…", {"workers": 1, "tuning": Tuning()}),
        (errors.InvalidArgument, "policy is 'best'; it is one of score, lru, fifo", {"policy": "best"}),
        (errors.InvalidType, "tuning is a dict", {"tuning": {"workers": 1}}),
    )
    for kind, words, keywords in wrong:
        with pytest.raises(kind, match=words):
            velocpy.open(host="1MiB", **keywords)


def test_a_tuning_is_a_value() -> None:
    one = Tuning(policy="lru", workers=2)
    assert one == Tuning(workers=2, policy="lru") != Tuning()
    assert hash(one) == hash(Tuning(policy="lru", workers=2))
    with pytest.raises(AttributeError):
        one.workers = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        Tuning("lazy")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("flush", "never", errors.InvalidArgument),
        ("policy", None, errors.InvalidArgument),
        ("pinning", "sometimes", errors.InvalidArgument),
        ("lookahead", 0, errors.InvalidArgument),
        ("lookahead", True, errors.InvalidType),
        ("workers", 1 << 40, errors.InvalidArgument),
        ("copiers", "2", errors.InvalidType),
    ],
)
def test_a_tuning_refuses_what_cannot_be(field: str, value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=f"{field} is {value!r}"):
        Tuning(**{field: value})
