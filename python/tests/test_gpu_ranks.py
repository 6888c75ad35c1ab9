"""Ranks that train together, each on a GPU of its own, with FSDP2 and with DDP."""

import json
from pathlib import Path

import pytest
from launching import launch_ranks

torch = pytest.importorskip("torch")

RANKS = 2

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("way", ["fsdp", "ddp"])
def test_ranks_train_as_without_velocpy(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.device_count() < RANKS:
        pytest.skip("one CUDA device")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    launch_ranks(Path(__file__).with_name("training_rank.py"), RANKS, way, tmp_path)
    for rank in range(RANKS):
        found = json.loads((tmp_path / f"{way}-{rank}.json").read_text())
        assert found["offloaded"] == [True] * 4
        assert found["back"]
        assert found["again"]
        assert found["moved"] > 0
