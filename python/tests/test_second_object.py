"""The second reader of objects on the objects that the Go tests keep."""

import re
from pathlib import Path

import pytest
import xxhash
from second_object import Lineage, Object

pytest.importorskip("zstandard")

KEPT = Path(__file__).parents[2] / "gocore/reduction/object/testdata"


def golden(name):
    """Objects, sources and region sums of a kept history, by number."""
    objects, sources, regions = {}, {}, {}
    for part in (KEPT / name).read_text().split("checkpoint ")[1:]:
        head, *lines = part.splitlines()
        number, containers, _, *listed = map(int, re.findall(r"\d+", head))
        found = [re.fullmatch(r"region (\w+): (\d+) bytes, XXH3-64 (\w+)", line) for line in lines]
        regions[number] = {m[1]: (int(m[2]), int(m[3], 16)) for m in found if m}
        dump = [line.split("  |")[0].split("  ", 1)[1] for line in lines if "  |" in line]
        objects[number] = (bytes.fromhex(" ".join(dump)), containers)
        sources[number] = listed
    return objects, sources, regions


def sums(restored):
    return {name: (len(data), xxhash.xxh3_64_intdigest(data)) for name, data in restored.items()}


METHODS = ["basic", "list", "tree", "runs"]


def opened(objects, sources):
    """The objects of a history, each with those that may be its reference."""
    found = {}
    for number, (data, containers) in objects.items():
        others = tuple(found[n] for n in sources[number])
        found[number] = Object(data, containers, others=others)
    return found


@pytest.mark.parametrize("name", ["full", *METHODS, "references", *(f"{method}-differences" for method in METHODS)])
def test_kept_objects(name):
    objects, sources, regions = golden(f"{name}.txt")
    lineage = Lineage(opened(objects, sources))
    assert len(objects) == 7
    assert (name == "full") == (not any(sources.values()))
    for number, wanted in regions.items():
        restored = lineage.restore(number, sources[number])
        assert sums(restored) == wanted
        assert list(restored) == list(wanted)


def test_references_are_kept_and_needed():
    objects, sources, _ = golden("references.txt")
    referring = [number for number in objects if sources[number]]
    assert len(referring) >= 4
    for number in referring:
        data, containers = objects[number]
        assert Object(data, containers, others=(Object(*objects[sources[number][0]]),)).refers
        for others in [(), (Object(*objects[1]), Object(*objects[sources[number][0]]))]:
            with pytest.raises(ValueError, match="only source"):
                Object(data, containers, others=others)


def test_kept_wholes():
    """Parts of 4 MiB, with a reference and without, and as the source of an object with shorter ones."""
    objects, sources, regions = golden("wholes.txt")
    found = opened(objects, sources)
    assert [found[number].part >> 18 for number in (1, 2, 3)] == [16, 16, 1]
    assert [found[number].refers for number in (1, 2, 3)] == [0, 1, 0]
    assert sources == {1: [], 2: [1], 3: [1]}
    for number, wanted in regions.items():
        restored = Lineage(found).restore(number, sources[number])
        assert sums(restored) == wanted
        assert list(restored) == list(wanted)


def with_part(data, containers, part):
    """An object whose header says another part, with a right checksum."""
    data = bytearray(data)
    data[containers + 26] = part
    table = int.from_bytes(data[containers + 32 : containers + 40], "little")
    head = data[containers : containers + 56] + data[containers + 64 : containers + 64 + table]
    data[containers + 56 : containers + 64] = xxhash.xxh3_64_intdigest(bytes(head)).to_bytes(8, "little")
    return bytes(data)


def test_other_parts_are_refused():
    objects, sources, _ = golden("wholes.txt")
    found = opened(objects, sources)
    data, containers = objects[2]
    for part, why in {0: "another part", 14: "another part", 63: "another part", 64: "long", 255: "long"}.items():
        with pytest.raises(ValueError, match=why):
            Object(with_part(data, containers, part), containers, others=(found[1],))
    Object(with_part(data, containers, 15), containers, others=(found[1],))


def test_both_forms_are_kept():
    forms = {Object(*parts).form for parts in golden("runs.txt")[0].values()}
    assert forms == {1, 2}


def test_damage_is_found():
    objects, sources, regions = golden("tree.txt")
    others = {number: Object(*objects[number]) for number in sources[2]}
    data, containers = objects[2]
    refused = 0
    for at in range(0, len(data), 5):
        damaged = bytearray(data)
        damaged[at] ^= 16
        try:
            restored = Lineage(others | {2: Object(bytes(damaged), containers)}).restore(2, sources[2])
        except ValueError:
            refused += 1
        else:
            assert sums(restored) == regions[2], at
    assert refused > 3 * len(data) // 5 // 4
