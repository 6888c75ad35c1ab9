"""Host memory that CUDA knows at its exact size: PyTorch's own is rounded up to a power of two for each tensor.

Importing this module imports PyTorch.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import torch

#: cudaHostRegisterPortable: the memory counts as pinned for all devices of the process.
_PORTABLE = 1


def mapped(nbytes: int) -> mmap.mmap:
    """New memory, of huge pages where the kernel has them.

    Raises
    ------
    OSError
        A limit of the process or of the system.
    """
    memory = mmap.mmap(-1, max(nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # kernels without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def keep_from_children(memory: mmap.mmap) -> None:
    """Leaves memory out of children of fork(), which would get copies of all pinned pages at once."""
    with suppress(OSError):  # a kernel without that advice
        memory.madvise(mmap.MADV_DONTFORK)


def register(address: int, nbytes: int, device: torch.device) -> int:
    """Registers memory with CUDA, for copies that run beside the host. Returns CUDA's error, 0 if it is registered."""
    with torch.cuda.device(device):  # otherwise this thread would make a context on device 0
        failure = int(_runtime().cudaHostRegister(address, nbytes, _PORTABLE))
    if failure:
        with suppress(RuntimeError):  # the next launch of a kernel, this one, reports the failure again
            torch.zeros(1, device=device)
    return failure


def unregister(address: int, device: torch.device) -> None:
    """Ends that, before the memory is unmapped: it would stay registered."""
    with torch.cuda.device(device):
        _runtime().cudaHostUnregister(address)


def _runtime() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]
