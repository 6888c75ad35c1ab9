"""A second reader of encoded regions, written from docs/reduction-format.md alone: what it finds wrong is an error."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import xxhash
from catalog import Fields

CHUNK, SECTION = 16384, 262144
#: Bits of the exponent of the kinds of floats, by the bytes of a word; 0 stands for integers.
KINDS = {1: (0,), 2: (0, 5, 8), 4: (0, 8), 8: (0, 11)}
RAW, CONST, DIFF, EXP, XRZ, STEP = range(6)
#: The forms of sections.
PLAIN, FRAMES, SNAPPY, CHUNKS = range(4)
#: Length of the tables for each chunk, or section, by the container's version.
ENTRIES = {1: 11, 2: 13}
#: Of the kinds of floats: bytes of the arrays of significand bits, and the number of rest planes.
SIGNIFICANDS = {(2, 5): ((1,), 3), (2, 8): ((1,), 0), (4, 8): ((2, 1), 0), (8, 11): ((4, 2), 5)}

Words = np.ndarray[Any, np.dtype[np.uint64]]


def decode(container: bytes, plain: int, reference: bytes | None = None, versions: tuple[int, ...] = (1, 2)) -> bytes:
    """The region of a container of one of some versions, whose length is known."""
    if version(container) not in versions:
        raise ValueError("no container of a version that may stand here")
    if version(container) == 2:
        return b"".join(section for _, section in sections(container, plain))
    return b"".join(chunk for _, chunk in chunks(container, plain, reference))


def version(container: bytes) -> int:
    """The one that a container says."""
    if len(container) < 64 or container[:8] != b"VELOCFC\0":
        raise ValueError("no container")
    return int.from_bytes(container[16:20], "little")


def chunks(container: bytes, plain: int, reference: bytes | None = None) -> Iterator[tuple[int, bytes]]:
    """Mode and plain bytes of each chunk of a container of version 1."""
    kind, flags, at = _header(container, 1, plain, CHUNK)
    count = -(-plain // CHUNK)
    hashes = struct.unpack_from(f"<{count}Q", container, 64)
    lengths = struct.unpack_from(f"<{count}H", container, 64 + 8 * count)
    modes = container[64 + 10 * count : 64 + 11 * count]
    if flags != any(mode in (XRZ, STEP) for mode in modes):
        raise ValueError("the flags are not those of the modes")
    for number, payload in enumerate(_payloads(container, at, lengths)):
        here = slice(number * CHUNK, min(plain, (number + 1) * CHUNK))
        before = None if reference is None else reference[here]
        found = _chunk(payload, modes[number], here.stop - here.start, kind, before)
        if xxhash.xxh3_64_intdigest(found) != hashes[number]:
            raise ValueError(f"chunk {number} is not what was encoded")
        yield modes[number], found


def sections(container: bytes, plain: int) -> Iterator[tuple[int, bytes]]:
    """Form and plain bytes of each section of a container of version 2."""
    (word, _), flags, at = _header(container, 2, plain, SECTION)
    count = -(-plain // SECTION)
    hashes = struct.unpack_from(f"<{count}Q", container, 64)
    lengths = struct.unpack_from(f"<{count}I", container, 64 + 8 * count)
    forms = container[64 + 12 * count : 64 + 13 * count]
    if flags:
        raise ValueError("flags that sections do not have")
    for number, payload in enumerate(_payloads(container, at, lengths)):
        size = min(SECTION, plain - number * SECTION)
        found = _section(payload, forms[number], size, word)
        if xxhash.xxh3_64_intdigest(found) != hashes[number]:
            raise ValueError(f"section {number} is not what was encoded")
        yield forms[number], found


def _header(container: bytes, wanted: int, plain: int, step: int) -> tuple[tuple[int, int], int, int]:
    """Kind, flags, and where the first payload begins, of a container of a version with so many bytes in an entry."""
    if len(container) < 64:
        raise ValueError("no container")
    magic, head_sum, said, word, exponent, flags, length, count, total = struct.unpack_from("<8sQIBBH3Q", container)
    if magic != b"VELOCFC\0" or said != wanted or exponent not in KINDS.get(word, ()):
        raise ValueError("no container, or one of a later version")
    if (length, count, total) != (plain, -(-plain // step), len(container)):
        raise ValueError("a container of another region")
    at = _aligned(64 + ENTRIES[wanted] * count)
    if at > total or xxhash.xxh3_64_intdigest(container[16:at]) != head_sum:
        raise ValueError("a damaged header, or damaged tables")
    return (word, exponent), flags, at


def _payloads(container: bytes, at: int, lengths: tuple[int, ...]) -> Iterator[bytes]:
    """The payloads of so many bytes, of which the first one begins at an offset."""
    if at + sum(map(_aligned, lengths)) != len(container):
        raise ValueError("the payloads are not as long as the container")
    for length in lengths:
        yield container[at : at + length]
        at += _aligned(length)


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


def _section(payload: bytes, form: int, size: int, word: int) -> bytes:
    if form > CHUNKS or len(payload) > size:
        raise ValueError("a payload that cannot be")
    if form == PLAIN:
        if len(payload) != size:
            raise ValueError("plain bytes of another length")
        return payload
    if form == CHUNKS:
        return decode(payload, size, versions=(1,))
    planes = _frames(payload, size) if form == FRAMES else _snappy(payload)
    if len(planes) != size:
        raise ValueError("planes of another length")
    whole = size // word * word
    return np.frombuffer(planes[:whole], np.uint8).reshape(word, -1).T.tobytes() + planes[whole:]


def _frames(payload: bytes, size: int) -> bytes:
    """The content of frames of Zstandard, at most a byte more than a size."""
    import zstandard  # most stores are read without it

    found, at = b"", 0
    while at < len(payload):
        end = _frame_end(payload, at)
        try:
            reader = zstandard.ZstdDecompressor(max_window_size=SECTION).stream_reader(payload[at:end])
            found += reader.read(size - len(found) + 1)
        except zstandard.ZstdError as error:
            raise ValueError("a damaged frame") from error
        if len(found) > size:
            raise ValueError("frames with too many bytes")
        at = end
    return found


def _frame_end(payload: bytes, at: int) -> int:
    """Where the frame of Zstandard ends that begins at an offset: section 3.1.1 of RFC 8878."""
    body = Fields(payload)
    body.at = at
    magic, descriptor = body.numbers("IB")
    if magic != 0xFD2FB528 or descriptor & 8:
        raise ValueError("no frame")
    single = descriptor >> 5 & 1
    window = 0 if single else body.take(1)[0]
    if any(body.take((0, 1, 2, 4)[descriptor & 3])):
        raise ValueError("a frame with a dictionary")
    size = int.from_bytes(body.take((single, 2, 4, 8)[descriptor >> 6]), "little") + 256 * (descriptor >> 6 == 1)
    if not single:
        size = (8 + (window & 7)) << 7 + (window >> 3)
    if size > SECTION:
        raise ValueError("a frame with a window of too many bytes")
    last = 0
    while not last:
        block = int.from_bytes(body.take(3), "little")
        last, kind = block & 1, block >> 1 & 3
        body.take(1 if kind == 1 else block >> 3)
    body.take(descriptor & 4)
    return body.at


def _snappy(payload: bytes) -> bytes:
    """The content of a block of Snappy."""
    body = Fields(payload)
    size, shift = 0, 0
    while shift < 35:
        byte = body.take(1)[0]
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if size > SECTION or byte > 127:
        raise ValueError("a block of too many bytes")
    found = bytearray()
    while body.at < len(payload):
        tag = body.take(1)[0]
        kind, length = tag & 3, (tag >> 2) + 1
        if kind == 0:
            if length > 60:
                length = int.from_bytes(body.take(length - 60), "little") + 1
            found += body.take(length)
        else:
            if kind == 1:
                length = (tag >> 2 & 7) + 4
                offset = (tag >> 5) << 8 | body.take(1)[0]
            else:
                offset = int.from_bytes(body.take(2 if kind == 2 else 4), "little")
            if not 0 < offset <= len(found):
                raise ValueError("a copy of bytes that are not there")
            begin = len(found) - offset
            piece = bytes(found[begin : begin + length])
            found += (piece * -(-length // len(piece)))[:length]
        if len(found) > size:
            raise ValueError("a block with more bytes than it says")
    if len(found) != size:
        raise ValueError("a block with fewer bytes than it says")
    return bytes(found)
