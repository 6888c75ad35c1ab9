"""Bugs of stores elsewhere, put into the core one at a time: the core's tests have to find each of them.

A bug's place in the Go source is a marker: the comment ``//mutation:NAME`` on the line above a statement or a case. Each bug has a marker of its own; several
may stand above one statement. ``tools/mutate`` puts the bug in, by an operation on the syntax tree (its head lists them). An operation names no identifier of
the project, so that a bug survives every rename, and every move of its file. Whoever adds a bug adds the marker and a row of ``BUGS``; whoever moves a
marked statement moves its markers with it.
"""

# ruff: noqa: E501 - a row is a line

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Bug(NamedTuple):
    """A marker in the core, the bug in words, the operation of ``tools/mutate`` on the marked statement, and the tests of a package that have to find it."""

    marker: str
    words: str
    operation: str
    tests: str
    package: str = "tier/disk/durable"
    short: bool = True


FAULTS = "TestFaults"
POWER = "TestPowerLoss"

BUGS = [
    Bug("data-file-name-unsynced", "the name of a data file is not synced", "false", POWER),
    Bug("catalog-file-name-unsynced", "the name of a catalog file is not synced", "false", POWER),
    Bug("catalog-before-data", "the catalog is written before the data is synced", "behind 3", POWER),
    Bug("data-sync-error-ignored", "a failed sync of the data is ignored", "remove", FAULTS),
    Bug("data-sync-retried", "a sync that failed is tried again on the same file", "retry", FAULTS),
    Bug("batch-sync-retried", "a batch whose sync failed is tried again on the same file", "retry", FAULTS + "/of/.*/EIO", short=False),
    Bug("catalog-sync-error-ignored", "a failed sync of the catalog is ignored", "clear", FAULTS),
    Bug("head-of-another-store", "a head is not compared with the store", "false at 1", "TestDataFilesOfAnotherStore"),
    Bug("commit-without-bytes", "a commit counts without its bytes", "false at init 1", "TestAFrameWithoutItsBytes"),
    Bug("later-contents-torn", "a commit area loses checkpoints in a form of later versions", "false", "TestContentsOfLaterVersions"),
    Bug("long-decoding-in-a-commit-area", "a commit area has checkpoints that take long to decode", "drop 1", "TestACommitAreaHasLittleToDecode"),
    Bug("torn-bytes-not-rewritten", "bytes whose sync may have failed are not written again", "true", FAULTS),
    Bug("commit-area-overwritten", "a commit area is written over before the catalog has it", "drop 0", POWER),
    Bug("uncertain-room-not-reused", "the room of a failed commit is not reused while another commit is uncertain", "any", "TestAFailingDiskAtRandom", package="store"),
    Bug("deferred-indexes-of-dead-writer", "indexes that a dead writer deferred are never written", "false", "TestWhatADeadWriterHasPutOff"),
    Bug("deferred-indexes-when-idle", "an idle store does not write the indexes that it deferred", "remove", "TestWhatIsPutOffIsSaid"),
    Bug("overwritten-rows-return", "a rebuild finds checkpoints whose bytes were overwritten", "false", "TestWhatWasWrittenOverDoesNotComeBack"),
    Bug("rebuild-trusts-indexes", "a rebuild trusts every index without reading the bytes", "false", "TestTheBytesDecide"),
    Bug("head-not-written", "a head is not written", "true", POWER),
    Bug("file-of-an-empty-checkpoint", "the row of a checkpoint without bytes refers to a file that nothing has created", "remove", "TestAnEmptyCheckpointHasAFile"),
    Bug("foreign-data-file-swept", "a data file of another store is removed", "true at 2", "TestDataFilesOfAnotherStore"),
    Bug("used-data-file-swept", "data files in use are removed", "true at 1", POWER),
    Bug("old-catalogs-removed-unsynced", "older catalogs are removed before the new one is synced", "remove", POWER),
    Bug("snapshot-parts-unsynced", "the end of a snapshot is written before its parts are synced", "false", "TestFaultsAndCrashes", package="tier/disk/journal"),
    Bug("identity-unsynced", "the identity is not synced", "remove", POWER),
    Bug("identity-name-unsynced", "the name of the identity is not synced", "nil", POWER),
    Bug("taken-lock-accepted", "a directory whose lock another process holds is opened", "nil at 1", "TestWhatIsCommittedIsFound"),
    Bug("found-batch-not-rewritten", "a batch that was found is not written again", "false", FAULTS),
    Bug("unsynced-snapshot-trusted", "a snapshot that may be unsynced is trusted", "false at 1", FAULTS + "/of/compaction/", short=False),
    Bug("superseded-batch-counts", "a batch counts although a newer file replaces it", "remove", FAULTS),
    Bug("uncertain-commit-not-marked", "a commit is not marked uncertain after a failed sync of the catalog", "false at 1", FAULTS),
    Bug("payload-hash-ignored", "the hash of a payload is not compared", "false at 0", "TestEveryBit"),
    Bug("frame-of-another-store", "frames of other stores count", "drop 1", "TestHostileStores"),
    Bug("second-identity-ignored", "damage to the second copy of the identity is not reported", "true at 0 1", "TestEveryBit"),
    Bug("replaced-version-committed-late", "a version is committed after the one that replaced it", "false at 0", "TestWhatIsReplacedIsNotCommittedBehindIt", package="store"),
    Bug("drop-takes-later-version", "a drop removes a version that was captured after it", "true", "TestDropSpares", package="store"),
    Bug("version-overtakes-earlier", "a version becomes visible before an earlier one whose commit is in flight", "becomes next", "TestWhatIsGivenUpReplaces", package="store"),
    Bug("late-clear-takes-new", "the end of a clear uncovers versions that another clear still hides", "true at 0", "TestAClearThatFailed", package="store"),
    Bug("failed-rule-returns", "a retention rule whose write failed is written again after a newer one", "becomes up 0", "TestRuleThatFailed", package="store"),
    Bug("best-evicted-for-worse", "the best checkpoint makes room for a worse one", "method PopMin", "TestNoCrashCostsTheBest", package="store"),
    Bug("equal-scores-reversed", "the collector orders checkpoints of equal score otherwise than the store", "swap at 1 0 1", "TestCollectAppliesRetention"),
    Bug("undurable-counts-for-retention", "retention counts a checkpoint that is not durable yet", "true at 1", "TestRetentionCountsWhatIsDurable", package="store"),
    Bug("failed-drop-unreported", "a drop that was not written is not reported", "nil at 1", "TestDropThatIsNotMade", package="store"),
    Bug("failed-drop-forgotten-at-close", "a drop that failed is forgotten when the store closes", "remove 2", "TestDropThatFailedIsTriedWhen", package="store"),
    Bug("batch-without-repeat", "a batch does not repeat the definitions that it needs", "true", "TestEveryBit"),
    Bug("damage-verified-ahead", "a copy whose early verification failed counts as verified", "true at 1 0", "TestLeasesAreComparedAhead", package="store"),
    Bug("flush-gives-up-on-arriving", "a flush gives up while a commit in flight is about to free its room", "false at 0", "TestRoomOfWhatIsReplaced", package="store"),
    Bug("batch-too-long", "a batch is not bounded", "times 128 at 1 1", "TestAFrameOfABatch"),
    Bug("changed-during-verification", "a copy that became invalid during its verification counts as verified", "true at 1 1", "TestProofs|TestModel", package="policy/engine"),
    Bug("missing-batch-as-torn-end", "a missing batch is taken for a torn end", "false", "TestEveryBitFlipped", package="tier/disk/journal"),
    Bug("snapshot-part-too-long", "a part of a snapshot is not bounded", "times 128 at 1", "TestEverySector"),
    Bug("snapshot-complete-once", "a snapshot says only once that it is complete", "remove", "TestEverySectorOfALargeStore"),
    Bug("unreadable-ends-reading", "an unreadable sector ends the reading", "true", "TestEverySectorOfALargeStore"),
    Bug("unreadable-costs-neighbours", "an unreadable sector costs all that is read with it", "true at 0", "TestEverySectorOfALargeStore"),
    Bug("unreadable-as-torn-end", "an unreadable sector is taken for a torn end", "false", "TestAnEndThatCannotBeRead", package="tier/disk/journal"),
    Bug("snapshot-end-as-torn", "the end of a snapshot is taken for a torn one", "true at 2", "TestASnapshotThatEndsEarly", package="tier/disk/journal"),
    Bug("snapshot-needs-complete-frame", "a snapshot counts only if a frame says that it is complete", "false at 2", "TestAnOldSnapshot", package="tier/disk/journal"),
    Bug("late-definitions-ignored", "definitions that follow their rows are ignored", "false at 2", "TestEverySectorOfALargeStore"),
    Bug("unreadable-identity-copy-fatal", "a copy of the identity that cannot be read is fatal", "false", "TestEverySectorOfALargeStore"),
    Bug("unreadable-dropped", "an unreadable checkpoint is dropped as if damaged", "true at 1 0", "TestOnlyDamageIsDropped"),
    Bug("part-in-memory-unverified", "parts of regions that come from memory are not verified", "false", "TestPartsOfRegions", package="store"),
    Bug("part-from-below-unverified", "parts of regions that come from below are not verified", "false", "TestReadingOfParts", package="checkpoint"),
    Bug("stream-unverified", "bytes that stream to the caller are not verified", "false", "TestStreamedRestores|TestStreamsThatCannotBeRead", package="store"),
    Bug("memory-not-taken-back", "a stream goes on into the memory of a restore that has failed", "remove", "TestStreamsThatAreGivenUp", package="store"),
    Bug("wrong-leaves-adopted", "hashes of leaves count although the checksums do not follow from them", "false at 2", "TestAdoptLeaves", package="checkpoint", short=False),
    Bug("time-of-a-group-kept", "a capture of a group that waits takes no time", "remove", "TestManyWait", package="store"),
    Bug("readable-on-retry-dropped", "a checkpoint that is intact when it is read again is dropped", "true", "TestOnlyDamageIsDropped"),
]  # fmt: skip


#: The check of a commit puts one of so many in: which, VELOCPY_TURN tells, that counts the commits.
TURNS = 24
TURN = os.environ.get("VELOCPY_TURN")


def markers() -> list[tuple[str, Path]]:
    """Return every marker in the core, with the file that it stands in."""
    return [
        (name, file)
        for file in sorted((ROOT / "gocore").rglob("*.go"))
        for name in re.findall(r"^\t*//mutation:(\S+)$", file.read_text(), re.MULTILINE)
    ]


def test_every_marker_has_a_bug_and_every_bug_a_marker() -> None:
    assert sorted(name for name, _ in markers()) == sorted(bug.marker for bug in BUGS)


def test_the_tests_of_every_bug_exist() -> None:
    for bug in BUGS:
        package = (ROOT / "gocore" / bug.package).glob("*_test.go")
        tests = [name for file in package for name in re.findall(r"^func (Test\w+)\(", file.read_text(), re.MULTILINE)]
        for pattern in bug.tests.split("/")[0].split("|"):
            assert any(name.startswith(pattern) for name in tests), (
                f"{bug.marker}: no test of {bug.package} is called {pattern}"
            )


@pytest.fixture(scope="session")
def mutate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go here")
    command = tmp_path_factory.mktemp("mutate") / "mutate"
    subprocess.run([go, "-C", "tools", "build", "-o", command, "./mutate"], cwd=ROOT, check=True)
    return command


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS if TURN is None else BUGS[int(TURN) % TURNS :: TURNS], ids=lambda bug: bug.marker)
@pytest.mark.timeout(300)
def test_every_bug_is_found(bug: Bug, mutate: Path, tmp_path: Path) -> None:
    source = dict(markers())[bug.marker]
    mutant = tmp_path / source.name
    mutant.write_bytes(subprocess.check_output([mutate, source, bug.marker, *bug.operation.split()]))
    overlay = tmp_path / "overlay.json"
    overlay.write_text(json.dumps({"Replace": {str(source): str(mutant)}}))
    command = [
        "go",
        "test",
        "-vet=off",  # what vet finds is not found by a test
        f"-short={str(bug.short).lower()}",
        "-failfast",
        "-timeout=200s",
        f"-overlay={overlay}",
        f"-run=^{bug.tests}",
        f"./gocore/{bug.package}",
    ]
    # Each bug was seen to be found by the part of the proofs that is played when nobody asks for another.
    environment = {name: value for name, value in os.environ.items() if name != "VELOCPY_TURN"} | {"CGO_ENABLED": "0"}
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert "[build failed]" not in ran.stdout, ran.stdout + ran.stderr
    assert "[setup failed]" not in ran.stdout, ran.stdout + ran.stderr
    assert ran.returncode != 0, f"no test has found it: {ran.stdout}"
