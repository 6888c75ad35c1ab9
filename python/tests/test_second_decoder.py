"""Containers can be decoded by who knows nothing but docs/reduction-format.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from second_decoder import CHUNK, chunks, decode

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
