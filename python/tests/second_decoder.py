"""A second reader of encoded regions, written from docs/reduction-format.md alone: what it finds wrong is an error."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import xxhash
from catalog import Fields

CHUNK = 16384
#: Bits of the exponent of the kinds of floats, by the bytes of a word; 0 stands for integers.
KINDS = {1: (0,), 2: (0, 5, 8), 4: (0, 8), 8: (0, 11)}
RAW, CONST, DIFF, EXP, XRZ, STEP = range(6)
#: Of the kinds of floats: bytes of the arrays of significand bits, and the number of rest planes.
SIGNIFICANDS = {(2, 5): ((1,), 3), (2, 8): ((1,), 0), (4, 8): ((2, 1), 0), (8, 11): ((4, 2), 5)}

Words = np.ndarray[Any, np.dtype[np.uint64]]


def decode(container: bytes, plain: int, reference: bytes | None = None) -> bytes:
    """The region of a container, whose length is known."""
    return b"".join(chunk for _, chunk in chunks(container, plain, reference))


def chunks(container: bytes, plain: int, reference: bytes | None = None) -> Iterator[tuple[int, bytes]]:
    """Mode and plain bytes of each chunk of a container."""
    if len(container) < 64:
        raise ValueError("no container")
    magic, head_sum, version, word, exponent, flags, length, count, total = struct.unpack_from("<8sQIBBH3Q", container)
    if magic != b"VELOCFC\0" or version != 1 or exponent not in KINDS.get(word, ()):
        raise ValueError("no container, or one of a later version")
    if (length, count, total) != (plain, -(-plain // CHUNK), len(container)):
        raise ValueError("a container of another region")
    at = _aligned(64 + 11 * count)
    if at > total or xxhash.xxh3_64_intdigest(container[16:at]) != head_sum:
        raise ValueError("a damaged header, or damaged tables")
    hashes = struct.unpack_from(f"<{count}Q", container, 64)
    lengths = struct.unpack_from(f"<{count}H", container, 64 + 8 * count)
    modes = container[64 + 10 * count : 64 + 11 * count]
    if flags != any(mode in (XRZ, STEP) for mode in modes):
        raise ValueError("the flags are not those of the modes")
    if at + sum(map(_aligned, lengths)) != total:
        raise ValueError("the payloads are not as long as the container")
    for number in range(count):
        here = slice(number * CHUNK, min(plain, (number + 1) * CHUNK))
        before = None if reference is None else reference[here]
        payload = container[at : at + lengths[number]]
        found = _chunk(payload, modes[number], here.stop - here.start, (word, exponent), before)
        if xxhash.xxh3_64_intdigest(found) != hashes[number]:
            raise ValueError(f"chunk {number} is not what was encoded")
        yield modes[number], found
        at += _aligned(lengths[number])


def _aligned(size: int) -> int:
    return -(-size // 16) * 16


def _chunk(payload: bytes, mode: int, size: int, kind: tuple[int, int], reference: bytes | None) -> bytes:
    word = kind[0]
    count, tail = size // word, size % word
    if mode == RAW:
        if len(payload) != size:
            raise ValueError("raw bytes of another length")
        return payload
    if mode > STEP or not count or len(payload) < tail or len(payload) > size:
        raise ValueError("a payload that cannot be")
    body = Fields(payload[: len(payload) - tail])
    if mode == CONST:
        words = np.repeat(_words(body.take(word), word), count)
    elif mode == DIFF:
        words = _differences(body, count, word)
    elif mode == EXP:
        words = _exponents(body, count, kind)
    else:
        words = _changes(body, mode, count, word, reference)
    body.end()
    return words.astype(f"<u{word}").tobytes() + payload[len(payload) - tail :]


def _words(data: bytes, size: int) -> Words:
    return np.frombuffer(data, f"<u{size}").astype(np.uint64)


def _planes(body: Fields, count: int, block: int) -> Words:
    """The words of a block from its planes 0 to count - 1."""
    words = np.zeros(block, np.uint64)
    for plane in range(count):
        bits = np.unpackbits(np.frombuffer(body.take(block // 8), np.uint8), bitorder="little")
        words |= bits.astype(np.uint64) << np.uint64(plane)
    return words


def _unfolded(folded: Words) -> Words:
    """Differences that were stored zig-zag, modulo 2^64."""
    return (folded >> np.uint64(1)) ^ (np.uint64(0) - (folded & np.uint64(1)))


def _widths(body: Fields, count: int) -> list[int]:
    groups = -(-count // 32)
    planes = body.take(groups)
    body.take(-groups % 4)
    if any(each > 8 for each in planes):
        raise ValueError("a group of widths with too many planes")
    folded = np.concatenate([_planes(body, each, 32) for each in planes])
    if any(folded[count:]):
        raise ValueError("widths behind the last block")
    return [int(width) & 255 for width in np.cumsum(_unfolded(folded[:count]))]


def _differences(body: Fields, count: int, word: int) -> Words:
    first = _words(body.take(max(4, word))[:word], word)[0]
    (order,) = body.numbers("I")
    if order not in (1, 2):
        raise ValueError("differences of another order")
    block = 32 if word <= 2 else 8
    widths = _widths(body, -(-count // block))
    if any(width > 8 * word for width in widths):
        raise ValueError("a block with too many planes")
    folded = np.concatenate([_planes(body, width, block) for width in widths])
    if any(folded[count:]):
        raise ValueError("differences behind the last word")
    changes = _unfolded(folded[:count])
    for _ in range(order):
        changes = np.cumsum(changes, dtype=np.uint64)
    return first + changes


def _exponents(body: Fields, count: int, kind: tuple[int, int]) -> Words:
    word, exponent_bits = kind
    arrays, rest = SIGNIFICANDS[kind]
    base, bits = body.numbers("HB")
    body.zero("B")
    if not 1 <= bits <= 4 or base + (1 << bits) > 1 << exponent_bits:
        raise ValueError("codes that cannot be")
    groups = -(-count // 32)
    codes, high = [], []
    for _ in range(groups):
        codes.append(_planes(body, bits, 32))
        high.append(_planes(body, rest, 32))
    code = np.concatenate(codes)
    significand, shift = np.zeros(32 * groups, np.uint64), 0
    for size in arrays:
        significand |= _words(body.take(32 * groups * size), size) << np.uint64(shift)
        shift += 8 * size
    significand |= np.concatenate(high) << np.uint64(shift)
    if any(code[count:]) or any(significand[count:]):
        raise ValueError("words behind the last one")
    code, significand = code[:count], significand[:count]
    escaped = code == (1 << bits) - 1
    exponent = code + np.uint64(base)
    size = 2 if word == 8 else 1
    exponent[escaped] = _words(body.take(size * int(escaped.sum())), size)
    if any(exponent >> np.uint64(exponent_bits)):
        raise ValueError("an exponent that cannot be")
    mantissa = 8 * word - 1 - exponent_bits
    sign = significand >> np.uint64(mantissa)
    low = significand & np.uint64((1 << mantissa) - 1)
    return sign << np.uint64(8 * word - 1) | exponent << np.uint64(mantissa) | low


def _changes(body: Fields, mode: int, count: int, word: int, reference: bytes | None) -> Words:
    (told,) = body.numbers("I")
    body.zero("I")
    if reference is None or xxhash.xxh3_64_intdigest(reference) & 0xFFFFFFFF != told:
        raise ValueError("no reference, or another one")
    before = _words(reference[: count * word], word)
    if mode == STEP:
        return before + _differences(body, count, word)
    (forms,) = body.numbers("H")
    body.zero("H")
    if forms >> 2 * word:
        raise ValueError("forms of planes that are not there")
    changed = np.zeros(count, np.uint64)
    for plane in range(word):
        form = forms >> 2 * plane & 3
        if form == 3:
            raise ValueError("a plane of another form")
        if form:
            data = body.take(count) if form == 1 else _sparse(body, count)
            changed |= _words(data, 1) << np.uint64(8 * plane)
    return before ^ changed


def _sparse(body: Fields, count: int) -> bytes:
    sizes = [count]
    for _ in range(3):
        sizes.append(-(-sizes[-1] // 8))
    level = body.take(sizes[3])
    for size in sizes[2::-1]:
        bits = np.unpackbits(np.frombuffer(level, np.uint8), bitorder="little")
        if any(bits[size:]):
            raise ValueError("bits behind the end of a list")
        listed = np.zeros(size, np.uint8)
        listed[bits[:size] == 1] = np.frombuffer(body.take(int(bits.sum())), np.uint8)
        level = listed.tobytes()
    return level
