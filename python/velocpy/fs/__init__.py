"""A file system of fsspec in stores of velocpy, so that a path alone suffices: ``velocpy:///scratch/run.velocpy/a/b``.

Everything that takes a URL of fsspec writes and reads there without a change::

    dcp.save(state, checkpoint_id="velocpy:///scratch/run.velocpy/step-100")
    with fsspec.open("velocpy:///scratch/run.velocpy/model.pt", "wb") as file:
        torch.save(model.state_dict(), file)
    frame.to_parquet("velocpy:///scratch/run.velocpy/losses.parquet")

**URL.** The first part of the path that ends in ``.velocpy``, and is more than that, is the store's directory. The rest
is the file's name inside. A path that does not begin with ``/`` begins in the working directory.

**Files.** A file is one checkpoint in the history "files" of a store. Its key is its name, its only region, "bytes",
its bytes. A file that is written becomes visible as a whole when it is closed, and takes the place of the former one
then. Directories are there as long as there is something in them, or as `mkdir` made them.

**Several processes.** One process writes to a store of velocpy. So each process that writes has a store of its own in
the directory: ``writer-00000``, ``writer-00001`` and so on. A process begins to look at the number of its rank
(``RANK``, or as MPI or Slurm say it, else 0) and takes the first store that no other process has open. All processes
read all of these stores. Of several files of one name the one that was written last counts, and of two that were
written at the same nanosecond that in the store of the higher number. A process that replaces or removes a file that it
sees always counts as later, whatever the clocks of the machines say.

A file in the store of another process is removed by a mark in the store of this one. Its bytes are freed when a process
opens that store to write again, or by `VelocFileSystem.sweep`.

**Speed.** This is a stream of bytes through Python: a framework copies its tensors to host memory and serialises them
first. `velocpy.dcp.Writer` and `velocpy.History` take arrays from where they are, devices included, and are faster.
"""

from velocpy.extra import MissingExtra

try:
    import fsspec  # noqa: F401
except ImportError as error:
    raise MissingExtra("fsspec", "fsspec", "velocpy.fs") from error

from .system import VelocFileSystem

__all__ = ["VelocFileSystem"]
