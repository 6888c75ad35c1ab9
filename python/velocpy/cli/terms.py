"""Errors in the terms of the command line: what to do is a command, not an argument of a call."""

from __future__ import annotations

import re

from velocpy.budget import FORMS
from velocpy.errors import REMEDIES, Status

#: What to do, where a library's user would do something else.
_COMMANDS = {
    Status.NOT_FOUND: "`velocpy ls PATH` lists the histories, `velocpy ls PATH HISTORY` the checkpoints of one.",
    Status.TIER_FULL: "What was written is safe. Make room on the disk; `velocpy gc PATH` gives some back.",
    Status.DROPPED: "Another process dropped or replaced it; its new version, if any, is there.",
    Status.LOCKED: "One process at a time writes to a store: wait until that one has closed it. Commands that only "
    "look (ls, show, check, diff, backup, export) may run beside it.",
    Status.NO_STORE: "PATH is the directory of a store, the one in which the file velocpy.store lies.",
    Status.DAMAGED: "Nothing was changed. `velocpy check PATH` says what is gone, and `velocpy check PATH --repair` "
    "lets the store be written to again; with --rebuild it finds in the data files what the catalog has lost.",
    Status.LOST: "What was durable before is where it was. Run the command again.",
    Status.DURABILITY: "It is not in the store.",
    Status.CLOSED: "Run the command again.",
    Status.STALE: "Run the command again.",
}


#: Which line had called: a command's own.
_CALL = re.compile(r" \w+\(\)( of key .*)? was called at .*\.$")

#: What a size may be. Options take no shares, and no budget is left out by one.
_SIZES = 'Give a number of bytes, or a size like "4GiB", "500 MB" or "1.5G".'

#: Advice about arguments that no command has.
_ARGUMENTS = (
    re.compile(r"; files that go with the process \(durable=False\) may lie among others"),
    re.compile(r"Budgets go by keyword: open\(host=[^)]*\); "),
)


def in_terms_of_commands(text: str) -> str:
    """The text of an error with the remedies of a library replaced by those of the command.

    Examples
    --------
    >>> from velocpy.errors import REMEDIES, Status
    >>> from velocpy.cli.terms import in_terms_of_commands
    >>> in_terms_of_commands(f"there is no store in 'x'. {REMEDIES[Status.NO_STORE]}")
    "there is no store in 'x'. PATH is the directory of a store, the one in which the file velocpy.store lies."
    """
    text = text.replace(FORMS, _SIZES)
    for status, remedy in _COMMANDS.items():
        text = text.replace(REMEDIES[status], remedy)
    for advice in _ARGUMENTS:
        text = advice.sub("", text)
    return _CALL.sub("", text)
