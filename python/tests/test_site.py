"""The documentation site: it builds without a warning, has every public name, and refuses broken links."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import velocpy
from velocpy import errors, plan

pytest.importorskip("sphinx")


def build(root: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of the checkout ``root`` as ``make docs`` does."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", out / "trees"]
    return subprocess.run([*command, root / "docs", out / "html"], capture_output=True, text=True, check=False)


def test_the_reference_has_every_public_name(root: Path, tmp_path: Path) -> None:
    read = root / "build" / "docs" / "doctrees"
    if read.exists():  # `make docs` has read the pages: those that have changed are read again
        shutil.copytree(read, tmp_path / "trees")
    done = build(root, tmp_path)
    assert done.returncode == 0, done.stderr
    # The inventory: four lines of text, then compressed lines of name, kind and place.
    inventory = (tmp_path / "html" / "objects.inv").read_bytes().split(b"\n", 4)[4]
    rows = [line.split()[:2] for line in zlib.decompress(inventory).decode().splitlines()]
    names = {name.rpartition(".")[2] for name, kind in rows if kind in ("py:class", "py:exception", "py:function")}
    public = {velocpy: velocpy.__all__, errors: errors.__all__, plan: ["Plan", "Restore", "Last", "Drop", "Advance"]}
    wanted = {name for module, all_names in public.items() for name in all_names if callable(getattr(module, name))}
    assert len(wanted) > 30
    assert sorted(wanted - names) == []


@pytest.mark.parametrize("link", ["[x](no-such-page.md)", "[x](guide.md#no-such-heading)", "[x](../no-such-file)"])
def test_a_broken_link_fails_the_build(root: Path, tmp_path: Path, link: str) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    shutil.copy(root / "docs" / "conf.py", docs)
    (docs / "guide.md").write_text("# Guide\n\n## A heading\n")
    index = "# velocpy\n\n{}\n\n```{{toctree}}\nguide\n```\n"
    (docs / "index.md").write_text(index.format(link))
    done = build(tmp_path, tmp_path)
    assert done.returncode != 0
    assert "no-such" in done.stderr
    (docs / "index.md").write_text(index.format("[x](guide.md#a-heading)"))
    done = build(tmp_path, tmp_path)
    assert done.returncode == 0, done.stderr
