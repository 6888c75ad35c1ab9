"""Containers can be decoded by who knows nothing but docs/reduction-format.md."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from second_decoder import CHUNK, SECTION, chunks, decode, sections
from second_decoder import _snappy as snappy
from sectioned import CHUNKS, FRAMES, PLAIN, SNAPPY, damaged, hostile, literal, sectioned, varint

GOLDEN = Path(__file__).parents[2] / "gocore" / "reduction" / "codec" / "testdata" / "golden.txt"


def noise(at: int) -> bytes:
    """A number near one whose low bytes vary."""
    low = (at * 37, at * at * 11, at * at * at * 7 + at, 3, at * 91, 0x80, 0x3F + at % 4, 0x3F)
    return bytes(each & 255 for each in low)


def regions() -> Iterator[tuple[bytes, bytes | None]]:
    """The plain bytes and the reference of each container in the file, as the codec's own test makes them."""
    for word in (1, 2, 4, 8, 2, 2, 4, 8):
        size = 40 * word + word // 2
        squares = bytes((i // word * (i // word) * 3 + 1000) >> 8 * (i % word) & 255 for i in range(size))
        near_one = bytes(noise(i // word)[8 - word + i % word] for i in range(size))
        rough = bytes((i * i * 5 + (i >> 3)) & 255 for i in range(size))
        before = bytes((each + i) & 255 if i % 23 == 0 else each for i, each in enumerate(rough))
        for plain, reference in ((squares, None), (near_one, None), (rough, before)):
            for _ in range(6):
                yield plain, reference
    yield b"", None
    yield bytes(2 * CHUNK + 9), None


def containers() -> list[tuple[bytes, bytes, bytes | None]]:
    golden = [bytes.fromhex(line) for line in GOLDEN.read_text().split()]
    return [(container, *region) for container, region in zip(golden, regions(), strict=True)]


def test_the_first_version_of_the_codec() -> None:
    modes = set()
    for number, (container, plain, reference) in enumerate(containers()):
        assert decode(container, len(plain), reference) == plain, number
        modes |= {mode for mode, _ in chunks(container, len(plain), reference)}
    assert modes == set(range(6))


def test_what_is_damaged_is_refused() -> None:
    refused = 0
    for container, plain, reference in containers()[:144:7]:
        for bit in range(0, 8 * len(container), 11):
            bad = bytearray(container)
            bad[bit // 8] ^= 1 << bit % 8
            try:
                assert decode(bytes(bad), len(plain), reference) == plain  # bytes that a reader ignores
            except ValueError:
                refused += 1
        for short in range(0, len(container), 17):
            with pytest.raises(ValueError, match=r"container|another region"):
                decode(container[:short], len(plain), reference)
    assert refused > 1000


def test_another_region_or_reference_is_refused() -> None:
    for container, plain, reference in containers()[:144]:
        with pytest.raises(ValueError, match="another region"):
            decode(container, len(plain) + 1, reference)
        if reference is not None and container[22]:
            for other in (None, plain[:-1] + b"?", bytes(len(plain))):
                with pytest.raises(ValueError, match="reference"):
                    decode(container, len(plain), other)


LENGTHS = [0, 1, 7, 8, 9, 1000, CHUNK + 1, SECTION - 1, SECTION, SECTION + 1, 2 * SECTION + 3 * CHUNK + 5]


@pytest.mark.parametrize("word", [1, 2, 4, 8])
@pytest.mark.parametrize("forms", [(PLAIN,), (FRAMES,), (SNAPPY,), (CHUNKS,), (SNAPPY, CHUNKS, FRAMES)])
def test_sections_of_every_form(word: int, forms: tuple[int, ...]) -> None:
    if FRAMES in forms:
        pytest.importorskip("zstandard")
    rng = random.Random(word)
    pieces = [rng.randbytes(rng.choice([3, 30, 3000])) for _ in range(5)]
    seen = set()
    for length in LENGTHS:
        region = b"".join(rng.choices(pieces, k=length // 100))[: length // 2]
        region += bytes(length - len(region))
        container = sectioned(region, word, forms).sealed()
        assert decode(container, length) == region
        seen |= {form for form, _ in sections(container, length)}
        with pytest.raises(ValueError, match="another region"):
            decode(container, length + 1)
        with pytest.raises(ValueError, match="may stand here"):
            decode(container, length, versions=(1,))
    assert seen - {PLAIN} == set(forms) - {PLAIN}


def test_hostile_sections_are_refused() -> None:
    pytest.importorskip("zstandard")
    right = []
    region = random.Random(3).randbytes(70) * 30 + b"a"
    for name, container in hostile(region, 4).items():
        try:
            assert decode(container, len(region)) == region
            right.append(name)
        except ValueError:
            pass
    assert right == ["right", "an empty frame behind"]


@pytest.mark.parametrize("form", [PLAIN, FRAMES, SNAPPY, CHUNKS])
def test_every_bit_of_a_section_counts_or_is_ignored(form: int) -> None:
    """With and without a header whose hash is made right: what is decoded are the right bytes."""
    if form == FRAMES:
        pytest.importorskip("zstandard")
    region = random.Random(5).randbytes(40) * 9 + b"abc"
    if form == CHUNKS:
        region = b"a" * 300
    container = sectioned(region, 2, [form]).sealed()
    assert {form for form, _ in sections(container, len(region))} == {form}
    rng = random.Random(form)
    refused = 0
    bad = [bytearray(container) for _ in range(8 * len(container))]
    for bit, each in enumerate(bad):
        each[bit // 8] ^= 1 << bit % 8
    for each in (*map(bytes, bad), *(damaged(container, rng) for _ in range(2000))):
        try:
            assert decode(each, len(region)) == region
        except ValueError:
            refused += 1
    assert refused > 3 * len(container)
    for short in range(len(container)):
        with pytest.raises(ValueError, match=r"container|another region|may stand here"):
            decode(container[:short], len(region))


def test_blocks_of_snappy() -> None:
    """Literals and copies of every kind; these blocks were made by hand, from the format's description."""
    text = bytes(range(100))
    for block, content in (
        (b"\x00", b""),
        (b"\x01\x00a", b"a"),
        (b"\x0a\x00a\x15\x01", b"a" * 10),  # a copy that overlaps itself, with 11 bits of distance
        (b"\x0a\x00a\x22\x01\x00", b"a" * 10),  # 16 bits
        (b"\x0a\x00a\x23\x01\x00\x00\x00", b"a" * 10),  # 32 bits
        (b"\x64\xf0\x63" + text, text),  # a literal whose length has a byte of its own
        (b"\x64\xf4\x63\x00" + text, text),
        (b"\x64\xf8\x63\x00\x00" + text, text),
        (b"\x64\xfc\x63\x00\x00\x00" + text, text),
        (b"\x07\x08abc\x01\x03", b"abcabca"),
        (varint(1000) + literal(text * 8) + b"\xfe\x20\x03" * 3 + b"\x1e\x20\x03", (text * 10)[:1000]),
    ):
        assert snappy(block) == content, block
