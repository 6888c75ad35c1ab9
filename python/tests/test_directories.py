"""What a store may be made of: no size that was meant as a budget, no directory that belongs to somebody else."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import RunPython

import velocpy
from velocpy import interchange

SIZES = {"host": "1MiB", "disk": "16MiB"}


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def filled(path: Path | str) -> None:
    with velocpy.open(path, **SIZES) as store:
        store.history("h").checkpoint(0, u=np.arange(10.0)).wait("disk")


def names(directory: Path) -> list[str]:
    return sorted(str(each.relative_to(directory)) for each in directory.rglob("*"))


@pytest.mark.parametrize(
    "size", ["64MiB", "4GiB", "500 MB", "1.5G", "32g", "64k", " 7 mib ", "auto", "64GiB/node", "25%"]
)
@pytest.mark.parametrize("mode", ["a", "r"])
def test_a_size_is_no_path(size: str, mode: str, tmp_path: Path) -> None:
    with pytest.raises(velocpy.errors.InvalidArgument) as raised:
        velocpy.open(size, mode=mode)
    assert not isinstance(raised.value, velocpy.errors.NotAStore)
    assert f"open({'device' if '%' in size else 'host'}={size!r})" in str(raised.value)
    assert f"'./{size}'" in str(raised.value)
    assert names(tmp_path) == []


def test_a_directory_that_is_called_like_a_size(tmp_path: Path) -> None:
    filled("./64MiB")
    filled("64MiB")  # the store that is there
    filled(Path("1g"))  # no text: it was made on purpose
    filled(str(tmp_path / "2g"))
    with velocpy.open("64MiB", mode="r") as store:
        assert store.history("h").restore(0)["u"][9] == 9
    Path("3g").mkdir()
    with pytest.raises(velocpy.errors.InvalidArgument, match="reads as a size"):
        velocpy.open("3g", **SIZES)


@pytest.mark.parametrize("name", ["7b", "42", "20240101", "run1", "g", "1e9", "4GiB-run", "auto.d"])
def test_other_names_are_paths(name: str) -> None:
    filled(name)
    assert Path(name, "velocpy.store").is_file()


def foreign(directory: Path) -> Path:
    directory.mkdir()
    (directory / "thesis.tex").write_text("mine")
    (directory / "figures").mkdir()
    (directory / "data-of-2024.csv").write_text("1,2")
    return directory


def test_a_directory_with_other_files_is_no_store(tmp_path: Path) -> None:
    directory = foreign(tmp_path / "home")
    before = names(directory)
    with pytest.raises(velocpy.errors.ForeignDirectory) as raised:
        velocpy.open(directory, **SIZES)
    assert isinstance(raised.value, velocpy.errors.InvalidArgument)
    for part in (str(directory), "3 ", "data-of-2024.csv", "thesis.tex", "Nothing was changed", f"{directory}/velocpy"):
        assert part in str(raised.value)
    assert names(directory) == before
    with pytest.raises(velocpy.errors.ForeignDirectory):
        velocpy.open(directory, durable=True, **SIZES)
    np.savez(tmp_path / "state.npz", u=np.ones(2))
    with pytest.raises(velocpy.errors.ForeignDirectory):
        interchange.import_(tmp_path / "state.npz", directory, "h", 0)
    assert names(directory) == before


def test_many_other_files_are_counted(tmp_path: Path) -> None:
    directory = tmp_path / "many"
    directory.mkdir()
    for i in range(2000):
        (directory / f"file{i:04}").touch()
    with pytest.raises(velocpy.errors.ForeignDirectory, match=r"more than 1000 .*'file\d{4}', .*…") as raised:
        velocpy.open(directory, **SIZES)
    assert len(str(raised.value)) < 600


def test_private_files_may_lie_among_others(tmp_path: Path) -> None:
    """A scratch directory of a job belongs to many."""
    directory = foreign(tmp_path / "scratch")
    before = names(directory)
    with velocpy.open(directory, durable=False, **SIZES) as store:
        store.history("h").checkpoint(0, u=np.arange(10.0), tier="disk").wait("disk")
    with velocpy.open(directory, host="1MiB", disk=None) as store:  # no disk tier: nothing is written there
        store.history("h").checkpoint(0, u=np.arange(10.0))
    assert names(directory) == before


def test_a_store_stays_one_beside_other_files(tmp_path: Path) -> None:
    directory = tmp_path / "store"
    filled(directory)
    (directory / "README").write_text("what this is")
    filled(directory)
    with velocpy.open(directory, **SIZES) as store:
        assert list(store.history("h")) == [0]
    (directory / "velocpy.store").unlink()
    (directory / "velocpy.copy").unlink()
    with pytest.raises(velocpy.errors.DamagedStore):  # what is left of it says that it was one
        velocpy.open(directory, **SIZES)


@pytest.mark.parametrize(
    "left",
    ["lock", "ballast", "lost+found/", ".nfs00000001", ".snapshot/", ".DS_Store", ".gitkeep",
     ".velocpy-doctor-0000001f-77-0123456789abcdef/", ".velocpy-scratch-0000001f-77-0123456789abcdef"],
)  # fmt: skip
def test_what_velocpy_or_a_file_system_makes_is_no_other_file(tmp_path: Path, left: str) -> None:
    directory = tmp_path / "fresh"
    directory.mkdir()
    there = directory / left.rstrip("/")
    there.mkdir() if left.endswith("/") else there.touch()
    filled(directory)
    with velocpy.open(directory, mode="r") as store:
        assert list(store.history("h")) == [0]


def test_a_link_to_a_directory_is_that_directory(tmp_path: Path) -> None:
    filled(tmp_path / "store")
    (tmp_path / "store" / "note").touch()
    (tmp_path / "link").symlink_to(tmp_path / "store")
    filled(tmp_path / "link")
    (tmp_path / "other").symlink_to(foreign(tmp_path / "home"))
    with pytest.raises(velocpy.errors.ForeignDirectory):
        filled(tmp_path / "other")


#: Stores and directories, and whose modes they have.
PREPARED = """
import json, os, shutil, tempfile
import numpy, velocpy, velocpy.store, velocpy.trial.filesystem
from pathlib import Path
velocpy.build_info()
base = Path(tempfile.mkdtemp(dir="/tmp"))  # others may not look into tmp_path
base.chmod(0o755)
def store(name, mode, files):
    with velocpy.open(base / name, host="1MiB", disk="1MiB") as opened:
        opened.history("h").checkpoint(0, u=numpy.zeros(3)).wait("disk")
    for file in (base / name).iterdir():
        file.chmod(files)
    (base / name).chmod(mode)
def directory(name, mode):
    (base / name / "inner").mkdir(parents=True)
    (base / name / "inner").rmdir()
    (base / name).chmod(mode)
"""

DENIED = {
    "closed": "directory('d', 0o000); path = base / 'd'",
    "below a closed one": "directory('d', 0o000); path = base / 'd' / 'store'",
    "read-only": "directory('d', 0o555); path = base / 'd'",
    "below a read-only one": "directory('d', 0o555); path = base / 'd' / 'store'",
    "not to be listed": "directory('d', 0o300 if os.getuid() else 0o333); path = base / 'd'",
    "files of another": "store('d', 0o555, 0o000); path = base / 'd'",
    "a store that is closed": "store('d', 0o000, 0o600); path = base / 'd'",
    "private files": "directory('d', 0o555); path = base / 'd'; options['durable'] = False",
    "reading what is closed": "store('d', 0o000, 0o600); path = base / 'd'; options = {'mode': 'r'}",
    "reading files of another": "store('d', 0o555, 0o000); path = base / 'd'; options = {'mode': 'r'}",
}


@pytest.mark.parametrize("what", DENIED)
def test_a_directory_that_this_user_may_not_use(run_python: RunPython, what: str) -> None:
    done = run_python(
        PREPARED
        + f"""
options = {{"host": "1MiB", "disk": "1MiB"}}
{DENIED[what]}
root = os.getuid() == 0
if root:
    os.seteuid(65534)  # files of root's are open to root, whatever their modes
try:
    velocpy.open(path, **options).close()
except velocpy.errors.VelocError as error:
    print(json.dumps([type(error).__name__, error.errno, str(error), isinstance(error, PermissionError), str(path)]))
finally:
    if root:
        os.seteuid(0)
    for each in (base, *base.rglob("*")):
        if each.is_dir():
            each.chmod(0o700)
    shutil.rmtree(base)
"""
    )
    assert done.returncode == 0, done.stderr
    name, number, text, permission, path = json.loads(done.stdout)
    assert (name, number, permission) == ("AccessDenied", errno.EACCES, True)
    assert path in text
    assert "Permission denied" in text or "permission denied" in text
    assert "right" in text
