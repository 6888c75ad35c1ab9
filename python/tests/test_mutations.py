"""Bugs that stores have had elsewhere, put into the core one at a time: its tests have to find every one of them."""

# ruff: noqa: E501 - code of others stands here as it is

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


class Bug(NamedTuple):
    """What is written where, and the tests that have to find it. ``before`` stands exactly once in the file."""

    name: str
    file: str
    before: str
    after: str
    tests: str
    package: str = "tier/disk/durable"
    short: bool = True


FAULTS = "TestFaults"
POWER = "TestPowerLoss"

BUGS = [
    Bug("the name of a data file is not synced", "tier/disk/segment/file.go", "if err == nil && unnamed {", "if err == nil && unnamed && s.closed {", POWER),
    Bug("the name of a catalog file is not synced", "tier/disk/journal/log.go", "		err = l.file.Sync()\n	}\n	if err == nil {\n		err = l.o.FS.SyncDir(l.o.Dir)", "		err = l.file.Sync()\n	}\n	if err == nil && l.closed {\n		err = l.o.FS.SyncDir(l.o.Dir)", POWER),
    Bug("the catalog is written before the data is synced", "tier/disk/durable/commit.go", "		failed = d.sync(group)\n		killpoint.Pass(killpoint.DataSynced)\n		d.chooseArea(group)\n		d.record(group)", "		killpoint.Pass(killpoint.DataSynced)\n		d.chooseArea(group)\n		d.record(group)\n		failed = d.sync(group)", POWER),
    Bug("a failed sync of the data is ignored", "tier/disk/durable/commit.go", "			c.Err = failed[first]", "			_ = failed[first]", FAULTS),
    Bug("a sync that failed is tried again on the same file", "tier/disk/segment/file.go", "	err := file.Sync()\n", "	err := file.Sync()\n	if err != nil {\n		err = file.Sync()\n	}\n", FAULTS),
    Bug("a batch whose sync failed is tried again on the same file", "tier/disk/journal/log.go", "	err := l.file.Sync()\n	if kind", "	err := l.file.Sync()\n	if err != nil {\n		err = l.file.Sync()\n	}\n	if kind", FAULTS + "/of/.*/EIO", short=False),
    Bug("a failed sync of the catalog is ignored", "tier/disk/journal/log.go", "	err := l.file.Sync()\n	if kind", "	_ = l.file.Sync()\n	var err error\n	if kind", FAULTS),
    Bug("a head is not compared with the store", "tier/disk/segment/head.go", "version != known || is != *h", "version != known || is.Number != h.Number", "TestDataFilesOfAnotherStore"),
    Bug("a commit counts without its bytes", "tier/disk/durable/ahead.go", "if lacks = lacks || check.damaged(w,", "if lacks = lacks && check.damaged(w,", "TestAFrameWithoutItsBytes"),
    Bug("bytes whose sync may have failed are not written again", "tier/disk/durable/ahead.go", "if c.ahead.torn || len(c.ahead.last) == 0 {", "if c.ahead.torn || len(c.ahead.last) >= 0 {", FAULTS),
    Bug("a commit area is written over before the catalog has it", "tier/disk/durable/area.go", "	all := slices.Concat(d.area.records, records)\n", "	all := slices.Concat(d.area.records[:0], records)\n", POWER),
    Bug("the room of what has failed is kept while something else is uncertain", "store/durable.go", "if k.uncertain[off] != nil {", "if len(k.uncertain) > 0 {", "TestAFailingDiskAtRandom", package="store"),
    Bug("what a dead writer has put off is never said", "tier/disk/durable/dir.go", "if !d.contents.log.Closed {", "if false {", "TestWhatADeadWriterHasPutOff"),
    Bug("what is put off is not said by a store that is idle", "tier/disk/durable/commit.go", "			d.drainIndexes()\n", "", "TestWhatIsPutOffIsSaid"),
    Bug("what was written over comes back", "tier/disk/durable/rebuild.go", "case places.covers(x.run):", "case false:", "TestWhatWasWrittenOverDoesNotComeBack"),
    Bug("a rebuild believes every index", "tier/disk/durable/rebuild.go", "case !b.right(x):", "case false:", "TestTheBytesDecide"),
    Bug("a head is not written", "tier/disk/segment/head.go", "	if !g.bare {\n		return nil", "	if !g.bare || g.start >= 0 {\n		return nil", POWER),
    Bug("a foreign data file is swept away", "tier/disk/durable/survey.go", " && c.own(number)", "", "TestDataFilesOfAnotherStore"),
    Bug("data files that are used are swept away", "tier/disk/durable/survey.go", "ok && !c.used(number)", "ok && !c.used(number+1)", POWER),
    Bug("older catalogs are removed before the new one is synced", "tier/disk/journal/snapshot.go", "		err = l.write(kindComplete, l.last, end)\n	}\n", "		err = l.write(kindComplete, l.last, end)\n	}\n	older, _ := l.o.files()\n	for _, n := range older[:len(older)-1] {\n		_ = l.o.FS.Remove(l.o.path(n))\n	}\n	return err\n", POWER),
    Bug("the end of a snapshot is written before its parts are synced", "tier/disk/journal/snapshot.go", "	if err == nil {\n		err = l.file.Sync()\n	}\n	if err != nil {", "	if err != nil {", "TestFaultsAndCrashes", package="tier/disk/journal"),
    Bug("the identity is not synced", "tier/disk/durable/identity.go", "		err = file.Sync()", "		err = nil", POWER),
    Bug("the name of the identity is not synced", "tier/disk/durable/identity.go", "	return o.FS.SyncDir(o.Dir)\n}", "	return nil\n}", POWER),
    Bug("the lock is not taken", "tier/disk/durable/dir.go", "	if errors.Is(err, vfs.ErrTaken) {\n", "	if errors.Is(err, vfs.ErrTaken) {\n		return released{}, nil\n	}\n	if errors.Is(err, vfs.ErrTaken) {\n", "TestWhatIsCommittedIsFound"),
    Bug("what is found is not written again", "tier/disk/journal/log.go", "	if from.newest > 0 && !from.Closed {", "	if from.newest > 1<<62 && !from.Closed {", FAULTS),
    Bug("a snapshot that may be unsynced is relied on", "tier/disk/durable/dir.go", "case d.damage() != nil || d.contents.log.Shadowed:", "case d.damage() != nil:", FAULTS + "/of/compaction/", short=False),
    Bug("a batch counts although a newer file says otherwise", "tier/disk/journal/read.go", "			limit = chain[i+1].begin.behind\n", "			limit = noLimit\n", FAULTS),
    Bug("a failed sync of the catalog is no doubt", "tier/disk/durable/commit.go", "c.Err, c.Uncertain = err, d.unclear", "c.Err = err", FAULTS),
    Bug("payloads are not looked at", "tier/disk/journal/scan.go", "	if xxh3.Hash(payload) != h.payload || rest", "	if xxh3.Hash(payload) == 0 || rest", "TestEveryBit"),
    Bug("frames of other stores count", "tier/disk/journal/frame.go", "append(text[:0], at.store[:]...)", "append(text[:0], make([]byte, 16)...)", "TestHostileStores"),
    Bug("the second identity is not looked at", "tier/disk/durable/identity.go", "		if wrong[k] != nil && !again {", "		if wrong[k] != nil && !again && k != 1 {", "TestEveryBit"),
    Bug("what has been replaced is committed behind what replaced it", "store/commit.go", "r.Shown() && k.inFlight[at].hasLive()", "r.Gone() && k.inFlight[at].hasLive()", "TestWhatIsReplacedIsNotCommittedBehindIt", package="store"),
    Bug("a drop takes a version that comes after it", "store/tombstone.go", "r == going || r.Gone() {", "r != nil {", "TestDropSpares", package="store"),
    Bug("a version overtakes one that was on its way before it", "store/inflight.go", "		if f.x.Kind == engine.Spill {", "		if f.x.Rec == r {", "TestWhatIsGivenUpReplaces", package="store"),
    Bug("a late clear takes what was captured since", "store/tombstone.go", "b.changes <= 0 && b.serial <= serial", "b.serial <= serial", "TestAClearThatFailed", package="store"),
    Bug("a rule that has failed comes back", "store/retryqueue.go", "once.Retention = s.histories[c.History].rule()", "once.Retention = c.Retention", "TestRuleThatFailed", package="store"),
    Bug("the best goes for a worse one", "store/ranking.go", "outdone, _ = x.best.PopMax()", "outdone, _ = x.best.PopMin()", "TestNoCrashCostsTheBest", package="store"),
    Bug("to what clears up other ones of equal checkpoints are the best", "tier/disk/durable/retain.go", "cmp.Compare(x.serial, y.serial)", "cmp.Compare(y.serial, x.serial)", "TestCollectAppliesRetention"),
    Bug("what is not durable yet costs one of the best", "store/retention.go", "	return int64(r.Body.(*body).serial), s.eng.Complete(r, len(s.tiers)-1)", "	return r.Written(), true", "TestRetentionCountsWhatIsDurable", package="store"),
    Bug("a drop that was not made is kept secret", "store/retryqueue.go", "	return err, s.durable.retries.undone(s)", "	return err, nil", "TestDropThatIsNotMade", package="store"),
    Bug("a drop that failed is forgotten when the store closes", "store/retryqueue.go", "		s.durable.retries.last = true\n		s.retryChanges(false)\n", "", "TestDropThatFailedIsTriedWhen", package="store"),
    Bug("a batch relies on another one", "tier/disk/durable/commit.go", "len(records[0]) == 0 {", "len(all) > 0 {", "TestEveryBit"),
    Bug("damage that was seen ahead counts as verified", "policy/engine/proof.go", "right && p.Rec.proving", "p.Rec.proving", "TestLeasesAreComparedAhead", package="store"),
    Bug("a flush finds no room while what makes some is landing", "policy/engine/flush.go", "e.cfg.Keep != nil && e.tiers[t].arriving > 0", "e.cfg.Keep != nil && e.tiers[t].arriving < 0", "TestRoomOfWhatIsReplaced", package="store"),
    Bug("a batch is long", "tier/disk/durable/commit.go", "len(batch) > 0 && size+n > batchBytes {", "len(batch) > 0 && size+n > batchBytes<<7 {", "TestAFrameOfABatch"),
    Bug("what is damaged while it is compared counts as verified", "policy/engine/proof.go", "right && p.Rec.proving", "right", "TestProofs|TestModel", package="policy/engine"),
    Bug("a missing batch is taken for a torn end", "tier/disk/journal/read.go", "	if to != noLimit && to > r.state.Last {", "	if to == 0 {", "TestEveryBitFlipped", package="tier/disk/journal"),
    Bug("a part of a snapshot is long", "tier/disk/journal/snapshot.go", "RecordHead+len(record) > p.room() {", "RecordHead+len(record) > p.room()<<7 {", "TestEverySector"),
    Bug("a snapshot says once that it is complete", "tier/disk/journal/snapshot.go", "	_, err = l.writeAt(completeAt, kindComplete, l.last, end)\n", "", "TestEverySectorOfALargeStore"),
    Bug("what cannot be read ends the reading", "tier/disk/journal/source.go", "	case !vfs.Unreadable(err):\n		return err", "	case err != nil:\n		return err\n	default:\n		return nil", "TestEverySectorOfALargeStore"),
    Bug("what cannot be read costs what is read with it", "tier/disk/journal/source.go", "	if unit == mediumUnit || ", "	if unit == readAhead || ", "TestEverySectorOfALargeStore"),
    Bug("what cannot be read is taken for a torn end", "tier/disk/journal/read.go", "	case s.failure(at, s.size) != nil:", "	case s.size < 0:", "TestAnEndThatCannotBeRead", package="tier/disk/journal"),
    Bug("the end of a snapshot is taken for a torn one", "tier/disk/journal/read.go", "	if !found && limit == noLimit && at >= file.end {", "	if !found && limit == noLimit {", "TestASnapshotThatEndsEarly", package="tier/disk/journal"),
    Bug("a snapshot counts only if something says that it is complete", "tier/disk/journal/read.go", "	case oldest && v.parts && v.begin.behind > 0:", "	case oldest && v.parts && v.begin.behind > 1<<62:", "TestAnOldSnapshot", package="tier/disk/journal"),
    Bug("definitions behind the rows are not looked at", "tier/disk/durable/durable.go", "len(c.log.Damage) > 0 && len(c.lost) > 0 {", "len(c.log.Damage) > 0 && len(c.lost) > 1<<30 {", "TestEverySectorOfALargeStore"),
    Bug("the copies of the identity are read at once", "tier/disk/durable/identity.go", "	n, err := file.ReadAt(p, at)\n", "	n, err := file.ReadAt(append(p, p...), 0)\n	n = max(0, min(n-int(at), len(p)))\n", "TestEverySectorOfALargeStore"),
    Bug("what cannot be read is dropped", "tier/disk/durable/repair.go", "return s.fault != Unreadable", "return s.fault != Identity", "TestOnlyDamageIsDropped"),
    Bug("what is right when it is read once more is dropped", "tier/disk/durable/repair.go", "		if c.rowDamaged(w, r) {", "		if c.rowDamaged(w, r) || len(rows) > 0 {", "TestOnlyDamageIsDropped"),
]  # fmt: skip


#: The check of a commit puts a third of them in: which, VELOCPY_TURN tells, that counts the commits.
TURN = os.environ.get("VELOCPY_TURN")


@pytest.mark.parametrize("bug", BUGS if TURN is None else BUGS[int(TURN) % 3 :: 3], ids=lambda bug: bug.name)
@pytest.mark.timeout(300)
def test_every_bug_is_found(bug: Bug, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go here")
    source = ROOT / "gocore" / bug.file
    text = source.read_text()
    assert text.count(bug.before) == 1, "the code has changed: the bug has to be written anew"
    mutant = tmp_path / source.name
    mutant.write_text(text.replace(bug.before, bug.after))
    overlay = tmp_path / "overlay.json"
    overlay.write_text(json.dumps({"Replace": {str(source): str(mutant)}}))
    command = [
        go,
        "test",
        f"-short={str(bug.short).lower()}",
        "-failfast",
        "-timeout=200s",
        f"-overlay={overlay}",
        f"-run=^{bug.tests}",
        f"./gocore/{bug.package}",
    ]
    # Each bug was seen to be found by the part of the proofs that is played when nobody asks for another.
    environment = {name: value for name, value in os.environ.items() if name != "VELOCPY_TURN"}
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert "[build failed]" not in ran.stdout, ran.stdout + ran.stderr
    assert "[setup failed]" not in ran.stdout, ran.stdout + ran.stderr
    assert ran.returncode != 0, f"no test has found it: {ran.stdout}"
