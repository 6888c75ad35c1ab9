"""Strides of a tensor, which a history does not keep in all cases: kernels may round differently by them."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Layout:
    """Shape, strides and conjugation of a tensor."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    conjugated: bool

    @property
    def repeats(self) -> bool:
        """Whether elements are repeated by a stride of 0, as `torch.Tensor.expand` does."""
        return any(stride == 0 and size > 1 for size, stride in zip(self.shape, self.strides, strict=True))

    @property
    def once(self) -> tuple[int, ...]:
        """The shape without repetitions."""
        return tuple(1 if stride == 0 else size for size, stride in zip(self.shape, self.strides, strict=True))

    @property
    def overlaps(self) -> bool:
        """Whether elements that are no repetitions may share memory, as those of `torch.Tensor.unfold` do."""
        reach = 0
        for stride, size in sorted((s, n) for n, s in zip(self.once, self.strides, strict=True) if n > 1):
            if stride <= reach:
                return True
            reach += stride * (size - 1)
        return False


def layout_of(tensor: torch.Tensor) -> Layout:
    """The layout of a tensor."""
    return Layout(tuple(tensor.shape), tensor.stride(), tensor.is_conj())


def packed(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the elements to store: nothing repeated, nothing left to conjugate or negate."""
    tensor = tensor.detach()
    layout = layout_of(tensor)
    if layout.repeats:
        tensor = tensor[tuple(slice(size) for size in layout.once)]
    if layout.conjugated:
        tensor = tensor.conj()
    return tensor.resolve_neg()


def unpacked(stored: torch.Tensor, layout: Layout) -> torch.Tensor:
    """What `packed` was given, with its strides; shares the memory of ``stored`` where that has them already.

    Of tensors whose elements overlap in other ways than by repetition, the strides are not restored.
    """
    if _strides(stored) != _strides(stored, layout.strides) and not layout.overlaps:
        strided = torch.empty_strided(layout.once, layout.strides, dtype=stored.dtype, device=stored.device)
        stored = strided.copy_(stored)
    if layout.repeats:
        stored = stored.expand(layout.shape)
    return stored.conj() if layout.conjugated else stored


def _strides(tensor: torch.Tensor, strides: tuple[int, ...] | None = None) -> list[int]:
    """The strides that matter: those of dimensions with more than one element."""
    return [s for n, s in zip(tensor.shape, strides or tensor.stride(), strict=True) if n > 1]


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides."""
    return unpacked(packed(tensor).clone(), layout_of(tensor))
