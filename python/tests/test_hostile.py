"""Arguments that cannot mean anything: typed errors that say what and where, and nothing changed."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RunPython

import velocpy
from velocpy import budget, errors
from velocpy.budget import available_memory, parse_size

NAMES = ["", "a/b/../c", "nul\0inside", "😀", "x" * 10_000, "\ud800 alone", " ", "ä", "a\nb", "<b>&amp;</b>", "%s%n{0}"]


@pytest.fixture
def store() -> Iterator[velocpy.Store]:
    with velocpy.open(host="4MiB", disk="16MiB") as opened:
        yield opened


@pytest.mark.parametrize(
    "size",
    ["12 parsecs", -1, "-1", 0, "0", math.nan, math.inf, True, False, "", " ", "GiB", "1e9", "1_000", "4 GiB GiB",
     "0x10", 1.5, b"4GiB", [1], 2**70, "9999999TiB", "٤GiB", "1.2.3G", "auto ", "½G", object()],
)  # fmt: skip
@pytest.mark.parametrize("tier", ["host", "disk"])
def test_budgets(size: Any, tier: str) -> None:
    with pytest.raises(velocpy.errors.InvalidBudget) as raised:
        velocpy.open(**{tier: size})
    assert tier in str(raised.value)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("4GiB", 4 << 30), ("500 MB", 500_000_000), ("1.5G", 3 << 29), ("64k", 65536), ("1b", 1), (" 7 mib ", 7 << 20),
     (".5KiB", 512), (12, 12), (4e9, 4_000_000_000), (1e6, 10**6), (np.int32(5), 5), ("2 TB", 2 * 10**12)],
)  # fmt: skip
def test_sizes(text: Any, nbytes: int) -> None:
    assert parse_size(text, "host") == nbytes


@pytest.mark.parametrize("size", [2.0, 64.0, np.float32(3), 999_999.0, 1.0000001, 1e6 + 0.5])
@pytest.mark.parametrize("tier", ["host", "disk", "device"])
def test_floats_that_may_mean_anything(size: Any, tier: str) -> None:
    with pytest.raises(velocpy.errors.InvalidBudget, match=rf'^{tier} is .*between 0 and 1.* an int.*"4GiB"'):
        budget.device_budgets(size) if tier == "device" else velocpy.open(**{tier: size})


def test_auto_is_within_the_machine() -> None:
    from velocpy.budget import host_budget

    budget = host_budget("auto")
    assert budget is not None
    assert 64 << 20 <= budget <= 32 << 30
    assert available_memory() > 0


def test_paths(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for wrong in (file, str(file), file / "below", "", "a\0b", 7, b"bytes", ["x"]):
        with pytest.raises(velocpy.errors.InvalidArgument):
            velocpy.open(wrong, host="1MiB", disk="1MiB")  # type: ignore[arg-type]
    assert file.read_text() == "mine"
    new = tmp_path / "new" / "deep 😀"
    velocpy.open(new, host="1MiB", disk="1MiB").close()
    assert new.is_dir()


@pytest.mark.parametrize(
    "options",
    [{"flush": "never"}, {"policy": "best"}, {"verify": None}, {"lookahead": 0}, {"lookahead": True},
     {"lookahead": "9"}, {"timeline": -1}, {"workers": 0}, {"copiers": -3}, {"workers": 1 << 40},
     {"host": None, "disk": None}],
)  # fmt: skip
def test_options(options: dict[str, Any]) -> None:
    with pytest.raises(velocpy.errors.InvalidArgument):
        velocpy.open(**{"host": "1MiB", **options})


def test_tiers_that_are_not_there() -> None:
    with pytest.raises(velocpy.errors.TierUnavailable) as raised:
        velocpy.open(host="1MiB", device="1GiB")
    assert raised.value.tier == "device"
    with pytest.raises(velocpy.errors.InvalidArgument, match="durable"):
        velocpy.open(host="1MiB", archive="s3://bucket/run")


@pytest.mark.parametrize("name", NAMES)
def test_names(store: velocpy.Store, name: str) -> None:
    history = store.history(name)
    assert history is store.history(name)
    history.checkpoint(name, {name: np.arange(3)}, meta={name: name})
    history.checkpoint(name + "x", u=np.zeros(1))
    lease = history.restore(name)
    assert lease[name].tolist() == [0, 1, 2]
    assert lease.meta == {name: name}
    assert list(history) == [name, name + "x"]
    assert name in history
    history.hint([name])
    assert [key for key, _ in history.restore_iter()] == [name]
    history.restore(name, into={name: np.zeros(3, int)})
    for shown in (store, history, lease):
        repr(shown)
        assert "<b>" not in shown._repr_html_()
    history.drop(name)
    with pytest.raises(velocpy.errors.CheckpointNotFound) as raised:
        history.restore(name)
    assert raised.value.key == name
    assert raised.value.history == name


def test_names_do_not_mix(store: velocpy.Store) -> None:
    keys = [0, "0", -1, "-1", 2**63 - 1, -(2**63), "", "\0", "\0\0"]
    history, other = store.history("h"), store.history("h\0")
    for number, key in enumerate(keys):
        history.checkpoint(key, u=np.array([number]))
        other.checkpoint(key, u=np.array([-number]))
    assert list(history) == keys
    for number, key in enumerate(keys):
        assert history.restore(key)["u"][0] == number
        assert other.restore(key)["u"][0] == -number


@pytest.mark.parametrize(
    "key", [True, 1.0, b"x", 2**63, -(2**63) - 1, (1,), [], object(), 1j, np.bool_(True), np.float32(1)]
)
def test_keys(store: velocpy.Store, key: Any) -> None:
    history = store.history("h")
    history.checkpoint(1, u=np.zeros(1))
    calls = [
        lambda: history.checkpoint(key, u=np.zeros(1)),
        lambda: history.restore(key),
        lambda: history.restore(key, into=[np.zeros(1)]),
        lambda: history.drop(key),
        lambda: history.size(key),
        lambda: history.ready(key),
        lambda: history.meta(key),
        lambda: history.hint([key]),
    ]
    for call in calls:
        with pytest.raises(velocpy.errors.InvalidArgument):
            call()
    assert list(history) == [1]


def test_index_like_keys(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint(np.int16(7), u=np.zeros(1))
    assert 7 in history
    assert np.uint8(7) in history
    assert True not in history
    assert 7.0 not in history
    assert None not in history
    history.restore(np.array(7))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "regions",
    [
        {"u": object()},
        {"u": np.array([object()])},
        {"u": np.array(["a", None], object)},
        {"u": np.zeros(2, [("a", "O")])},
        {"u": np.ma.masked_array([1, 2], [0, 1])},
        {None: np.zeros(1)},
        {True: np.zeros(1)},
        {b"u": np.zeros(1)},
        {"u": (0, -1)},
        {"u": (-5, 3)},
        {"u": (1 << 64, 3)},
        {"u": (0, 8)},
        {"u": (1, 8)},
        {"u": (1 << 46, 1 << 62)},
        {"ok": np.zeros(1), "u": memoryview(b"abc").cast("c").release},
        np.zeros(3),
        b"bytes",
        "text",
        7,
        iter([np.zeros(1)]),
        {"a", "b"},
    ],
)
def test_regions(store: velocpy.Store, regions: Any) -> None:
    history = store.history("h")
    history.checkpoint(0, u=np.arange(3))
    with pytest.raises(velocpy.errors.InvalidArgument):
        history.checkpoint(0, regions)
    assert history.restore(0)["u"].tolist() == [0, 1, 2]


def test_string_dtype_is_refused(store: velocpy.Store) -> None:
    if not hasattr(getattr(np, "dtypes", None), "StringDType"):
        pytest.skip("needs NumPy 2")
    with pytest.raises(velocpy.errors.InvalidType):
        store.history("h").checkpoint(0, u=np.array(["a", "b"], np.dtypes.StringDType()))


def test_regions_in_two_ways(store: velocpy.Store) -> None:
    history = store.history("h")
    with pytest.raises(velocpy.errors.InvalidArgument):
        history.checkpoint(0)
    with pytest.raises(velocpy.errors.InvalidArgument):
        history.checkpoint(0, {"u": np.zeros(1)}, v=np.zeros(1))
    history.checkpoint(0, {})
    assert list(history.restore(0)) == []
    history.checkpoint(1, [], meta="only this")
    assert history.meta(1) == "only this"
    assert history.size(1) == 0


def test_freed_pointer(store: velocpy.Store) -> None:
    """Memory that went back to the system is detected."""
    libc = ctypes.CDLL(ctypes.util.find_library("c"))
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size = 1 << 20
    address = libc.mmap(None, size, 3, 0x22, -1, 0)
    history = store.history("h")
    history.checkpoint(0, u=(address, size))
    libc.munmap(address + size // 2, 4096)
    with pytest.raises(velocpy.errors.InvalidArgument, match="freed"):
        history.checkpoint(1, u=(address, size))
    history.checkpoint(2, u=(address, size // 2))
    history.restore(2, into={"u": (address, size // 2)})
    libc.mprotect(address + 8192, 4096, 1)  # one page in the middle may only be read now
    with pytest.raises(velocpy.errors.InvalidArgument, match="written"):
        history.restore(2, into={"u": (address, size // 2)})
    libc.munmap(address, size)
    with pytest.raises(velocpy.errors.InvalidArgument):
        history.restore(2, into={"u": (address, size // 2)})


def test_huge(store: velocpy.Store) -> None:
    history = store.history("h")
    with pytest.raises(velocpy.errors.VelocError):
        history.checkpoint(0, u=np.broadcast_to(np.zeros(1), (1 << 59,)))
    with pytest.raises(velocpy.errors.VelocError):
        history.checkpoint(0, {str(i): np.broadcast_to(np.zeros(1), (1 << 57,)) for i in range(16)})
    with pytest.raises(velocpy.errors.TierFull) as raised:
        history.checkpoint(0, u=np.broadcast_to(np.zeros(1, np.uint8), (1 << 30,)))
    assert "Raise the budget" in str(raised.value)
    assert len(history) == 0
    history.checkpoint(0, {str(i): np.zeros(1, np.uint8) for i in range(20_000)})
    assert len(history.restore(0)) == 20_000


def test_meta(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint(0, u=np.zeros(1), meta={"a": [1, 2.5, None, True, "😀\0\ud800"]})
    assert history.meta(0) == {"a": [1, 2.5, None, True, "😀\0\ud800"]}
    cycle: list[Any] = []
    cycle.append(cycle)
    for wrong in ({1, 2}, object(), {"a": np.zeros(3)}, cycle, b"x", "x" * 70_000, {(1, 2): 3}):
        with pytest.raises(velocpy.errors.InvalidArgument):
            history.checkpoint(0, u=np.ones(1), meta=wrong)
    assert history.restore(0)["u"][0] == 0
    for falsy in (0, "", [], {}, False):
        history.checkpoint(1, u=np.zeros(1), meta=falsy)
        assert history.meta(1) == history.meta(1, timeout=5) == falsy
        assert history.restore(1).meta == falsy
    history.checkpoint(1, u=np.zeros(1))
    assert history.meta(1) is None
    with pytest.raises(velocpy.errors.CheckpointNotFound):
        history.meta(2)


def test_numbers_of_numpy_in_meta(store: velocpy.Store) -> None:
    history = store.history("h")
    scalars = {
        "loss": np.float32(1.5), "half": np.float16(0.1), "double": np.float64(0.1), "step": np.int64(-(2**63)),
        "count": np.uint64(2**64 - 1), "done": np.bool_(True), "not": np.False_, "name": np.str_("psi"),
        "long": np.longdouble(0.25), "list": [np.int8(1), (np.uint8(2), {"deep": np.float32(3)})],
    }  # fmt: skip
    history.checkpoint(0, u=np.zeros(1), meta=scalars)
    found = history.meta(0)
    assert found == {
        "loss": 1.5, "half": float(np.float16(0.1)), "double": 0.1, "step": -(2**63), "count": 2**64 - 1, "done": True,
        "not": False, "name": "psi", "long": 0.25, "list": [1, [2, {"deep": 3.0}]],
    }  # fmt: skip
    assert (type(found["loss"]), type(found["step"]), type(found["done"])) == (float, int, bool)
    history.checkpoint(1, u=np.zeros(1), meta=np.float32(0.1))
    assert np.float32(history.meta(1)) == np.float32(0.1)
    assert history.restore(0).meta == found
    keys = {np.int64(3): 1, np.uint8(4): {np.float32(0.5): [{np.bool_(True): np.int8(2)}]}, np.str_("a"): 5, 6: 7}
    history.checkpoint(2, u=np.zeros(1), meta=keys)
    assert history.meta(2) == {"3": 1, "4": {"0.5": [{"true": 2}]}, "a": 5, "6": 7}
    for key in (np.datetime64("2026-01-01"), np.complex64(1), (np.int64(1), 2)):
        with pytest.raises(velocpy.errors.InvalidType, match="JSON"):
            history.checkpoint(2, u=np.ones(1), meta={key: 1})
    wrong = [np.datetime64("2026-01-01"), np.complex64(1), np.void(b"x"), np.zeros(1), np.array(1.5), np.bytes_(b"x")]
    if np.finfo(np.longdouble).nmant > 52:
        wrong.append(np.longdouble(1) / 3)  # JSON's numbers would lose some of it
    for value in wrong:
        with pytest.raises(velocpy.errors.InvalidType, match="JSON"):
            history.checkpoint(0, u=np.ones(1), meta={"x": value})
    assert history.restore(0)["u"][0] == 0


def test_meta_of_what_lies_on_disk_moves_nothing() -> None:
    with velocpy.open(host="1MiB", disk="16MiB") as store:
        history = store.history("h")
        for i in range(12):
            history.checkpoint(i, u=np.zeros(500_000, np.uint8), meta=i)
        read = store.stats()["tiers"]["host"]["read_bytes"]
        assert [history.meta(i) for i in range(12)] == list(range(12))
        assert store.stats()["tiers"]["host"]["read_bytes"] == read


def test_callers_code_in_the_middle(store: velocpy.Store) -> None:
    """Objects whose protocols misbehave, or change what is being stored."""
    history = store.history("h")

    class Raises:
        def __dlpack__(self, **options: Any) -> Any:
            raise RuntimeError("mine")

        def __dlpack_device__(self) -> Any:
            return (1, 0)

    class Lies:
        __dlpack__ = None

        def __dlpack_device__(self) -> Any:
            return (1, 0)

    for wrong in (Raises(), Lies()):
        with pytest.raises(velocpy.errors.VelocError):
            history.checkpoint(0, u=np.zeros(1), v=wrong)
    regions: dict[str, Any] = {"u": np.arange(3)}

    class Grows:
        def __dlpack__(self, **options: Any) -> Any:
            for i in range(100):
                regions[f"new {i}"] = np.zeros(1)
            regions["u"] = None
            return np.arange(4).__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return (1, 0)

    regions["v"] = Grows()
    regions["w"] = np.arange(5)
    history.checkpoint(0, regions)
    assert {name: array.size for name, array in history.restore(0).items()} == {"u": 3, "v": 4, "w": 5}


def test_closed_store_answers_every_call() -> None:
    store = velocpy.open(host="1MiB", disk="4MiB", timeline=10)
    history = store.history("h")
    ticket = history.checkpoint(0, u=np.zeros(3))
    assert not store.closed
    store.close()
    store.close()
    assert store.closed
    calls = [
        lambda: history.checkpoint(0, u=np.zeros(3)),
        lambda: history.restore(0),
        lambda: history.restore(0, into=[np.zeros(3)]),
        lambda: history.restore(0, "u"),
        lambda: 0 in history,
        lambda: len(history),
        lambda: list(history),
        lambda: history.size(0),
        lambda: history.hint(range(3)),
        lambda: list(history.restore_iter()),
        lambda: store.__enter__(),
        lambda: history.prefetch(),
        lambda: history.wait("disk"),
        lambda: store.wait(),
        lambda: store.stats(),
        lambda: store.timeline(),
        lambda: store.costs(),
        lambda: store.history("new"),
        lambda: ticket.wait("disk"),
        lambda: ticket.captured,
    ]
    for number, call in enumerate(calls):
        with pytest.raises(velocpy.errors.StoreClosed):
            pytest.fail(f"call {number} gave {call()}")
    assert history is store.history("h")
    for _ in range(3):
        history.drop(0)
        history.drop("never there")
        history.hint_clear()
        history.clear()
    for shown in (store, history, ticket):
        assert "closed" in repr(shown)
        assert "closed" in shown._repr_html_()


def test_arguments_of_a_wrong_type_are_typed_errors(store: velocpy.Store) -> None:
    history = store.history("h")
    array = np.zeros(3)
    ticket = history.checkpoint(1, u=array)
    calls = [
        lambda: history.checkpoint(1, u=array, copy=array),
        lambda: history.checkpoint(1, u=array, copy="no"),
        lambda: history.checkpoint(1, u=array, tier=array),
        lambda: history.restore(1, last="yes"),
        lambda: history.restore(1, 5.5),
        lambda: list(history.restore_iter(last="yes")),
        lambda: history.wait(array),
        lambda: ticket.durable(array),
        lambda: ticket.wait(array),
        lambda: velocpy.Plan.reverse(5),
        lambda: velocpy.Plan.forward(5),
        lambda: velocpy.Plan.grouped_reverse(5),
        lambda: list(velocpy.Plan.grouped_reverse([5])),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(velocpy.errors.InvalidType) as raised:
            pytest.fail(f"call {number} gave {call()}")
        assert "0x" not in str(raised.value)
    with pytest.raises(velocpy.errors.InvalidArgument, match="takes the name of a tier"):
        ticket.durable(None)
    assert history.checkpoint(2, u=array, copy=np.True_).captured
    assert history.restore(1, last=np.False_)["u"].size == 3
    assert 1 in history


def test_messages_say_each_thing_once(store: velocpy.Store) -> None:
    history = store.history("h")
    for missing in (lambda: history.restore(7), lambda: history.size(7)):
        with pytest.raises(velocpy.errors.CheckpointNotFound) as raised:
            missing()
        assert str(raised.value).count("never written") == 1
        assert str(raised.value).count("7") == 1
    with pytest.raises(velocpy.errors.InvalidType, match="is of type int"):
        history.checkpoint(0, u=5)
    with pytest.raises(velocpy.errors.InvalidType, match="not ndarray"):
        history.checkpoint(0, np.zeros(3))


def test_a_timeout_is_seconds(store: velocpy.Store) -> None:
    history = store.history("h")
    ticket = history.checkpoint(0, u=np.zeros(3))
    for wrong in (np.zeros(3), "1", [1]):
        for call in (history.wait, store.wait, store.close, lambda timeout: ticket.wait(timeout=timeout)):
            with pytest.raises(velocpy.errors.InvalidType, match="give seconds"):
                call(timeout=wrong)
        assert not store.closed
    with pytest.raises(velocpy.errors.InvalidArgument, match="timeout is -1;"):
        history.restore(0, timeout=-1)
    with pytest.raises(velocpy.errors.InvalidArgument, match="too large"):
        history.restore(0, timeout=10**400)


def test_a_wait_says_what_it_waited_for() -> None:
    with velocpy.open(host="64KiB") as store:
        history = store.history("h")
        for i in range(8):
            history.checkpoint(i, u=np.zeros(1000))
        leases = [history.restore(i) for i in range(8)]
        for i in range(8):
            history.drop(i)
        with pytest.raises(
            velocpy.errors.WaitTimeout, match=r"no room in the fastest tier after 0\.05 s.*give back leases"
        ):
            history.checkpoint(9, u=np.zeros(1000), timeout=0.05)
        del leases


@pytest.mark.parametrize("awaits", ["room", "bytes", "promise", "end"])
def test_what_the_shim_waits_for_has_words(awaits: str, root: Path) -> None:
    shim = "".join(path.read_text() for path in (root / "cshim").glob("*.cpp"))
    assert f'waiting_for("{awaits}"' in shim
    assert awaits in errors.AWAITED


def test_a_close_that_times_out_is_closed_for_new_work() -> None:
    assert "closed for new work" in str(errors.timed_out(1.0, None, None, "end"))
    assert "durable in tier 'disk'" in str(errors.timed_out(1.0, "h", 1, "promise", 2))


def test_a_full_tier_is_said_once_and_by_name() -> None:
    with velocpy.open(host="64KiB") as store, pytest.raises(velocpy.errors.TierFull) as raised:
        store.history("h").checkpoint(0, u=np.zeros(100_000))
    text = str(raised.value)
    assert text.lower().count("raise the budget") == 1
    assert "tier 0" not in text
    assert "tier 'host'" in text


def test_a_budget_that_cannot_be_mapped_promises_nothing() -> None:
    with pytest.raises(velocpy.errors.VelocError) as raised:
        velocpy.open(host=1 << 59)
    assert "other tiers" not in str(raised.value)
    assert "smaller budget" in str(raised.value)


def test_with_block_closes() -> None:
    with pytest.raises(ZeroDivisionError), velocpy.open(host="1MiB") as store:
        1 / 0  # noqa: B018
    assert store.closed


def test_errors_are_the_builtins_they_look_like() -> None:
    assert issubclass(velocpy.errors.CheckpointNotFound, KeyError)
    assert issubclass(velocpy.errors.WaitTimeout, TimeoutError)
    assert issubclass(velocpy.errors.TierIOError, OSError)
    assert issubclass(velocpy.errors.InvalidArgument, ValueError)
    assert issubclass(velocpy.errors.InvalidType, TypeError)
    assert issubclass(velocpy.errors.CoreUnavailable, ImportError)
    assert issubclass(velocpy.errors.VelocError, RuntimeError)
    assert all(issubclass(getattr(velocpy.errors, name), velocpy.errors.VelocError) for name in velocpy.errors.__all__)


def test_errors_travel() -> None:
    import pickle

    from velocpy.errors import Status, from_core, timed_out

    for error in (
        from_core(Status.IO, "a text", 28, 2, "u", "h", 7),
        timed_out(1.5, "h", "k"),
        from_core(Status.NOT_FOUND, "x", 0, -1, None, "h", 1),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert (again.history, again.key, again.region, again.tier) == (
            error.history,
            error.key,
            error.region,
            error.tier,
        )
    failed = from_core(Status.IO, "a text", 28, 2, "u", "h", 7)
    assert isinstance(failed, OSError)
    assert failed.errno == 28
    assert "No space left" in str(failed)
    assert (failed.tier, failed.region, failed.history, failed.key) == ("disk", "u", "h", 7)


@pytest.mark.slow
def test_fuzzed_calls_never_crash(run_python: RunPython) -> None:
    """Random nonsense at every public method, in a process of its own: exceptions only, and the store still works."""
    done = run_python(
        """
        import random, itertools
        import numpy as np
        import velocpy

        rng = random.Random(5)
        store = velocpy.open(host="2MiB", disk="8MiB")
        history = store.history("h")
        nonsense = [None, True, -1, 0, 1, 2**63, 2**70, 1.5, float("nan"), "", "u", "\\0", b"", b"x", [], {}, ()]
        nonsense += [(0, 0), (1, 2), (8, -8), np.zeros(3), np.zeros((0, 2)), np.array(1), np.array(["a"], object)]
        nonsense += [iter([1]), {"u": np.zeros(2)}, {"u": None}, {1: 2}, [np.zeros(1)], object(), int, len, Exception()]
        nonsense += [range(3), np.float64, slice(None), ..., memoryview(b"abc")]
        pick = lambda: rng.choice(nonsense)
        methods = ["checkpoint", "restore", "drop", "hint", "size", "ready", "meta", "tiers", "__contains__"]
        keywords = ["into", "last", "copy", "meta", "tier", "regions", "missing_ok"]
        for _ in range(20000):
            method = getattr(history, rng.choice(methods))
            arguments = [pick() for _ in range(rng.randrange(3))]
            options = {rng.choice(keywords): pick() for _ in range(rng.randrange(2))}
            if rng.random() < 0.3:
                options["timeout"] = rng.choice([0, 0.01, -1, "x", float("nan")])
            try:
                method(*arguments, **options)
            except (velocpy.errors.VelocError, TypeError, ValueError, KeyError, IndexError, AttributeError):
                pass
        history.clear()
        history.checkpoint(1, u=np.arange(4))
        assert history.restore(1)["u"].sum() == 6
        store.close()
        """,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
