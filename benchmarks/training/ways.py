"""The ways in which sharded states are saved and loaded, by their names."""

OURS = "velocpy.dcp.Writer, Stager"
DEFAULT = "FileSystemWriter, DefaultStager, all options"
BLOCKING = "FileSystemWriter, BlockingAsyncStager, cached"
READER, FILES = "velocpy.dcp.Reader", "FileSystemReader"
