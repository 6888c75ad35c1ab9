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


def test_targets_of_one_name_share_nothing(root: Path, tmp_path: Path) -> None:
    script = root / "tools" / "fuzz.sh"
    if not script.exists():
        pytest.skip("there are no sources here")
    folder, caches = tmp_path / "fuzz", tmp_path / "caches"
    for package in PACKAGES:
        target = folder / "targets" / package / "fuzz.test"
        target.parent.mkdir(parents=True)
        target.write_text(TARGET)
        target.chmod(0o755)
    (folder / "targets.txt").write_text("".join(f"{package} FuzzRequest\n" for package in PACKAGES))
    done = subprocess.run(
        ["bash", str(script), "run", str(folder), "1s", "2"],
        env={"PATH": "/usr/bin:/bin", "CACHES": str(caches)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert len(set(caches.read_text().split())) == len(PACKAGES)
    assert sorted(done.stdout.splitlines()) == [
        "fuzz: 2 targets, 1s each: 140 executions",
        "gocore/one/FuzzRequest 70",
        "gocore/two/FuzzRequest 70",
    ]
