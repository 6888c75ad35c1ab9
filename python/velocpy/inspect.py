"""The former name of `velocpy.ondisk`, which works for one version."""

from __future__ import annotations

from .deprecation import moved_module

__getattr__, __dir__ = moved_module(__name__, "velocpy.ondisk")
