"""Checkpoints of torch.distributed.checkpoint (DCP) in stores of velocpy.

`Writer` and `Reader` take the places of DCP's ``FileSystemWriter`` and ``FileSystemReader``::

    writer = velocpy.dcp.Writer("/scratch/run")
    dcp.save(state_dict, storage_writer=writer, checkpoint_id="step-100")
    dcp.load(state_dict, storage_reader=velocpy.dcp.Reader("/scratch/run"), checkpoint_id="step-100")

`Stager` copies a state into pinned memory for ``dcp.async_save``, so that the training goes on while it is written.
`to_files` and `from_files` copy checkpoints between stores and DCP's own files.

Each rank has a store of its own in that directory. A checkpoint is there as a whole or not at all: it exists from the
moment in which its metadata are durable, and they come last. It can be loaded by any number of ranks, each of which
reads the parts that it asks for.
"""

from velocpy.extra import MissingExtra

try:
    import torch.distributed.checkpoint  # noqa: F401
except ImportError as error:
    raise MissingExtra("torch", "torch", "velocpy.dcp") from error

from .exchange import from_files, to_files
from .reader import Reader
from .stager import Stager
from .writer import Writer

__all__ = ["Reader", "Stager", "Writer", "from_files", "to_files"]
