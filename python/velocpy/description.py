"""How Python describes an array to the shim: the library that it comes from, and the memory that it shows."""

from __future__ import annotations

from typing import Any

#: Libraries of arrays, by the shim's numbers.
NUMPY, TORCH, RAW, CUPY, CUDA = 0, 1, 2, 3, 4

#: Where host memory lies; the memory of CUDA device n is place n + 1.
HOST = 0

#: (library, dtype text, address, bytes of an element, shape, strides in bytes, writable, owner, place, stream). The
#: stream is the one in whose order the memory is used, where the array names one.
Description = tuple[int, str, int, int, tuple[int, ...], tuple[int, ...], bool, Any, int, int | None]
