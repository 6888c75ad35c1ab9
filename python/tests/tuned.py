"""Options of `velocpy.open` that tests choose by name, whether they are its own arguments or fields of `Tuning`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import velocpy

FIELDS = frozenset(field.name for field in fields(velocpy.Tuning))


def tuned(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same options as keywords of `velocpy.open`: fields of `Tuning` are put into one."""
    own = {name: value for name, value in options.items() if name not in FIELDS}
    return own | {"tuning": velocpy.Tuning(**{name: options[name] for name in FIELDS & options.keys()})}
