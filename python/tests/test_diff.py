"""The command ``velocpy diff``: what it prints, its messages and its exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from test_compare import LEAF, flip

import velocpy
from velocpy import ondisk
from velocpy.cli import diff_command, main


def diff(*arguments: Any) -> Result:
    result = CliRunner().invoke(main, ["diff", *map(str, arguments)])
    assert "Traceback" not in result.output
    return result


def messages(*arguments: Any) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in diff(*arguments, "--json").stdout.splitlines()]
    assert found[-1]["message_type"] == "diff"
    return found


def write(path: Path, histories: dict[str, dict[Any, Any]]) -> Path:
    with velocpy.open(path, host="16MiB", disk="256MiB") as store:
        for name, checkpoints in histories.items():
            for key, regions in checkpoints.items():
                store.history(name).checkpoint(key, regions)
    return path


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Path, Path]:
    """Two runs of which the second goes another way from step 2 on, and has a step more."""
    u = np.arange(12.0).reshape(3, 4)
    runs = []
    for name, steps in (("one", 4), ("other", 5)):
        states = {step: {"u": u + step, "n": np.array([step])} for step in range(steps)}
        if name == "other":
            states[2]["u"][1, 1:3] += 0.5
            states[3]["u"] = states[3]["u"] * -1
        runs.append(write(tmp_path / name, {"run": states, "same": {"a": {"v": np.zeros(3)}}}))
    return runs[0], runs[1]


def test_the_first_difference_is_told(stores: tuple[Path, Path]) -> None:
    result = diff(*stores)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        'history "run", key 2: differs',
        '  region "u": <f8 3x4, 2 of 12 elements differ, within [1, 1:3]',
        "    first    [1, 1]: 7.0 in A, 7.5 in B",
        "    largest  0.5",
        'history "run": only B has 4',
        "4 checkpoints compared, 96 B of either store read: 1 of them differs",
    ]
    result = diff(*stores, "--all")
    assert result.stdout.count("differs\n") == 2
    assert "2 of them differ\n" in result.stdout
    assert "5 checkpoints compared" in result.stdout


def test_stores_without_a_difference(stores: tuple[Path, Path]) -> None:
    copy = shutil.copytree(stores[0], stores[0].with_name("copy"))
    for pair in ((stores[0], copy), (stores[0], stores[0]), (*stores, "--history", "same")):
        result = diff(*pair)
        assert result.exit_code == 0
        assert result.stdout.endswith(" compared, 0 B of either store read: no difference\n")
        assert result.stderr == ""
    assert messages(*stores, "--history", "same")[-1] == {
        "message_type": "diff",
        "version": 1,
        "equal": True,
        "histories": 1,
        "checkpoints": 1,
        "differing": 0,
        "read_nbytes": 0,
    }


def test_messages(stores: tuple[Path, Path]) -> None:
    difference, run, same, end = messages(*stores)
    (region,) = difference.pop("regions")
    assert difference == {
        "message_type": "checkpoint_diff",
        "version": 1,
        "history": "run",
        "history_b": "run",
        "key": 2,
        "key_b": 2,
        "equal": False,
        "values": [],
        "more_values": 0,
        "same_meta": True,
        "nbytes": 104,
        "read_nbytes": 96,
    }
    assert region == {
        "region": "u",
        "why": "bytes",
        "dtypes": ["<f8", "<f8"],
        "shapes": [[3, 4], [3, 4]],
        "elements": 12,
        "differing": 2,
        "ranges": [[5, 7]],
        "more_ranges": 0,
        "bounds": [[1, 2], [1, 3]],
        "first": [1, 1],
        "values": ["7.0", "7.5"],
        "raw": ["0000000000001c40", "0000000000001e40"],
        "max_difference": 0.5,
        "nan_payloads": 0,
        "same_values": 0,
    }
    assert (run["only_in_a"], run["only_in_b"], run["checkpoints"], run["complete"]) == ([], [4], 3, False)
    assert (same["history"], same["checkpoints"], same["complete"]) == ("same", 1, True)
    assert (end["equal"], end["histories"], end["checkpoints"], end["differing"]) == (False, 2, 4, 1)
    assert [each["key"] for each in messages(*stores, "--all") if "key" in each] == [2, 3]


def test_histories_and_keys_that_are_named(stores: tuple[Path, Path]) -> None:
    one, other = stores
    result = diff(one, other, "--history", "run", "--key", 1)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, 'history "run", key 1: equal')
    result = diff(one, one, "--history", "run", "--key", 1, "--key-b", 2)
    assert result.exit_code == 1
    assert result.stdout.startswith('history "run", key 1 and 2: differ\n')
    result = diff(one, one, "--history", "run", "--history-b", "same")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        'history "run" and "same": only A has 0, 1, 2, 3',
        'history "run" and "same": only B has "a"',
        "0 checkpoints compared, 0 B of either store read: none of them differs",
    ]
    result = diff(one, one, "--history", "run", "--history-b", "same", "--limit", 1)
    assert "only A has 0 and 3 more\n" in result.stdout
    (_, end) = messages(one, one, "--history", "run", "--history-b", "same", "--limit", 1)
    assert not end["equal"]


def test_a_history_that_only_one_store_has(tmp_path: Path) -> None:
    one = write(tmp_path / "one", {"h": {0: {"u": np.zeros(1)}}, "a": {0: {"u": np.zeros(1)}}})
    other = write(tmp_path / "other", {"h": {0: {"u": np.zeros(1)}}, "z\x1b[2J": {0: {"u": np.zeros(1)}}})
    result = diff(one, other)
    assert result.exit_code == 1
    assert 'history "a": only A has it\n' in result.stdout
    assert 'history "z\\u001b[2J": only B has it\n' in result.stdout
    assert [each["in"] for each in messages(one, other) if each["message_type"] == "history_only"] == ["a", "b"]


def test_exit_codes_of_what_goes_wrong(stores: tuple[Path, Path], tmp_path: Path) -> None:
    """1 says that there is a difference, and nothing else."""
    one, other = stores
    for arguments, code in (
        ((one,), 2),
        ((one, other, "--history-b", "run"), 2),
        ((one, other, "--key", "1"), 2),
        ((one, other, "--history", "run", "--key-b", "1"), 2),
        ((one, other, "--history", "none"), 2),
        ((one, other, "--history", "run", "--history-b", "none"), 2),
        ((one, other, "--history", "run", "--key", "77"), 2),
        ((one, other, "--limit", "-1"), 2),
        ((one, other, "--rtol", "-1"), 2),
        ((one, tmp_path / "nowhere"), 10),
        ((tmp_path, other), 10),
    ):
        result = diff(*arguments)
        assert result.exit_code == code, (arguments, result.output)
        assert result.stdout == ""
        assert result.stderr


def test_damage_is_told_with_its_side(tmp_path: Path) -> None:
    one, other = (
        write(tmp_path / name, {"h": {0: {"u": np.full(LEAF, n)}}}) for n, name in enumerate(("one", "other"))
    )
    flip(other, "h", 0, ondisk.describe(other, "h", 0).regions[0].offset + LEAF + 3)
    result = diff(one, other)
    assert result.exit_code == 3
    assert "the second of the two that are compared, key 0 of history 'h'" in result.stderr
    assert str(other) in result.stderr


def test_beside_a_writer(stores: tuple[Path, Path]) -> None:
    with velocpy.open(stores[0], host="16MiB", disk="256MiB") as store:
        assert diff(*stores).exit_code == 1
        run = store.history("run")
        for key in (2, 3, 4):
            with velocpy.open(stores[1], mode="r", host="16MiB") as other, other.history("run").restore(key) as state:
                run.checkpoint(key, state).wait("disk")
        assert diff(*stores).exit_code == 0


def test_all_kinds_of_differences_for_people(tmp_path: Path) -> None:
    zeros = np.zeros(4)
    one = write(tmp_path / "one", {"h": {0: {"gone": zeros, "t": zeros, "s": zeros, "tree": {"lr": 0.1, "w": zeros}}}})
    state = {"t": zeros.astype("f4"), "s": zeros[:2], "tree": {"lr": "x" * 100, "w": -zeros}, "new\n": zeros}
    other = write(tmp_path / "other", {"h": {0: state}})
    assert diff(one, other).stdout.splitlines() == [
        'history "h", key 0: differs',
        '  region "gone": only in A',
        '  region "t": <f8 4 in A, <f4 4 in B',
        '  region "s": <f8 4 in A, <f8 2 in B',
        '  region "tree.w": <f8 4, 4 of 4 elements differ, within [0:4]',
        "    first    [0]: 0.0 in A, -0.0 in B",
        "    largest  0",
        "    bits     4 have the same value in other bits",
        '  region "new\\n": only in B',
        f'  value "tree.lr": 0.1 in A, "{"x" * 58}… in B',
        "1 checkpoint compared, 32 B of either store read: 1 of them differs",
    ]
    result = diff(one, other, "--atol", "1e-9", "--limit", 0)
    assert "tree.w" not in result.stdout
    assert "  and 1 values more\n" in result.stdout


def test_ranges_and_nan(tmp_path: Path) -> None:
    one = np.zeros(100)
    one[50] = np.nan
    other = one.copy()
    other[::9] = 1
    other[50] = -np.nan
    paths = [write(tmp_path / name, {"h": {0: {"u": u}}}) for name, u in (("one", one), ("other", other))]
    told = diff(*paths, "--limit", 3).stdout
    assert "    ranges   0:1, 9:10, 18:19 and 10 ranges more\n" in told
    assert "    NaN      1 differ" in told
    told = diff(*paths, "--limit", 0).stdout
    assert "    ranges   13 ranges\n" in told
    scalars = [write(tmp_path / f"scalar{n}", {"h": {0: [np.array(n)]}}) for n in range(2)]
    assert "  region 0: <i8 scalar, 1 of 1 elements differ\n    first    0 in A, 1 in B\n" in diff(*scalars).stdout
    payloads = [
        write(tmp_path / f"nan{n}", {"h": {0: [np.array([0x7FC00000 + n], "u4").view("f4")]}}) for n in range(2)
    ]
    assert "    first    [0]: nan in A, nan in B (bytes 0000c07f in A, 0100c07f in B)\n" in diff(*payloads).stdout
    facts = messages(*payloads)[0]["regions"][0]
    assert (facts["values"], facts["max_difference"], facts["nan_payloads"]) == (["nan", "nan"], None, 1)


def test_lines_fit_the_terminal() -> None:
    line = f"    ranges   {', '.join(f'{n}:{n + 1}' for n in range(10**6, 10**6 + 40, 2))}"
    broken = diff_command._broken(line, 80)
    assert max(map(len, broken)) <= 80
    assert all(below.startswith(" " * 13) for below in broken[1:])
    assert " ".join(" ".join(broken).split()) == " ".join(line.split())
    assert diff_command._broken(line, None) == [line]
