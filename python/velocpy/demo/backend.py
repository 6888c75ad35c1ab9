"""The array library a sweep computes with: NumPy, or torch and CuPy on a CUDA device, torch also on the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from velocpy.extra import MissingExtra, MissingLibrary

from .card import Card, cupy_card, number_of, torch_card

#: An array of the backend's library. The solver uses only what NumPy, torch and CuPy spell alike.
Array = Any
Field = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Backend:
    """One array library and one device, behind the few words in which libraries differ.

    ``xp`` has ``add``, ``subtract`` and ``multiply`` with ``out=``; arrays slice, and take ``+=``, as in NumPy. Nothing
    that the solver uses depends on the order in which a device does its work: the same program gives the same bits.
    """

    name: str
    device: str
    xp: Any
    array: Callable[[Field], Array]
    zeros: Callable[[tuple[int, ...]], Array]
    numpy: Callable[[Array], Field]
    #: Whether two arrays of float32 are the same bits, compared where they lie.
    same: Callable[[Array, Array], bool]
    finish: Callable[[], None]
    #: Cells worked on at once: a piece that stays in a core's cache. 0: all of them.
    block: int
    #: The CUDA device, or None on the CPU.
    card: Card | None = None


def numpy_backend() -> Backend:
    """NumPy on the CPU; every array is float32."""
    return Backend(
        name="numpy",
        device="cpu",
        xp=np,
        array=lambda field: np.array(field, dtype=np.float32),
        zeros=lambda shape: np.zeros(shape, dtype=np.float32),
        numpy=np.asarray,
        same=lambda one, other: bool((one.view(np.int32) == other.view(np.int32)).all()),
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

    card = None if device == "cpu" else torch_card(number_of(device))
    place = torch.device("cpu") if card is None else torch.device("cuda", card.number)
    if card is None:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    return Backend(
        name="torch",
        device=str(place),
        xp=torch,
        array=lambda field: torch.tensor(field, dtype=torch.float32, device=place),
        zeros=lambda shape: torch.zeros(shape, dtype=torch.float32, device=place),
        numpy=lambda array: np.asarray(array.detach().cpu().numpy(), dtype=np.float32),
        same=lambda one, other: torch.equal(one.view(torch.int32), other.view(torch.int32)),
        finish=(lambda: None) if card is None else card.finish,
        block=32768 if card is None else 0,
        card=card,
    )


def cupy_backend(device: str = "cuda") -> Backend:
    """CuPy on a CUDA device; imports it, and raises `MissingLibrary` without it."""
    try:
        import cupy
    except ImportError:
        raise MissingLibrary("cupy", "the cupy backend", "pip install cupy-cuda13x") from None

    card = cupy_card(number_of(device))
    return Backend(
        name="cupy",
        device=f"cuda:{card.number}",
        xp=cupy,
        array=lambda field: cupy.array(field, dtype=cupy.float32),
        zeros=lambda shape: cupy.zeros(shape, dtype=cupy.float32),
        numpy=lambda array: np.asarray(cupy.asnumpy(array), dtype=np.float32),
        same=lambda one, other: bool((one.view(cupy.int32) == other.view(cupy.int32)).all()),
        finish=card.finish,
        block=0,
        card=card,
    )


def backend_named(name: str, device: str = "cpu") -> Backend:
    """The backend called ``name`` ("numpy", "torch" or "cupy").

    Raises
    ------
    ValueError
        For another name.
    """
    if name == "torch":
        return torch_backend(device)
    if name == "cupy":
        return cupy_backend(device)
    if name != "numpy":
        raise ValueError(f"no backend {name!r}: 'numpy', 'torch' or 'cupy'")
    return numpy_backend()
