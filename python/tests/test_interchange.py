"""Files of safetensors and torch into stores and out of them: exact, in little memory, and refused where they are none.

Those of NumPy, and the commands, are in `test_stored`.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import random
import struct
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import RunPython

import velocpy
from velocpy import cli, errors, interchange

torch = pytest.importorskip("torch")
library = pytest.importorskip("safetensors.torch")

pytestmark = pytest.mark.usefixtures("frozen_imports")

SMALL: dict[str, Any] = {"host": "16MiB", "disk": "256MiB"}


def bits(tensor: Any) -> bytes:
    tensor = tensor.detach() if isinstance(tensor, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(tensor))
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy()) if tensor.numel() else b""


def of_all_dtypes() -> dict[str, Any]:
    raw = torch.randint(0, 256, (240,), dtype=torch.uint8)
    dtypes = [
        "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
        "float64", "complex64", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu",
    ]  # fmt: skip
    found = {name: raw.view(getattr(torch, name)).clone() for name in dtypes}
    return found | {
        "bool": torch.tensor([True, False, True]),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 7),
        "grid": torch.arange(24.0).reshape(2, 3, 4),
        "größe": torch.ones(3),
    }


def restored(path: Path, key: Any = 0, history: str = "h") -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """The regions of a checkpoint: dtype, shape and bytes."""
    found = {}
    with (
        velocpy.open(path, mode="r", host="16MiB", verify="always") as store,
        store.history(history).restore(key) as lease,
    ):
        memory = lease._held()
        for label in lease:
            number = memory.find(label)
            text, _, shape, _ = memory.description(number)
            found[label] = (text, shape, memory.raw(number).tobytes())
    return found


def as_restored(tensors: dict[str, Any]) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    from velocpy.tensors import torch_text

    return {name: (torch_text(tensor.dtype), tuple(tensor.shape), bits(tensor)) for name, tensor in tensors.items()}


def test_files_of_the_library_are_imported_bit_by_bit(tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    tensors = of_all_dtypes()
    library.save_file(tensors, tmp_path / "x.safetensors", {"note": "ours"})
    interchange.import_(tmp_path / "x.safetensors", tmp_path / "store", "h", 0)
    assert restored(tmp_path / "store") == as_restored(tensors)


def test_the_library_reads_what_is_exported(tmp_path: Path) -> None:
    tensors = of_all_dtypes()
    with velocpy.open(tmp_path / "store", **SMALL) as store:
        store.history("h").checkpoint(0, tensors, meta={"step": 3})
    files = interchange.export(tmp_path / "store", "h", 0, tmp_path / "x.safetensors")
    assert files == [tmp_path / "x.safetensors"]
    back = library.load_file(tmp_path / "x.safetensors")
    assert as_restored(back) == as_restored(tensors)
    with library.safe_open(tmp_path / "x.safetensors", "pt") as opened:
        assert opened.metadata() == {"format": "pt", "velocpy.meta": '{"step":3}'}


def test_several_files_and_their_index(tmp_path: Path) -> None:
    tensors = {f"layer.{n}.weight": torch.full((1000,), float(n)) for n in range(7)}
    tensors["large"] = torch.zeros(5000)
    with velocpy.open(tmp_path / "store", **SMALL) as store:
        store.history("h").checkpoint(0, tensors, meta="m")
    out = tmp_path / "out"
    out.mkdir()
    options = {"max_shard": "12kB"}
    files = interchange.export(tmp_path / "store", "h", 0, out / "model.safetensors", **options)
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 48_000}
    assert set(index["weight_map"]) == set(tensors)
    assert {each.name for each in out.iterdir()} == {each.name for each in files}
    assert {each.name for each in files[:-1]} == set(index["weight_map"].values())
    assert sorted(each.name for each in files)[0] == f"model-00001-of-{len(files) - 1:05}.safetensors"
    merged: dict[str, Any] = {}
    for each in files[:-1]:
        there = library.load_file(each)
        assert len(there) == 1 or sum(tensor.nbytes for tensor in there.values()) <= 12_000
        merged |= there
    assert as_restored(merged) == as_restored(tensors)
    for source in (out, out / "model.safetensors.index.json"):
        interchange.import_(source, tmp_path / "back", "h", 0)
        assert restored(tmp_path / "back") == as_restored(tensors)
        with velocpy.open(tmp_path / "back", mode="r", host="16MiB") as store:
            assert store.history("h").meta(0) == "m"
    # Again over the former ones, and as one file where all fit.
    assert interchange.export(tmp_path / "store", "h", 0, out / "model.safetensors", **options) == files
    assert interchange.export(tmp_path / "store", "h", 0, out / "y.safetensors", max_shard="1MB") == [
        out / "y.safetensors"
    ]
    assert not list(out.glob(".*"))


def test_a_folder_without_a_clear_answer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgument, match="no safetensors file"):
        interchange.import_(tmp_path, tmp_path / "store", "h", 0)
    for name in "ab":
        library.save_file({name: torch.ones(1)}, tmp_path / f"{name}.safetensors")
    with pytest.raises(errors.InvalidArgument, match="no index"):
        interchange.import_(tmp_path, tmp_path / "store", "h", 0)
    library.save_file({"c": torch.ones(1)}, tmp_path / "model.safetensors")
    interchange.import_(tmp_path, tmp_path / "store", "h", 0)
    assert set(restored(tmp_path / "store")) == {"c"}


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(16, 8)
        self.body = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight


def test_tied_weights_of_a_checkpointer_go_out_and_come_back(tmp_path: Path) -> None:
    model = Tied()
    with velocpy.Checkpointer(path=tmp_path / "store", model=model, random=False, host="16MiB") as checkpointer:
        checkpointer.save(0, durable=True).wait("disk")
    names = {"model.embed.weight", "model.body.weight", "model.body.bias"}
    interchange.export(tmp_path / "store", "training", 0, tmp_path / "alias.safetensors")
    with library.safe_open(tmp_path / "alias.safetensors", "pt") as opened:
        assert set(opened.keys()) == names
        assert opened.metadata() == {"format": "pt", "model.head.weight": "model.embed.weight"}
    interchange.export(tmp_path / "store", "training", 0, tmp_path / "copy.safetensors", ties="copy")
    copied = library.load_file(tmp_path / "copy.safetensors")
    assert set(copied) == {*names, "model.head.weight"}
    assert torch.equal(copied["model.head.weight"], model.head.weight)
    for name in ("alias", "copy"):
        interchange.import_(tmp_path / f"{name}.safetensors", tmp_path / "back", "h", name)
        back = restored(tmp_path / "back", name)
        assert back == as_restored({f"model.{each}": tensor for each, tensor in model.state_dict().items()})


def test_files_of_save_model_bring_all_names(tmp_path: Path) -> None:
    model = Tied()
    library.save_model(model, str(tmp_path / "x.safetensors"))
    interchange.import_(tmp_path / "x.safetensors", tmp_path / "store", "h", 0)
    assert restored(tmp_path / "store") == as_restored(model.state_dict())


def test_transformers_loads_what_is_exported(tmp_path: Path, run_python: RunPython) -> None:
    """In a process of its own: transformers leaves a thread behind."""
    pytest.importorskip("transformers")
    done = run_python(
        """
        import sys
        from pathlib import Path
        import torch, transformers
        from velocpy import interchange

        folder = Path(sys.argv[1])
        config = transformers.GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=16)
        model = transformers.GPT2LMHeadModel(config)
        model.save_pretrained(folder / "one", max_shard_size="40kB")
        interchange.import_(folder / "one", folder / "store", "h", 0)
        (folder / "two").mkdir()
        config.save_pretrained(folder / "two")
        files = interchange.export(folder / "store", "h", 0, folder / "two/model.safetensors", max_shard="50kB")
        again = transformers.GPT2LMHeadModel.from_pretrained(folder / "two").state_dict()
        here = model.state_dict()
        print(len(files) > 2, again.keys() == here.keys(), all(torch.equal(here[name], again[name]) for name in here))
        """,
        str(tmp_path),
    )
    assert done.stdout.split() == ["True"] * 3, done.stderr


def test_a_file_larger_than_the_host_tier_passes_in_little_memory(tmp_path: Path, run_python: RunPython) -> None:
    """Of 384 MiB in 24 tensors, a few of them are in memory at once, on the way in and on the way out."""
    done = run_python(
        """
        import json, struct, sys, threading, time
        from pathlib import Path
        import numpy as np
        from velocpy import interchange
        from velocpy.interchange import content

        content.BATCH = 32 << 20
        most, ended = 0, threading.Event()

        def watch():
            global most
            while not ended.wait(0.002):
                for line in Path("/proc/self/status").read_text().splitlines():
                    if line.startswith("RssAnon"):
                        most = max(most, int(line.split()[1]) >> 10)

        folder, n, count = Path(sys.argv[1]), 16 << 20, 24
        block = np.random.default_rng(0).bytes(n)
        head = {f"t{i:02}": {"dtype": "U8", "shape": [n], "data_offsets": [i * n, (i + 1) * n]} for i in range(count)}
        raw = json.dumps(head).encode()
        with open(folder / "x.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(raw)) + raw)
            for i in range(count):
                file.write(block[i:] + block[:i])
        watcher = threading.Thread(target=watch)
        watcher.start()
        interchange.import_(folder / "x.safetensors", folder / "store", "h", 0)
        interchange.export(folder / "store", "h", 0, folder / "y.safetensors")
        ended.set()
        watcher.join()
        with open(folder / "x.safetensors", "rb") as x, open(folder / "y.safetensors", "rb") as y:
            for each in (x, y):
                each.seek(8 + struct.unpack("<Q", each.read(8))[0])
            for _ in range(count):
                assert x.read(n) == y.read(n)
            assert not x.read(1) and not y.read(1)
        print(most)
        """,
        str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    for file in ("x.safetensors", "y.safetensors"):
        (tmp_path / file).unlink()
    assert int(done.stdout) < 250, done.stdout


# ---- hostile files ----


def file_of(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def entry(begin: int, end: int, shape: Any = None, dtype: Any = "U8") -> dict[str, Any]:
    return {"dtype": dtype, "shape": [end - begin] if shape is None else shape, "data_offsets": [begin, end]}


HOSTILE = {
    "empty": b"",
    "short": b"\x01\0\0",
    "a header beyond the end": file_of({}, length=1 << 20),
    "a header beyond all memory": file_of({}, length=(1 << 64) - 1),
    "no JSON": file_of(b"{nonsense"),
    "no object": file_of([1, 2]),
    "no UTF-8": file_of(b'{"\xff":1}'),
    "a header that is nested too deep": file_of(b'{"a":' + b"[" * 100_000),
    "an overlap": file_of({"a": entry(0, 4), "b": entry(2, 6)}, bytes(6)),
    "a hole": file_of({"a": entry(0, 2), "b": entry(4, 6)}, bytes(6)),
    "a hole at the beginning": file_of({"a": entry(2, 6)}, bytes(6)),
    "bytes at the end": file_of({"a": entry(0, 4)}, bytes(6)),
    "a tensor beyond the end": file_of({"a": entry(0, 8)}, bytes(6)),
    "offsets the other way round": file_of({"a": entry(4, 0, [4])}, bytes(4)),
    "a negative offset": file_of({"a": entry(-4, 0, [4])}, bytes(4)),
    "a negative length": file_of({"a": entry(0, 4, [-2, -2])}, bytes(4)),
    "too many elements": file_of({"a": entry(0, 4, [5])}, bytes(4)),
    "elements beyond all counting": file_of({"a": entry(0, 4, [1 << 40, 1 << 40, 1 << 40])}, bytes(4)),
    "a number of many digits": file_of(b'{"a":{"dtype":"U8","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,4]}}'),
    "a shape of truth": file_of({"a": entry(0, 1, [True])}, bytes(1)),
    "a shape of fractions": file_of({"a": entry(0, 4, [4.0])}, bytes(4)),
    "an unknown dtype": file_of({"a": entry(0, 4, dtype="O")}, bytes(4)),
    "a dtype that is none": file_of({"a": entry(0, 4, dtype=[1])}, bytes(4)),
    "no offsets": file_of({"a": {"dtype": "U8", "shape": [4]}}, bytes(4)),
    "something else": file_of({"a": {**entry(0, 4), "strides": [1]}}, bytes(4)),
    "a name twice": file_of(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],'
                            b'"data_offsets":[1,2]}}', bytes(2)),
    "a name with a lone surrogate": file_of(b'{"\\ud800":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', bytes(4)),
    "metadata that are no texts": file_of({"__metadata__": {"a": 1}, "a": entry(0, 4)}, bytes(4)),
    "metadata that are a list": file_of({"__metadata__": [], "a": entry(0, 4)}, bytes(4)),
    "a meta that is no JSON": file_of({"__metadata__": {"velocpy.meta": "{"}, "a": entry(0, 4)}, bytes(4)),
    "no tensors": file_of({}),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused_and_nothing_is_made(tmp_path: Path, what: str) -> None:
    (tmp_path / "x.safetensors").write_bytes(HOSTILE[what])
    with pytest.raises(errors.InvalidArgument):
        interchange.import_(tmp_path / "x.safetensors", tmp_path / "store", "h", 0)
    assert not (tmp_path / "store").exists()


def test_empty_tensors_of_any_shape_are_read_or_refused(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(file_of({"a": entry(0, 0, [0, 1 << 62, 1 << 62]), "b": entry(0, 0, [0])}))
    with pytest.raises(errors.InvalidType, match="'a'"):
        interchange.import_(tmp_path / "x.safetensors", tmp_path / "store", "h", 0)


def test_elements_at_odd_places_are_read(tmp_path: Path) -> None:
    header = b'{"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}'
    for pad in range(8):
        data = np.array([1.5, -2.0]).tobytes()
        (tmp_path / "x.safetensors").write_bytes(file_of(header + b" " * pad, data))
        interchange.import_(tmp_path / "x.safetensors", tmp_path / "store", "h", pad)
        assert restored(tmp_path / "store", pad)["a"] == ("<f8", (2,), data)


def test_whatever_a_flipped_bit_says_it_is_read_or_refused(tmp_path: Path) -> None:
    library.save_file({"a": torch.arange(10), "b": torch.ones(3)}, tmp_path / "good.safetensors")
    good = (tmp_path / "good.safetensors").read_bytes()
    generator = random.Random(0)
    for _ in range(1500):
        bad = bytearray(good)
        for _ in range(generator.choice((1, 1, 3))):
            bad[generator.randrange(len(bad) - 92)] ^= 1 << generator.randrange(8)
        (tmp_path / "x.safetensors").write_bytes(bad)
        try:
            content = interchange._READERS["safetensors"](tmp_path / "x.safetensors")
        except errors.InvalidArgument:
            continue
        assert sum(array.nbytes for array in content.regions.values()) == 92


@pytest.mark.parametrize("place", ["../x.safetensors", "/etc/passwd", "", ".", "..", "sub/x.safetensors", 7, "a\0b"])
def test_an_index_that_leads_away_is_refused(tmp_path: Path, place: Any) -> None:
    library.save_file({"a": torch.ones(1)}, tmp_path / "x.safetensors")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": place}}))
    with pytest.raises(errors.InvalidArgument, match="lie beside it"):
        interchange.import_(folder, tmp_path / "store", "h", 0)
    assert not (tmp_path / "store").exists()


def test_an_index_that_does_not_fit_its_files_is_refused(tmp_path: Path) -> None:
    library.save_file({"a": torch.ones(1), "b": torch.ones(1)}, tmp_path / "x.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    for said, match in (
        ("{", "no index"),
        ("[]", "no index"),
        ("{}", "no index"),
        ('{"weight_map": []}', "no index"),
        ('{"weight_map": {"a": "x.safetensors", "a": "x.safetensors"}}', "no index"),
        ('{"weight_map": {"a": "x.safetensors"}}', "'b'.*does not list"),
        ('{"weight_map": {"a": "x.safetensors", "c": "x.safetensors"}}', "'c'.*has not"),
    ):
        index.write_text(said)
        with pytest.raises(errors.InvalidArgument, match=match):
            interchange.import_(index, tmp_path / "store", "h", 0)
    index.write_text('{"weight_map": {"a": "missing.safetensors"}}')
    with pytest.raises(errors.TierIOError, match="missing"):
        interchange.import_(index, tmp_path / "store", "h", 0)
    assert not (tmp_path / "store").exists()


def test_what_is_no_ordinary_file_is_refused(tmp_path: Path) -> None:
    for name in ("x.safetensors", "x.pt", "x.npz"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(errors.InvalidArgument, match="no ordinary file"):
            interchange.import_(tmp_path / name, tmp_path / "store", "h", 0)
    assert not (tmp_path / "store").exists()


def test_a_tensor_with_the_name_of_a_format_is_no_tie(tmp_path: Path) -> None:
    library.save_file({"pt": torch.ones(1)}, tmp_path / "x.safetensors", {"format": "pt"})
    interchange.import_(tmp_path / "x.safetensors", tmp_path / "store", "h", 0)
    assert set(restored(tmp_path / "store")) == {"pt"}


def test_an_export_that_fails_leaves_the_former_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from velocpy.interchange import safe

    with velocpy.open(tmp_path / "store", **SMALL) as store:
        store.history("h").checkpoint(0, {str(n): np.full(1000, n) for n in range(4)})
        store.history("h").checkpoint(1, {str(n): np.full(1000, -n) for n in range(4)})
    out = tmp_path / "out"
    out.mkdir()
    files = interchange.export(tmp_path / "store", "h", 0, out / "m.safetensors", max_shard=8000)
    before = {each: each.read_bytes() for each in files}
    real, calls = safe._write, []

    def failing(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        real(*arguments)

    monkeypatch.setattr(safe, "_write", failing)
    with pytest.raises(errors.TierIOError, match="No space"):
        interchange.export(tmp_path / "store", "h", 1, out / "m.safetensors", max_shard=8000)
    assert {each: each.read_bytes() for each in out.iterdir()} == before


def test_bad_options_are_refused(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "store", **SMALL) as store:
        store.history("h").checkpoint(0, u=np.zeros(3))
    for options in ({"ties": "none"}, {"max_shard": "0"}, {"max_shard": "much"}):
        with pytest.raises(errors.InvalidArgument):
            interchange.export(tmp_path / "store", "h", 0, tmp_path / "x.safetensors", **options)
    with pytest.raises(errors.InvalidArgument):
        interchange.export(tmp_path / "store", "h", 0, tmp_path / "x.npz", max_shard="1MB")
    with pytest.raises(errors.InvalidArgument):
        interchange.export(tmp_path / "store", "h", 0, tmp_path / "x.pt", "torch")


# ---- files of torch.save ----


def take(file: Path, store: Path, key: Any = 0) -> Any:
    interchange.import_(file, store, "training", key)
    with velocpy.open(store, mode="r", host="16MiB") as opened, opened.history("training").restore(key) as lease:
        return lease.tree


def test_a_state_dict_of_torch_is_imported(tmp_path: Path) -> None:
    tensors = of_all_dtypes()
    torch.save(tensors, tmp_path / "x.pt")
    interchange.import_(tmp_path / "x.pt", tmp_path / "store", "h", 0)
    assert restored(tmp_path / "store") == as_restored(tensors)
    model = Tied()
    torch.save(model.state_dict(), tmp_path / "model.bin")
    interchange.import_(tmp_path / "model.bin", tmp_path / "store", "h", 1)
    assert restored(tmp_path / "store", 1) == as_restored(model.state_dict())


def test_a_training_saved_by_torch_is_restored_by_a_checkpointer(tmp_path: Path) -> None:
    model = Tied()
    optimizer = torch.optim.AdamW(model.parameters())
    model.body(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "note": [None, "x", 0.5]}
    torch.save(state, tmp_path / "x.ckpt")
    tree = take(tmp_path / "x.ckpt", tmp_path / "store", 3)
    assert (tree["epoch"], tree["note"]) == (3, [None, "x", 0.5])
    expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for parameter in model.parameters():
        parameter.data.zero_()
    again = torch.optim.AdamW(model.parameters())
    with velocpy.Checkpointer(
        path=tmp_path / "store", model=model, optimizer=again, host="16MiB", disk="64MiB"
    ) as checkpointer:
        checkpointer.restore(3, parts=["model", "optimizer"])
    assert as_restored(model.state_dict()) == as_restored(expected)
    assert again.state_dict()["state"].keys() == optimizer.state_dict()["state"].keys()


def test_other_containers_of_torch_are_imported(tmp_path: Path) -> None:
    torch.save(OrderedDict(a=[torch.ones(2), (torch.zeros(1), 5)], b={"c": {1: torch.ones(3)}}), tmp_path / "x.pt")
    tree = take(tmp_path / "x.pt", tmp_path / "store")
    assert tree["a"][1][1] == 5
    assert tree["b"]["c"][1].tolist() == [1, 1, 1]
    torch.save(torch.arange(3), tmp_path / "one.pt")
    assert take(tmp_path / "one.pt", tmp_path / "store", 1)[0].tolist() == [0, 1, 2]
    torch.save([torch.arange(3), torch.ones(1)], tmp_path / "list.pt")
    assert len(take(tmp_path / "list.pt", tmp_path / "store", 2)) == 2


class Thing:
    """An object that a file must not make."""

    def __init__(self) -> None:
        self.x = 1


class Exploit:
    def __reduce__(self) -> Any:
        return (os.system, (f"touch {os.environ['EXPLOITED']}",))


def test_an_object_in_a_file_is_refused_by_its_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLOITED", str(tmp_path / "exploited"))
    states = {
        r"'optimizer\.hooks\.1'.*Thing": {"w": torch.ones(1), "optimizer": {"hooks": [torch.ones(1), Thing()]}},
        r"'deep\.er'.*system": {"w": torch.ones(1), "deep": {"er": Exploit()}},
        r"'sets\.0'.*Thing": {"sets": {Thing()}},
        r"'kind'.*Thing": {"kind": Thing},
    }
    for match, state in states.items():
        torch.save(state, tmp_path / "x.pt")
        with pytest.raises(errors.InvalidType, match=match):
            interchange.import_(tmp_path / "x.pt", tmp_path / "store", "h", 0)
    assert not (tmp_path / "exploited").exists()
    assert not (tmp_path / "store").exists()


def test_tensors_that_a_store_cannot_hold_are_named(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(1), "b": {"s": torch.eye(3).to_sparse()}}, tmp_path / "x.pt")
    with pytest.raises(errors.InvalidType, match=r"b\.s"):
        interchange.import_(tmp_path / "x.pt", tmp_path / "store", "h", 0)
    torch.save(3, tmp_path / "x.pt")
    with pytest.raises(errors.InvalidType):
        interchange.import_(tmp_path / "x.pt", tmp_path / "store", "h", 0)
    torch.save({}, tmp_path / "x.pt")
    with pytest.raises(errors.InvalidArgument):
        interchange.import_(tmp_path / "x.pt", tmp_path / "store", "h", 0)


def test_files_that_torch_did_not_save_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.pt"
    torch.save({"a": torch.ones(1000), "b": 3}, file)
    good = file.read_bytes()
    torch.save({"a": torch.ones(3)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(tmp_path / "text.pt", "w") as archive:
        archive.writestr("readme.txt", "no state")
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps({"a": 1}))
    (tmp_path / "empty.pt").write_bytes(b"")
    for name in ("old.pt", "text.pt", "pickle.pt", "empty.pt"):
        with pytest.raises(errors.InvalidArgument):
            interchange.import_(tmp_path / name, tmp_path / "store", "h", 0)
    for cut in (10, 100, len(good) // 2, len(good) - 10):
        file.write_bytes(good[:cut])
        with pytest.raises(errors.InvalidArgument):
            interchange.import_(file, tmp_path / "store", "h", 0)
    with pytest.raises(errors.TierIOError):
        interchange.import_(tmp_path / "missing.pt", tmp_path / "store", "h", 0)
    generator = random.Random(1)
    for _ in range(200):
        bad = bytearray(good)
        bad[generator.randrange(len(bad))] ^= 1 << generator.randrange(8)
        file.write_bytes(bad)
        with contextlib.suppress(errors.InvalidArgument):
            interchange._READERS["torch"](file)
    assert not (tmp_path / "store").exists()


def test_the_command_takes_folders_and_files_of_torch(tmp_path: Path) -> None:
    def invoke(*arguments: Any) -> Any:
        return CliRunner().invoke(cli.main, [str(each) for each in arguments], catch_exceptions=False)

    torch.save({"model": {"w": torch.ones(1000), "v": torch.zeros(500)}}, tmp_path / "x.pt")
    done = invoke("import", tmp_path / "x.pt", tmp_path / "store", "h", 5, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["bytes"] == (tmp_path / "x.pt").stat().st_size
    out = tmp_path / "out"
    out.mkdir()
    done = invoke("export", tmp_path / "store", "h", 5, out / "model.safetensors", "--max-shard-size", "4000", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["bytes"] == sum(each.stat().st_size for each in out.iterdir())
    done = invoke("import", out, tmp_path / "store", "h", 6)
    assert done.exit_code == 0, done.output
    assert restored(tmp_path / "store", 6) == restored(tmp_path / "store", 5)
    torch.save({"hook": Thing()}, tmp_path / "x.pt")
    done = invoke("import", tmp_path / "x.pt", tmp_path / "store", "h", 7)
    assert done.exit_code == 2
    assert "'hook'" in done.output


def test_safetensors_needs_no_library(tmp_path: Path, run_python: RunPython) -> None:
    (tmp_path / "x.safetensors").write_bytes(file_of({"a": entry(0, 4)}, b"abcd"))
    done = run_python(
        """
        import sys
        for library in ("safetensors", "torch"):
            sys.modules[library] = None
        from velocpy import interchange
        from velocpy.extra import MissingExtra
        interchange.import_(sys.argv[1] + "/x.safetensors", sys.argv[1] + "/store", "h", 0)
        interchange.export(sys.argv[1] + "/store", "h", 0, sys.argv[1] + "/y.safetensors")
        try:
            interchange.import_(sys.argv[1] + "/x.pt", sys.argv[1] + "/store", "h", 0)
        except MissingExtra as error:
            print(error)
        """,
        str(tmp_path),
    )
    assert "needs torch, which is not installed: pip install 'velocpy[torch]'" in done.stdout, done.stderr
    assert library.load_file(tmp_path / "y.safetensors")["a"].tolist() == list(b"abcd")
    assert sys.modules["torch"]
