"""The array library a sweep computes with: NumPy, or torch on any of its devices."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from velocpy.extra import MissingExtra

#: An array of the backend's library. The solver uses only what NumPy and torch spell alike.
Array = Any
Field = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Backend:
    """One array library and one device, behind the few words in which libraries differ.

    ``xp`` has ``add``, ``subtract`` and ``multiply`` with ``out=``; arrays slice, and take ``+=``, as in NumPy.
    """

    name: str
    device: str
    xp: Any
    array: Callable[[Field], Array]
    zeros: Callable[[tuple[int, ...]], Array]
    numpy: Callable[[Array], Field]
    #: The array where the CPU can read it, and back to where the backend computes; on the CPU the array itself.
    to_host: Callable[[Array], Array]
    from_host: Callable[[Array], Array]
    finish: Callable[[], None]
    #: Cells worked on at once: a piece that stays in a core's cache. 0: all of them.
    block: int


def _itself(array: Array) -> Array:
    return array


def numpy_backend() -> Backend:
    """NumPy on the CPU; every array is float32."""
    return Backend(
        name="numpy",
        device="cpu",
        xp=np,
        array=lambda field: np.array(field, dtype=np.float32),
        zeros=lambda shape: np.zeros(shape, dtype=np.float32),
        numpy=np.asarray,
        to_host=_itself,
        from_host=_itself,
        finish=lambda: None,
        block=32768,
    )


def torch_backend(device: str = "cpu") -> Backend:
    """Torch on ``device``; imports torch, and raises `MissingExtra` without it.

    On the CPU it limits torch to half of the cores: threads that wait for each other at every operation lose more to
    whoever shares the cores with them, a store's transfers for one, than they gain.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "torch", "the torch backend") from None

    place = torch.device(device)
    if place.type == "cpu":
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))

    def finish() -> None:
        if place.type == "cuda":
            torch.cuda.synchronize(place)

    return Backend(
        name="torch",
        device=device,
        xp=torch,
        array=lambda field: torch.tensor(field, dtype=torch.float32, device=place),
        zeros=lambda shape: torch.zeros(shape, dtype=torch.float32, device=place),
        numpy=lambda array: np.asarray(array.detach().cpu().numpy(), dtype=np.float32),
        to_host=lambda array: array.cpu(),
        from_host=lambda array: array.to(place),
        finish=finish,
        block=32768 if place.type == "cpu" else 0,
    )


def backend_named(name: str, device: str = "cpu") -> Backend:
    """The backend called ``name`` ("numpy" or "torch").

    Raises
    ------
    ValueError
        For another name.
    """
    if name == "torch":
        return torch_backend(device)
    if name != "numpy":
        raise ValueError(f"no backend {name!r}: 'numpy' or 'torch'")
    return numpy_backend()
