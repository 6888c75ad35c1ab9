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

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core, errors, knobs, plan
from ._version import __version__
from .deprecation import moved_name
from .plan import Plan
from .simulate import simulate

if TYPE_CHECKING:
    # Former names, for type checkers; Python finds them by __getattr__, which warns.
    from .errors import *  # noqa: F403
    from .lease import Lease
    from .offloading import offload
    from .opening import open  # noqa: A004
    from .plan import Advance as Advance
    from .plan import Drop as Drop
    from .plan import Last as Last
    from .plan import Restore as Restore
    from .store import History, Store, stores
    from .ticket import Ticket
    from .training import Checkpointer
    from .tuning import Tuning

#: The modules of names that need NumPy. They are imported at the first use: commands that look at a store, and need no
#: NumPy, start in half the time.
_LATER = {
    "open": "opening",
    "stores": "store",
    "Store": "store",
    "History": "store",
    "Ticket": "ticket",
    "Lease": "lease",
    "Tuning": "tuning",
    "Checkpointer": "training",
    "offload": "offloading",
}

#: Former names of this module by the modules that have them; they work for one version.
_MOVED = dict.fromkeys(("Restore", "Last", "Drop", "Advance"), "plan") | dict.fromkeys(errors.__all__, "errors")

__all__ = [
    "open",
    "stores",
    "Store",
    "History",
    "Ticket",
    "Lease",
    "Plan",
    "Tuning",
    "Checkpointer",
    "offload",
    "errors",
    "plan",
    "simulate",
    "build_info",
    "__version__",
]


def build_info() -> dict[str, Any]:
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
        "core": json.loads(_core.core_build_info()),
        "core_path": _core.loaded_from(),
        "kernels_path": kernels if Path(kernels).exists() else None,
    }


if not TYPE_CHECKING:  # a type checker would take any name for one of this module

    def __getattr__(name: str) -> Any:
        if name in _MOVED:
            return moved_name(__name__, name, _MOVED[name])
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
