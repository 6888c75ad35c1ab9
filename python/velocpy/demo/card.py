"""The CUDA device that a backend computes on, as torch and CuPy know it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import velocpy

#: The budgets of a store that is only to tell whether the device can be used.
LITTLE = 4 << 20


@dataclass(frozen=True)
class Card:
    """One device, behind the few words in which libraries differ; its work goes to the library's current stream."""

    number: int
    #: Bytes that nobody uses.
    free: Callable[[], int]
    #: Gives what the library keeps for later back to the device.
    give_back: Callable[[], None]
    #: Waits for the current stream.
    finish: Callable[[], None]
    #: A stream of its own, current within and ordered with what comes before and after; gives its handle.
    stream: Callable[[], AbstractContextManager[int]]
    #: Where an array begins.
    address: Callable[[Any], int]


def number_of(device: str) -> int:
    """The number of a device.

    Examples
    --------
    >>> number_of("cuda"), number_of("cuda:1")
    (0, 1)
    """
    return int(device.partition(":")[2] or 0)


def torch_card(number: int) -> Card:
    """A device for torch.

    Raises
    ------
    TierUnavailable
        When velocpy or torch cannot use it; the message says why.
    """
    import torch

    _reach(number)
    if torch.cuda.device_count() <= number:
        raise _unreached("torch", torch.__version__, number)
    place = torch.device("cuda", number)

    @contextmanager
    def stream() -> Iterator[int]:
        around, own = torch.cuda.current_stream(place), torch.cuda.Stream(place)  # type: ignore[no-untyped-call]
        own.wait_stream(around)
        with torch.cuda.stream(own):
            yield int(own.cuda_stream)
        around.wait_stream(own)

    return Card(
        number=number,
        free=lambda: int(torch.cuda.mem_get_info(place)[0]),
        give_back=torch.cuda.empty_cache,
        finish=lambda: torch.cuda.current_stream(place).synchronize(),
        stream=stream,
        address=lambda array: int(array.data_ptr()),
    )


def cupy_card(number: int) -> Card:
    """A device for CuPy, which from now on is its current one; raises as `torch_card`."""
    import cupy

    _reach(number)
    runtime = cupy.cuda.runtime
    try:
        runtime.setDevice(number)
    except runtime.CUDARuntimeError:
        raise _unreached("cupy", cupy.__version__, number) from None

    @contextmanager
    def stream() -> Iterator[int]:
        around, own = cupy.cuda.get_current_stream(), cupy.cuda.Stream(non_blocking=True)
        own.wait_event(around.record())
        with own:
            yield int(own.ptr)
        around.wait_event(own.record())

    return Card(
        number=number,
        free=lambda: int(runtime.memGetInfo()[0]),
        give_back=lambda: cupy.get_default_memory_pool().free_all_blocks(),
        finish=lambda: cupy.cuda.get_current_stream().synchronize(),
        stream=stream,
        address=lambda array: int(array.data.ptr),
    )


def _reach(number: int) -> None:
    """Raises what keeps velocpy from the device: the driver, its version, or a number that no device has."""
    velocpy.open(device={number: LITTLE}, host=LITTLE, disk=None).close()


def _unreached(library: str, version: str, number: int) -> velocpy.errors.TierUnavailable:
    return velocpy.errors.TierUnavailable(
        f"{library} {version} does not find device {number}, which the driver has: install {library} built for CUDA.",
        tier="device",
    )
