"""What files can do there that a store uses, or that tells how it behaves."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from velocpy.quantity import exact, sized, timed

from . import system
from .finding import NOTHING, Finding, absent, failed, ok, refused, unsupported, warning
from .place import Place

BLOCK = 4096

#: How often a small write is made durable, and seconds after which that is enough.
ROUNDS, ENOUGH = 20, 1.0

#: Median seconds of a durable write from which on waiting for each checkpoint is felt.
SLOW = 0.05


@contextlib.contextmanager
def opened(name: Path, flags: int) -> Iterator[int]:
    """A descriptor, for as long as it is needed."""
    fd = os.open(name, flags | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def look_at_directory(place: Place) -> Finding:
    """Makes the doctor's room, and removes what killed doctors have left."""
    try:
        if not stat.S_ISDIR(place.path.stat().st_mode):
            return refused(NotADirectoryError(errno.ENOTDIR, "no directory"), "looking into it")
    except OSError as error:
        return refused(error, "looking at it")
    strays = place.remove_strays()
    try:
        room = place.room
    except OSError as error:
        return refused(error, "making a directory in it")
    text = "it can be written" + (f"; {strays} left by killed doctors removed" if strays else "")
    return ok(text, strays=strays) if room.is_dir() else failed("what was made is not there", "See who removes it.")


def look_at_durable_writes(place: Place) -> Finding:
    """Write, fdatasync, rename, sync of the directory, reopen, compare: what every commit is made of."""
    first, second = place.room / "written", place.room / "renamed"
    blocks = [os.urandom(BLOCK) for _ in range(ROUNDS)]
    syncs: list[float] = []
    with opened(first, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
        for i, block in enumerate(blocks):
            _whole(os.pwrite(fd, block, i * BLOCK), BLOCK)
            syncs.append(_took(lambda: os.fdatasync(fd)))
            if sum(syncs) > ENOUGH:
                break
    rename = _took(lambda: first.rename(second))
    with opened(place.room, os.O_RDONLY | os.O_DIRECTORY) as fd:
        try:
            directory: float | None = _took(lambda: os.fsync(fd))
        except OSError as error:
            if not unsupported(error):
                raise
            directory = None
    if second.read_bytes() != b"".join(blocks[: len(syncs)]):
        return failed("what was written came back changed", "Test the machine's memory and disk.")
    return _judge_syncs(syncs, rename, directory)


def _whole(moved: int, wanted: int) -> None:
    if moved != wanted:
        raise OSError(errno.ENOSPC, "a transfer was cut short")  # a full disk does that


def _took(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _judge_syncs(syncs: list[float], rename: float, directory: float | None) -> Finding:
    median, most = statistics.median(syncs), max(syncs)
    facts = {
        "rounds": len(syncs),
        "fdatasync_median_seconds": median,
        "fdatasync_max_seconds": most,
        "rename_seconds": rename,
        "directory_fsync_seconds": directory,
    }
    text = f"fdatasync {timed(median)} (median of {len(syncs)}), {timed(most)} at most; rename {timed(rename)}"
    if directory is None:
        remedy = "Names may be lost with the power there: choose another file system for what has to stay."
        return warning(f"{text}; directories cannot be synced", remedy, **facts)
    text += f", sync of the directory {timed(directory)}; read back as written"
    if median > SLOW or most > ENOUGH:
        remedy = "Each wait for a durable checkpoint takes that long: wait for several at once, or find a faster disk."
        return warning(text, remedy, **facts)
    return ok(text, **facts)


def look_at_direct_io(place: Place) -> Finding:
    """One aligned block past the page cache, and back."""
    with mmap.mmap(-1, 2 * BLOCK) as buffer, memoryview(buffer) as both, both[:BLOCK] as out, both[BLOCK:] as back:
        out[:] = os.urandom(BLOCK)
        try:
            with opened(place.room / "direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT) as fd:
                _whole(os.pwritev(fd, [out], 0), BLOCK)
                _whole(os.preadv(fd, [back], 0), BLOCK)
        except OSError as error:
            if not unsupported(error):
                raise
            remedy = "Stores go through the page cache there, which costs memory and copies: a local disk does better."
            return warning(f"no direct I/O: {os.strerror(error.errno or 0)}", remedy)
        if out != back:
            return failed("what was written came back changed", "Choose another file system.")
    return ok(f"blocks of {sized(BLOCK)} go past the page cache", block_bytes=BLOCK)


def look_at_unnamed_files(place: Place) -> Finding:
    """O_TMPFILE, and linkat, which gives such a file a name."""
    remedy = f"{NOTHING}: scratch files have a name for a moment instead."
    try:
        with opened(place.room, os.O_WRONLY | os.O_TMPFILE) as fd:
            os.write(fd, b"named later")
            name = place.room / "linked"
            try:
                # Python follows the link only when src_dir_fd is given.
                with opened(Path("/proc/self/fd"), os.O_RDONLY | os.O_DIRECTORY) as own:
                    os.link(str(fd), name, src_dir_fd=own, follow_symlinks=True)
            except OSError as error:
                return absent(f"files without a name, which cannot get one: {os.strerror(error.errno or 0)}", remedy)
    except OSError as error:
        if not unsupported(error):
            raise
        return absent("no files without a name (O_TMPFILE)", remedy)
    if name.read_bytes() != b"named later":
        return failed("a file that got its name by linkat has other contents", "Choose another file system.")
    return ok("files without a name (O_TMPFILE), and linkat for them")


def look_at_preallocation(place: Place) -> Finding:
    """Whether room can be taken before it is written."""
    size = 1 << 20
    try:
        with opened(place.room / "preallocated", os.O_RDWR | os.O_CREAT) as fd:
            system.fallocate(fd, 0, 0, size)
            status = os.fstat(fd)
    except OSError as error:
        if not unsupported(error):
            raise
        return absent("no fallocate", f"{NOTHING}: files grow as they are written, and a full disk shows later.")
    if status.st_size != size:
        return failed(f"a file of {exact(size)} has {exact(status.st_size)}", "Choose another file system.")
    return ok("fallocate takes room before it is written", allocated_bytes=status.st_blocks * 512)


def look_at_holes(place: Place) -> Finding:
    """Whether room in the middle of a file can be given back."""
    size = 1 << 20
    with opened(place.room / "punched", os.O_RDWR | os.O_CREAT) as fd:
        _whole(os.pwrite(fd, os.urandom(size), 0), size)
        os.fsync(fd)  # some file systems count no blocks before
        full = os.fstat(fd).st_blocks
        try:
            system.fallocate(fd, system.PUNCH_HOLE | system.KEEP_SIZE, 0, size // 2)
        except OSError as error:
            if not unsupported(error):
                raise
            remedy = (
                "What is dropped gives its room back to the store there, and to the file system with whole files only."
            )
            return warning("no holes can be punched", remedy)
        os.fsync(fd)
        given = (full - os.fstat(fd).st_blocks) * 512
        if os.pread(fd, size // 2, 0) != bytes(size // 2) or os.fstat(fd).st_size != size:
            return failed("a hole does not read as zeros", "Choose another file system.")
    return ok("holes can be punched into files", given_back_bytes=given)


def look_at_sparse_files(place: Place) -> Finding:
    """Whether what was never written takes room."""
    size = 16 << 20
    with opened(place.room / "sparse", os.O_RDWR | os.O_CREAT) as fd:
        os.ftruncate(fd, size)
        os.pwrite(fd, b"end", size - 3)
        os.fsync(fd)
        taken = os.fstat(fd).st_blocks * 512
        if os.pread(fd, BLOCK, 0) != bytes(BLOCK):
            return failed("what was never written does not read as zeros", "Choose another file system.")
    if taken > size // 2:
        return absent("files take room for what was never written", f"{NOTHING}: stores write what they allocate.")
    return ok("what was never written takes no room", file_bytes=size, taken_bytes=taken)


def look_at_attributes(place: Place) -> Finding:
    """Whether files carry extended attributes of the user."""
    name = place.room / "attributed"
    name.touch()
    try:
        os.setxattr(name, "user.velocpy", b"tried")
        same = os.getxattr(name, "user.velocpy") == b"tried"
    except OSError as error:
        if not unsupported(error):
            raise
        return absent("no extended attributes", f"{NOTHING}: stores use none.")
    return ok("files carry extended attributes") if same else failed("attributes change", "Choose another file system.")


def look_at_case(place: Place) -> Finding:
    """Whether names that differ in case alone are different names."""
    (place.room / "Case").touch()
    if (place.room / "case").exists():
        remedy = "Stores do not mind; files exported there must not differ in case alone."
        return warning("names that differ in case alone are the same", remedy)
    return ok("names that differ in case alone are different")
