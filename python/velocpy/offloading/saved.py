"""What autograd holds in place of a saved tensor, and the storage behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from velocpy.errors import SavedTensorChanged

Shape = tuple[torch.dtype, torch.Size, tuple[int, ...], int]

#: A tensor without elements of each dtype and device, whose storage takes the place of one that has left.
_nothing: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}


class View:
    """One saved tensor: a view of a storage.

    ``alias`` shares its version counter. When the storage leaves, ``alias`` is given another one, without bytes; the
    counter stays, so that a change in place is still noticed.
    """

    __slots__ = ("alias", "first", "last", "save", "shape", "version")

    def __init__(self, alias: torch.Tensor, version: int, node: int, save: int) -> None:
        self.alias = alias
        self.version = version
        #: Between these two is the number of the node that will ask for it; and its place among all saves.
        self.first = self.last = node
        self.save = save
        #: dtype, size, stride and offset, once the storage has left.
        self.shape: Shape | None = None

    def created(self, node: int) -> None:
        """The next node after the save is complete. In most cases it is the one that saved.

        PyTorch gives numbers before saves, so that the last number is that of the node that saves, if the node is one
        of PyTorch's own. A function of Python may have made other nodes meanwhile. An operation in place on a view
        wraps its node in another one. What is saved beside a node, as checkpoint() does, belongs to later nodes.
        """
        if node < self.first:
            self.first = node
        elif node > self.last:
            self.last = node

    def strip(self) -> None:
        """Lets go of the storage."""
        alias = self.alias
        if self.shape is None:
            self.shape = alias.dtype, alias.size(), alias.stride(), int(alias.storage_offset())
            kind = alias.dtype, alias.device
            nothing = _nothing.get(kind)
            if nothing is None:
                nothing = _nothing[kind] = torch.empty(0, dtype=alias.dtype, device=alias.device)
            alias.data = nothing

    def on(self, block: Block) -> torch.Tensor:
        """The tensor, as a view of the storage of a block; it stays whole when ``alias`` is stripped.

        Raises
        ------
        SavedTensorChanged
            A backward pass has changed the restored bytes in place.
        """
        if self.shape is None:
            return self.alias.detach()
        dtype, size, stride, offset = self.shape
        base = block.base_of_views()
        whole = base.numel() // dtype.itemsize * dtype.itemsize
        return base[:whole].view(dtype).as_strided(size, stride, offset)

    def reach(self) -> tuple[int, int]:
        """The bytes of the storage from the first one to behind the last one that it shows."""
        return reach_of(*self.shape) if self.shape is not None else reach(self.alias)


def reach(tensor: torch.Tensor) -> tuple[int, int]:
    """The bytes of its storage from the first one to behind the last one that a tensor shows."""
    return reach_of(tensor.dtype, tensor.size(), tensor.stride(), int(tensor.storage_offset()))


def reach_of(dtype: torch.dtype, size: torch.Size, stride: tuple[int, ...], offset: int) -> tuple[int, int]:
    """The same of a shape."""
    if 0 in size:
        return 0, 0
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    return offset * dtype.itemsize, (last + 1) * dtype.itemsize


class Remains(NamedTuple):
    """What a block that no graph needs any more leaves behind."""

    cdata: int
    nbytes: int
    on_device: bool
    leaves: bool
    #: The bytes on the device, if a copy may still use them, and what passes when it does not any more.
    storage: torch.UntypedStorage | None
    used: Any
    #: The places elsewhere, and what passes when copies have used the slot.
    slot: Any
    key: int | None
    events: tuple[Any, ...]
    origin: Any


#: What blocks have left behind; of one that has never been sent the number of its storage, and its bytes.
Graves = deque[Remains | tuple[int, int]]


class Block:
    """A storage of which autograd saved one view or several. It lives as long as they do.

    Its fields are written with the lock of its context held. The finaliser may run in any thread, within that lock too:
    it only appends to the graves of its space.
    """

    # Fields that most blocks never write have their first values in the class, which makes a block cheaper.

    #: Keeps PyTorch from giving the number of the first storage to another one.
    origin: Any = None
    #: Passes when the bytes have been read from the device; None: they have never left, or that is long ago.
    sent: Any = None
    #: Passes when the bytes are on the device again; None: they never left, or ``stream`` is behind that.
    arriving: Any = None
    #: Passes when the slot has been read for the last time; streams that use the restored bytes wait for it.
    reading: Any = None
    #: Where the bytes lie in pinned host memory, and their key in the history.
    slot: Any = None
    key: int | None = None
    #: All restored bytes; its views are those that backward passes get, and share its version.
    base: Any = None
    base_version = 0
    #: Whether it has been sent; whether it leaves: its source goes when ``sent`` has passed.
    away = False
    leaves = False
    #: Whether this backward pass has asked for it, and may drop it.
    asked = False
    #: For how many coming requests of this backward pass the bytes stay on the device; the node of the last request.
    ahead = 0
    asked_by = -1
    #: Whether no tier had room for it.
    stuck = False

    def __init__(
        self,
        storage: torch.UntypedStorage,
        nbytes: int,
        cdata: int,
        ordinal: int,
        generation: int,
        stream: Any,
        space: Any,
        view: View,
    ) -> None:
        #: The bytes on the device; None while they are elsewhere only.
        self.storage: torch.UntypedStorage | None = storage
        self.nbytes = nbytes
        #: Numbers of the storage that autograd saved, and of the one that has its bytes now if that is another one.
        self.cdata: tuple[int, ...] = (cdata,)
        self.ordinal = ordinal
        self.generation = generation
        #: The stream in whose order the allocator reuses the memory of ``storage``.
        self.stream = stream
        #: The blocks of its device, a `velocpy.offloading.space.Space`.
        self.space = space
        self.views = [view]

    def strip(self) -> None:
        """Lets go of the bytes on the device."""
        for view in self.views:
            view.strip()
        self.storage = self.base = None

    def base_of_views(self) -> torch.Tensor:
        """The restored bytes as a tensor.

        Raises
        ------
        SavedTensorChanged
        """
        base: torch.Tensor
        if self.base is None:
            assert self.storage is not None
            base = self.base = torch.empty(0, dtype=torch.uint8, device=self.storage.device).set_(self.storage)
            self.base_version = base._version
            return base
        base = self.base
        if base._version != self.base_version:
            raise SavedTensorChanged(
                "a tensor that autograd saved was changed in place by a backward pass that had got it, and another "
                "operation asks for the same storage. Gradients would be wrong; nothing was computed from it. Clone "
                "saved tensors before they are changed in a backward pass."
            )
        return base

    @property
    def saves(self) -> Iterator[tuple[int, int, int]]:
        """For each save the least and the greatest number that its node may have, and its place among all saves."""
        return ((view.first, view.last, view.save) for view in self.views)

    @property
    def restored(self) -> bool:
        """Whether the bytes on the device are not those of the storage that autograd saved."""
        return len(self.cdata) > 1

    @property
    def used(self) -> Any:
        """Passes when no copy uses the bytes on the device any more, beyond the order of ``stream``."""
        return self.arriving if self.restored else self.sent

    def __del__(self) -> None:
        if not self.away:
            self.space.graves.append((self.cdata[0], self.nbytes))
            return
        used = self.used
        self.space.graves.append(
            Remains(
                self.cdata[0],
                self.nbytes,
                self.storage is not None,
                self.leaves,
                None if used is None else self.storage,
                used,
                self.slot,
                self.key,
                tuple(event for event in (self.sent, self.reading) if event is not None),
                self.origin,
            )
        )


def require_unchanged(alias: torch.Tensor, version: int) -> None:
    """Refuses a tensor that was changed in place after autograd saved it.

    Raises
    ------
    SavedTensorChanged
    """
    if version >= 0 and alias._version != version:
        raise SavedTensorChanged(
            "a tensor that autograd saved for the backward pass was changed in place afterwards: a "
            f"{str(alias.dtype).removeprefix('torch.')} on {alias.device} is at version {alias._version}, and was "
            f"saved at version {version}. Gradients would be wrong; nothing was computed from it. Clone the tensor "
            "before it is changed. torch.autograd.set_detect_anomaly(True) tells the operation that saved it."
        )
