"""The version, in the one place that the build, the core and the package read it from."""

__version__ = "0.1.0"
