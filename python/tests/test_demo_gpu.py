"""The demo on a CUDA device: through all tiers, from torch, CuPy and raw pointers, and still the same bits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from velocpy.cli.exits import Exit
from velocpy.demo.backend import backend_named
from velocpy.demo.migration import InHistory
from velocpy.demo.run import Outcome, run
from velocpy.demo.settings import Settings
from velocpy.plot.stays import record_of

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

#: Two hundred megabytes of wavefields per shot.
SIZE = {2: (160, 240), 3: (48, 64, 64)}
STEPS = {2: None, 3: 400}


def through(library: str, path: Path, dim: int = 2, **more: Any) -> Outcome:
    pytest.importorskip(library)
    settings = Settings(
        dim=dim, size=SIZE[dim], steps=STEPS[dim], shots=1, backend=library, device="cuda", path=path, **more
    )
    settings.check()
    return run(settings)


@pytest.mark.parametrize("pointers", [False, True], ids=["arrays", "pointers"])
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_image_is_bitwise_that_of_device_memory(library: str, dim: int, pointers: bool, tmp_path: Path) -> None:
    outcome = through(library, tmp_path, dim, pointers=pointers)
    assert outcome.proven
    mine, its = outcome.image, outcome.reference
    assert outcome.backend.same(mine.cross, its.cross)
    assert outcome.backend.numpy(mine.cross).tobytes() == outcome.backend.numpy(its.cross).tobytes()
    assert np.count_nonzero(outcome.backend.numpy(mine.cross)) > 0.9 * np.prod(SIZE[dim])

    tiers, record = outcome.stats["tiers"], record_of(outcome.events)
    assert outcome.stats["timeline_lost"] == 0
    for name in ("device", "host", "disk"):
        assert 0 < tiers[name]["high_water"] <= outcome.budgets[name], name
        assert any(stay.tier == name for stay in record.stays), name
    assert outcome.survey.history_bytes > 4 * outcome.budgets["device"]
    assert outcome.survey.history_bytes > outcome.budgets["device"] + outcome.budgets["host"]
    assert tiers["disk"]["read_bytes"] > 0
    assert {(t.tier, t.way) for t in record.transfers} >= {("host", "down"), ("disk", "down"), ("device", "up")}
    assert outcome.stats["captures"] == outcome.stats["restores"]["count"] == outcome.survey.steps


def test_the_libraries_agree_with_numpy(tmp_path: Path) -> None:
    expected = run(Settings(size=(64, 80), steps=400, shots=1)).image.cross
    scale = float(np.abs(expected).max())
    for library in ("torch", "cupy"):
        pytest.importorskip(library)
        outcome = run(Settings(size=(64, 80), steps=400, shots=1, backend=library, device="cuda", path=tmp_path))
        assert outcome.proven
        np.testing.assert_allclose(
            outcome.backend.numpy(outcome.image.cross), expected, atol=1e-3 * scale, rtol=0, err_msg=library
        )


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_fields_stay_on_the_device(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given and what comes back are arrays of the library on the device, and no array is downloaded."""
    kinds = set()

    class Watched(InHistory):
        def keep(self, step: int, field: Any) -> None:
            kinds.add((type(field), str(field.device)))
            super().keep(step, field)

        @contextmanager
        def found(self, step: int) -> Iterator[Any]:
            with super().found(step) as field:
                kinds.add((type(field), str(field.device)))
                yield field
                del field

    monkeypatch.setattr("velocpy.demo.run.InHistory", Watched)
    outcome = through(library, tmp_path)
    assert outcome.proven
    image = outcome.image.cross
    assert kinds == {(type(image), str(image.device))}


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_one_wrong_bit_is_found(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(InHistory):
        def keep(self, step: int, field: Any) -> None:
            if step == 700:
                field = 1 * field
                field.view(backend.xp.int32)[80, 120] ^= 1 << 20
            super().keep(step, field)

    pytest.importorskip(library)
    backend = backend_named(library, "cuda")
    monkeypatch.setattr("velocpy.demo.run.InHistory", Wrong)
    outcome = through(library, tmp_path)
    assert not outcome.equal
    assert not outcome.proven


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_a_stream_of_its_own(library: str) -> None:
    """Work in the stream comes behind what was queued before it and ahead of what is queued after it."""
    pytest.importorskip(library)
    backend = backend_named(library, "cuda")
    assert backend.card is not None
    array = backend.zeros((1 << 26,))
    with backend.card.stream() as handle:
        assert handle > 2
        for _ in range(50):
            array += 1.0
    array += 1.0
    backend.finish()
    assert backend.same(array, backend.zeros((1 << 26,)) + 51.0)


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "velocpy", "demo", "--device", "cuda:99", "--out", str(tmp_path)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (Exit.FAILED, ""), result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("more", [[], ["--backend", "cupy", "--pointers"]], ids=["torch", "cupy pointers"])
def test_command(more: list[str], tmp_path: Path) -> None:
    if "cupy" in more:
        pytest.importorskip("cupy")
    size = "x".join(map(str, SIZE[2]))
    result = subprocess.run(
        [
            sys.executable, "-m", "velocpy", "demo", "--device", "cuda", "--size", size, "--shots", "2", "--json",
            "--out", str(tmp_path), "--folder", str(tmp_path / "disk"), *more,
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["proven"]
    assert facts["device"] == "cuda:0"
    assert set(facts["links"]) == {"device - host", "host - disk"}
    assert all(link["down"] > 0 and link["up"] > 0 for link in facts["links"].values())
    assert facts["pointers"] == bool(more)
    for picture in facts["pictures"].values():
        assert Path(picture).read_bytes().startswith(b"\x89PNG")
