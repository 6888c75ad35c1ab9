"""`tools/fuzz.sh` on targets that are made up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PACKAGES = ("gocore/one", "gocore/two")

# Says how often it ran, as a fuzzing test binary does, and which cache it was given.
TARGET = """#!/bin/sh
for option; do
  case $option in -test.fuzzcachedir=*) echo "${option#*=}" >>"$CACHES"; touch "${option#*=}/found" ;; esac
done
echo "fuzz: elapsed: 1s, execs: 40 (40/sec)"
echo "fuzz: elapsed: 2s, execs: 70 (30/sec)"
"""

# Fails with what stands in $FAILURE as often as $CACHES has fewer lines than $FAILURES.
FAILING = (
    TARGET
    + """
if [ "$(wc -l <"$CACHES")" -le "$FAILURES" ]; then
  echo "--- FAIL: FuzzRequest (1.01s)"
  printf '%s\n' "$FAILURE"
  echo FAIL
  exit 1
fi
"""
)

LATE = "    context deadline exceeded"


@pytest.fixture
def script(root: Path) -> Path:
    path = root / "tools" / "fuzz.sh"
    if not path.exists():
        pytest.skip("there are no sources here")
    return path


def fuzzing(folder: Path, target: str, *packages: str) -> Path:
    """A folder as `fuzz.sh build` makes it, with one target in each package."""
    for package in packages:
        program = folder / "targets" / package / "fuzz.test"
        program.parent.mkdir(parents=True)
        program.write_text(target)
        program.chmod(0o755)
    (folder / "targets.txt").write_text("".join(f"{package} FuzzRequest\n" for package in packages))
    return folder


def run(script: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(script), "run", str(folder), "1s", "2"],
        env={"PATH": "/usr/bin:/bin", "CACHES": str(folder / "caches"), **variables},
        check=False,
        capture_output=True,
        text=True,
    )


def test_targets_of_one_name_share_nothing(script: Path, tmp_path: Path) -> None:
    done = run(script, fuzzing(tmp_path, TARGET, *PACKAGES))
    assert done.returncode == 0, done.stderr
    assert len(set((tmp_path / "caches").read_text().split())) == len(PACKAGES)
    assert sorted(done.stdout.splitlines()) == [
        "fuzz: 2 targets, 1s each: 140 executions",
        "gocore/one/FuzzRequest 70",
        "gocore/two/FuzzRequest 70",
    ]


def test_a_target_that_only_ended_late_runs_again(script: Path, tmp_path: Path) -> None:
    done = run(script, fuzzing(tmp_path, FAILING, "gocore/one"), FAILURES="1", FAILURE=LATE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["gocore/one/FuzzRequest 70", "fuzz: 1 targets, 1s each: 70 executions"]


@pytest.mark.parametrize(
    ("failure", "runs"),
    [
        (LATE, 3),
        (f"    request_test.go:30:{LATE}", 1),
        (f"{LATE}\n    Failing input written to testdata/fuzz/FuzzRequest/1", 1),
    ],
)
def test_a_failure_stays_one(script: Path, tmp_path: Path, failure: str, runs: int) -> None:
    done = run(script, fuzzing(tmp_path, FAILING, "gocore/one"), FAILURES="9", FAILURE=failure)
    assert done.returncode != 0
    assert "fuzz: FuzzRequest in gocore/one fails" in done.stderr
    assert len((tmp_path / "caches").read_text().split()) == runs
