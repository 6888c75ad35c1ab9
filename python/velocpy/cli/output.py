"""What the commands have in common: JSON messages, examples in the help, colour."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import click

#: The version of the messages' form. It grows when a name goes or changes its meaning; names may be added at any time.
VERSION = 1

#: The option that every command has.
json_option = click.option("--json", "as_json", is_flag=True, help="JSON messages instead of text, one a line.")


def message(kind: str, facts: Mapping[str, Any]) -> str:
    """One JSON message, as one line: its kind, its version, and what it says.

    Examples
    --------
    >>> from velocpy.cli.output import message
    >>> print(message("checkpoint", {"key": 7, "bytes": 4096}))
    {"message_type": "checkpoint", "version": 1, "key": 7, "bytes": 4096}
    """
    head = {"message_type": kind, "version": VERSION}
    if taken := head.keys() & facts.keys():
        raise ValueError(f"{', '.join(sorted(taken))}: the head of a message has this name")
    return json.dumps(head | finite(facts), allow_nan=False)


def finite(value: Any) -> Any:
    """The value with null for numbers that JSON does not have.

    Examples
    --------
    >>> from velocpy.cli.output import finite
    >>> finite({"loss": [float("nan"), 0.5]})
    {'loss': [None, 0.5]}
    """
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def examples(*lines: str) -> str:
    """The end of a command's help: command lines as they may be typed."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def colour() -> bool | None:
    """False where NO_COLOR forbids it; None lets a terminal have it and nothing else."""
    return False if os.environ.get("NO_COLOR") else None
