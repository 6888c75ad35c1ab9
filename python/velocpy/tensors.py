"""Tensors of torch out of a lease, and torch's element types as texts. torch is imported when a tensor is made."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from .dtypes import NATIVE, dtype_from_text, unlike
from .errors import InvalidType

if TYPE_CHECKING:
    import torch

    from . import _core

# torch's dtypes that NumPy has as well, so that one may be restored into the other.
_SHARED = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


def require_torch() -> None:
    """Refuses where torch is missing, for an array that came from there."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise InvalidType(
            "a region was a tensor of torch, which is not installed here; restore it into an array of your own: "
            "restore(key, into=…)."
        ) from error


def tensor(memory: _core.LeaseMemory, region: int) -> torch.Tensor:
    """The region of a lease as a tensor that keeps the lease alive."""
    require_torch()
    import torch

    shown = memory.tensor(region, torch.Tensor)
    if shown is not None:
        return shown
    text, itemsize, shape, strides = memory.description(region)
    dtype = torch_dtype(text, itemsize)
    flat = memory.raw(region)
    if flat.size == 0:
        return torch.empty(shape, dtype=dtype)
    elements = torch.from_numpy(flat).view(dtype)
    return elements.as_strided(shape, [stride // itemsize for stride in strides])


@lru_cache(maxsize=256)
def torch_text(dtype: torch.dtype) -> str:
    """A dtype of torch as text, from which `torch_dtype` makes the same one."""
    name = str(dtype).removeprefix("torch.")
    return np.dtype(name).str if name in _SHARED else "=" + name


@lru_cache(maxsize=256)
def torch_dtype(text: str, itemsize: int) -> torch.dtype:
    """The dtype of torch that `torch_text` wrote; another size of its elements is refused."""
    require_torch()
    import torch

    name = text[1:] if text.startswith("=") else dtype_from_text(text, itemsize).name
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or not text.startswith(("=", "|", NATIVE)):
        raise InvalidType(f"a region has the dtype {text!r:.80}, which torch {torch.__version__} does not know here.")
    if dtype.itemsize != itemsize:
        raise unlike(text, itemsize)
    return dtype
