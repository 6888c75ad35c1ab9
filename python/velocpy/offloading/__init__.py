"""Offload of the tensors that autograd saves: from a device to pinned host memory and to disk, and back in time.

`velocpy.offload` is a context manager for the forward pass. One storage is moved once, however many
views of it are saved. The modules, one idea each:

- `rules`: which tensors stay where they are;
- `saved`: what autograd holds in place of a tensor, and the storage behind it;
- `residency`: how many bytes stay on the device, and which storages have to go;
- `order`: in which order the backward pass will ask for them;
- `slab`: pinned host memory, and its room;
- `transfer`: copies on CUDA streams, and checkpoints of a store;
- `space`: the storages of one device, from the save to the last use;
- `context`: the context manager.
"""

from importlib.util import find_spec

from velocpy.extra import MissingExtra

if find_spec("torch") is None:
    raise MissingExtra("torch", "torch", "velocpy.offload")

from .context import offload

__all__ = ["offload"]
