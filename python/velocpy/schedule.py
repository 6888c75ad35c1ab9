"""Schedules: which checkpoints of a CUDA device are encoded on their way to the host, and which of them by one call.

Maurya et al., HiPC'23, "Towards Efficient I/O Pipelines using Accumulated Compression". The decisions are made and kept
by the core (gocore/policy/schedule); here are the files of profiles.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import InvalidArgument, InvalidType, TierIOError

#: A path to a profile.
Profiled = str | os.PathLike[str]

#: Profiles by their files.
Observed = dict[Path, dict[str, list[dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class Schedule:
    """What becomes of each checkpoint of a CUDA device on its way to the host (Maurya et al., HiPC'23, section III).

    ``"U"``: it goes as it is. ``"C"``: it is encoded alone. ``"A"``: it stays in the device's tier until a later
    checkpoint of the history with ``"X"`` is captured, and is then encoded with it by one call. A run ends early when
    a capture or a flush waits for room, when a caller waits for one of its checkpoints in a lower tier or drops it,
    when it has 64 checkpoints or a sixteenth of the host tier, and when it takes 2 ms more than twice as long as was
    predicted, or 10 s. Until then its checkpoints are on the device alone, and so are not durable.
    ``Tuning(together=False)`` encodes each alone.

    Plans let the application be blocked as short as possible, by the sizes, the times between captures, the sizes once
    encoded, the rate of the link and the times of the encoder, as they were measured: with a profile by a dynamic
    programme, without one by comparing letters that repeat. A run that deviates by more than 15 % from what was
    expected is planned anew from there on.

    Parameters
    ----------
    profile
        A file with the sizes and times of an earlier run of the same application. If there is none, this run measures,
        and the file is written when the store is closed; another process that has written it meanwhile keeps its own.
        None: plans are made for checkpoints that are like the last ones.
    repeat
        Letters that repeat, instead of plans, as for comparison: ``"C"`` encodes each checkpoint alone, ``"AAAX"`` four
        at a time. At most 4096. "": plans.

    Raises
    ------
    InvalidArgument
        Of letters that are none, of an ``A`` that no ``X`` follows, or of letters beside a profile.

    Examples
    --------
    >>> from velocpy.schedule import Schedule
    >>> Schedule(repeat="AAAX")
    Schedule(profile=None, repeat='AAAX')
    """

    profile: Profiled | None = None
    repeat: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.repeat, str) or not isinstance(self.profile, (str, os.PathLike, type(None))):
            raise InvalidType(f"a schedule has a path and letters, not {self.profile!r} and {self.repeat!r}.")
        if self.profile is not None and self.repeat:
            raise InvalidArgument("a schedule has a profile or letters that repeat; leave one of them out.")
        if strange := sorted(set(self.repeat) - set("UCAX")):
            raise InvalidArgument(f"{strange[0]!r} is no letter of a schedule: these are U, C, A and X.")


@dataclass(frozen=True, slots=True)
class Course:
    """What a history's schedule has come to; `History.course` gives it."""

    #: The letters of the checkpoints so far; "-" for those that no plan was made for, which are encoded with what is
    #: queued beside them.
    letters: str
    #: How many plans were made.
    plans: int
    #: Sizes and times: per checkpoint of a device ``size`` and ``encoded`` in bytes, and ``interval`` in ns since the
    #: capture before had returned; per call of the encoder that was timed ``bytes`` and ``seconds``.
    profile: dict[str, list[dict[str, Any]]]


def of(schedule: Schedule | Profiled | None) -> Schedule | None:
    """The schedule that a caller means by a path."""
    if schedule is None or isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, (str, os.PathLike)):
        return Schedule(profile=schedule)
    raise InvalidType(f"schedule is {schedule!r}; give a path or a velocpy.schedule.Schedule.")


def told(schedule: Schedule | None) -> dict[str, Any] | None:
    """What the core is told."""
    if schedule is None:
        return None
    profile = None
    if schedule.profile is not None:
        file = Path(schedule.profile)
        if not file.absolute().parent.is_dir():
            raise InvalidArgument(f"the profile {file} cannot be written: there is no folder {file.absolute().parent}.")
        profile = _read(file)
    return {"profile": profile, "repeat": schedule.repeat}


def _read(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{file} cannot be read as a profile: {error}. Nothing was changed.") from None
    try:
        known = json.loads(text)
        json.dumps(known, allow_nan=False)  # numbers that are none, or too large for a float
        if known is None:
            raise ValueError("it says null")
        return known
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"{file} is no profile of a schedule: {error}. Remove it, and the next run writes it."
        ) from None


def course(text: str) -> Course | None:
    """What the core says of a schedule."""
    of_it = json.loads(text)
    return None if of_it is None else Course(**of_it)


def write(file: Path, profile: dict[str, list[dict[str, Any]]]) -> None:
    """Writes a profile, unless another process has done so meanwhile."""
    beside = file.with_name(f".{file.name}.{os.urandom(4).hex()}")
    try:
        beside.write_text(json.dumps(profile), encoding="utf-8")
        try:
            os.link(beside, file)
        except FileExistsError:
            beside.unlink()
        except OSError:  # a file system without links: the last one who writes stays
            beside.replace(file)
        else:
            beside.unlink()
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        failure = TierIOError(f"the profile {file} cannot be written: {error.strerror}. No checkpoint is affected.")
        failure.errno, failure.strerror = error.errno, error.strerror
        raise failure from error
