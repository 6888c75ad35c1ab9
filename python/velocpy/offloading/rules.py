"""Which saved tensors stay where they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from velocpy.errors import InvalidType

#: Subclasses of torch.Tensor that are known: they stay as they are, and ``strict`` does not refuse them.
KNOWN = frozenset(
    (
        "Parameter",
        "Buffer",
        "DTensor",
        "ShardedTensor",
        "AsyncCollectiveTensor",
        "FakeTensor",
        "FunctionalTensor",
        "NestedTensor",
        "MaskedTensor",
        "SparseSemiStructuredTensor",
        "SparseSemiStructuredTensorCUTLASS",
        "SparseSemiStructuredTensorCUSPARSELT",
        "NF4Tensor",
        "Float8Tensor",
        "MXFP8Tensor",
        "AffineQuantizedTensor",
        "LinearActivationQuantizedTensor",
        "UninitializedParameter",
    )
)

_Parameter = torch.nn.Parameter
_strided = torch.strided


def is_of_parameter(tensor: torch.Tensor) -> bool:
    """Whether it is a leaf that wants a gradient, or a view of one or of a parameter: somebody else holds it anyway."""
    if tensor.requires_grad and tensor.is_leaf:
        return True
    base = tensor._base
    return base is not None and (isinstance(base, _Parameter) or (base.requires_grad and base.is_leaf))


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether its elements lie in one storage as its strides say, and mean what they are."""
    return (
        tensor.layout is _strided
        and tensor.dim() > 0
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
        and not tensor.is_nested
    )


def require_known(tensor: torch.Tensor, number: int) -> None:
    """Refuses a tensor subclass that is not known.

    Raises
    ------
    InvalidType
        Names the tensor: how many were saved before it in this context, its class, shape, dtype and device.
    """
    kind = type(tensor)
    if kind.__name__ in KNOWN or any(base.__name__ in KNOWN for base in kind.__mro__):
        return
    raise InvalidType(
        f"saved tensor {number} of this forward pass is a {kind.__module__}.{kind.__qualname__} of shape "
        f"{tuple(tensor.shape)}, {str(tensor.dtype).removeprefix('torch.')} on {tensor.device}, a subclass of "
        "torch.Tensor that velocpy does not know. Nothing was moved. Without strict=True it stays where it is."
    )


def storages_of(keep: Iterable[Any]) -> frozenset[int]:
    """The storages of modules' parameters and buffers, and of tensors, as PyTorch numbers them while they live.

    Raises
    ------
    InvalidType
    """
    found = set()
    for holder in keep:
        if isinstance(holder, torch.nn.Module):
            tensors: Iterable[torch.Tensor] = (*holder.parameters(), *holder.buffers())
        elif isinstance(holder, torch.Tensor):
            tensors = (holder,)
        else:
            raise InvalidType(f"keep= holds modules and tensors, not {type(holder).__name__}.")
        for tensor in tensors:
            local = getattr(tensor, "_local_tensor", tensor)  # of a DTensor
            if type(local) in (torch.Tensor, _Parameter) and local.layout is _strided:
                found.add(local.untyped_storage()._cdata)
    return frozenset(found)
