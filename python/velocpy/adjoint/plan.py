"""From a schedule to the plan of a history."""

from __future__ import annotations

from typing import Any

from velocpy.plan import Plan

from .schedule import drained, hints


def plan_of(schedule: Any, *, steps: int | None = None, adjoints: int = 1) -> Plan:
    """The plan that a fresh schedule of checkpoint_schedules implies; the schedule stays fresh.

    Its keys are those that `drive` uses, which hints by itself. The schedule is planned on only as far as the history
    looks ahead; stretches without restores that are longer than usual are announced. An online schedule needs
    ``steps``, the length of the forward computation.

    Raises
    ------
    ScheduleError
        When the schedule has started already, or its length is not known.

    Examples
    --------
    >>> from checkpoint_schedules import Revolve
    >>> plan = list(plan_of(Revolve(4, 2)))
    >>> plan[0], plan[-1]
    (Last(key='ram/restart/2'), Last(key='ram/restart/0'))
    """
    return Plan(hints(drained(schedule, steps), adjoints))
