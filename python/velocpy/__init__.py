"""velocpy keeps the history of a computation across memory and disk and brings it back in the order it is needed in.

Examples
--------
>>> import numpy, velocpy
>>> with velocpy.open(host="64MiB", disk="256MiB") as store:
...     forward = store.history("forward")
...     forward.hint(reversed(range(4)))
...     for i in range(4):
...         _ = forward.checkpoint(i, u=numpy.full(3, i))
...     [state["u"].sum().item() for _, state in forward.restore_iter(last=True)]
[9, 6, 3, 0]
"""

from __future__ import annotations

import json as _json
from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import _core, knobs
from ._version import __version__
from .errors import *  # noqa: F403
from .errors import __all__ as _errors
from .plan import Advance, Drop, Last, Plan, Restore
from .simulate import simulate

if _TYPE_CHECKING:
    from .lease import Lease
    from .store import History, Store, open, stores  # noqa: A004
    from .ticket import Ticket

#: What needs NumPy comes when it is asked for: commands that look at a store, and need none, start in half the time.
_LATER = {
    "open": "store",
    "stores": "store",
    "Store": "store",
    "History": "store",
    "Ticket": "ticket",
    "Lease": "lease",
}

__all__ = [
    "open",
    "stores",
    "Store",
    "History",
    "Ticket",
    "Lease",
    "Plan",
    "Restore",
    "Last",
    "Drop",
    "Advance",
    "simulate",
    "build_info",
    "__version__",
]
__all__ += _errors


def build_info() -> dict[str, _Any]:
    """Versions of the package, the shim and the core, and where core and GPU kernels lie; loads the core.

    ``kernels_path`` is None in a build without GPU kernels (VELOCPY_CUDA=0).

    Examples
    --------
    >>> import velocpy
    >>> velocpy.build_info()["version"] == velocpy.__version__
    True
    """
    knobs.load_core()
    kernels = knobs.kernels_path()
    return {
        "version": __version__,
        "shim": _core.shim_info(),
        "core": _json.loads(_core.core_build_info()),
        "core_path": _core.loaded_from(),
        "kernels_path": kernels if _Path(kernels).exists() else None,
    }


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(f".{_LATER[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
