"""A time loop as a model of the executor: states as regions, steps with and without a graph, adjoint steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from velocpy.adjoint.schedule import ScheduleError
from velocpy.errors import InvalidArgument

from .context import Autocast, Generators
from .form import Form
from .graph import Parameters, sequence_number, step_gradients
from .layout import Layout, copied, layout_of, packed, unpacked

#: The tensors of a state, place by place. One tensor may stand at several places; it may be a parameter, too.
Slots = tuple[torch.Tensor, ...]

Gradients = list[torch.Tensor | None]


class Steps:
    """The user's step, and where the forward and the adjoint stand: `velocpy.adjoint.Model` and `TakesState`.

    Restart data and adjoint dependencies of a step are the same: the state before it, and the generators. Steps never
    write into a state, so nothing is copied except the first state, which is the caller's.

    A tensor of a state requires a gradient where it does in plain autograd. A graph in the first sweep shows it: for
    step 0, and for further steps as long as some tensor that could have a gradient requires none.
    """

    def __init__(
        self,
        step: Callable[[int, Any], Any],
        form: Form,
        first: Slots,
        parameters: Parameters,
        generators: Generators,
        autocast: Autocast,
    ) -> None:
        self._step = step
        self._form = form
        self._parameters = parameters
        self._named = {id(tensor): -1 - index for index, tensor in enumerate(parameters.tensors)}
        self._generators = generators
        self._autocast = autocast
        self._at = 0
        self._slots: Slots | None = self._replaced(first, copied)
        #: A step whose result was not needed yet.
        self._put_off: int | None = None
        self._reversing = False
        #: Which tensors require a gradient at the start of each step.
        self._required = [tuple(tensor.requires_grad for tensor in first)]
        #: Owners and layouts of the states that were handed out to be stored, by step.
        self._stored: dict[int, tuple[tuple[int, ...], dict[int, Layout]]] = {}
        #: Storages of the state that was handed out last for the adjoint.
        self._lent: set[int] = set()
        #: Owners of the first and of the last state.
        self._first = self.owners(first)
        self._last: tuple[int, ...] = ()
        self._of_state: Gradients = []
        self._of_parameters: Gradients = [None] * len(parameters.tensors)

    # --- forward ---

    def state(self) -> Mapping[str, Any]:
        return self._regions(self._present())

    def step(self, n: int, keep: bool) -> Mapping[str, Any] | None:
        slots = self._present()
        self._lent = {_storage(tensor) for tensor in slots} if keep else set()
        kept = self._regions(slots) if keep else None
        if keep and self._reversing:
            # The adjoint step computes it again, and the executor goes on from its result in few schedules only.
            self._put_off = n
        else:
            self._advance(n)
        return kept

    def set_state(self, arrays: Mapping[str, Any]) -> None:
        self._put_off = None
        self._at = int(arrays["step"])
        self._slots = self._unpacked(arrays, torch.Tensor.clone)
        self._generators.write(arrays)

    def finish(self) -> tuple[list[torch.Tensor], list[bool]]:
        """Ends the forward sweep.

        Returns
        -------
        tensors
            The distinct ones of the last state. None shares memory with parameters, or with data that the reverse sweep
            will read.
        required
            Whether they require a gradient.
        """
        slots = self._present()
        self._last = self.owners(slots)
        self._slots, self._reversing = None, True
        tensors, required = {}, {}
        for owner, tensor, requires in zip(self._last, slots, self._required[self._at], strict=True):
            if owner not in tensors:
                shared = owner < 0 or _storage(tensor) in self._lent
                tensors[owner], required[owner] = copied(tensor) if shared else tensor.detach(), requires
        return list(tensors.values()), list(required.values())

    def last_state(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The last state, made of the tensors that `finish` returned."""
        by_owner = dict(zip(dict.fromkeys(self._last), tensors, strict=True))
        return self._form.build([by_owner[owner] for owner in self._last])

    def plain(self, n: int) -> Slots:
        """All steps without a history, where nothing needs a gradient."""
        slots = self._present()
        self._slots = None
        for number in range(n):
            slots = self._call(number, slots)
            if torch.is_grad_enabled():
                self._parameters.reached(slots, (), first=0)
        return slots

    # --- reverse ---

    def begin(self, of_outputs: Sequence[torch.Tensor | None]) -> None:
        """Starts the adjoint with the gradients of the tensors that `finish` returned."""
        self._of_state = [None] * len(self._last)
        for owner, gradient in zip(dict.fromkeys(self._last), of_outputs, strict=True):
            if owner < 0:
                self._of_parameters[-1 - owner] = gradient
            else:
                self._of_state[owner] = gradient

    def begin_adjoint(self, steps: int) -> None:
        """`begin` has done it."""

    def adjoint_step(self, n: int, kept: Mapping[str, Any]) -> None:
        self._slots, self._put_off, self._at = None, None, n
        self._generators.write(kept)
        leaves, slots = self._leaves(self._unpacked(kept, torch.Tensor.detach))
        wanted = [place for place, leaf in leaves.items() if leaf.requires_grad]
        inputs = [leaves[place] for place in wanted]
        with torch.enable_grad():
            first = sequence_number()
            new = self._traced(n, slots)
            pairs = zip(new, self._of_state, strict=True)
            seeded = [(tensor, of) for tensor, of in pairs if of is not None and tensor.requires_grad]
            outputs = [tensor for tensor, _ in seeded]
            used = self._parameters.reached(outputs, inputs, first)
        self._of_state = [None] * len(slots)
        if not seeded or not (inputs or used):
            return
        of_inputs, of_used = step_gradients(
            outputs,
            [of for _, of in seeded],
            inputs,
            [self._parameters.tensors[index] for index in used],
            [self._of_parameters[index] for index in used],
        )
        for place, gradient in zip(wanted, of_inputs, strict=True):
            self._of_state[place] = gradient
        for index, gradient in zip(used, of_used, strict=True):
            self._of_parameters[index] = gradient

    def gradients(self) -> Gradients:
        """Those of the parameters, then those of the distinct tensors of the first state."""
        return [*self._of_parameters, *(self._of_state[i] for i, owner in enumerate(self._first) if i == owner)]

    # --- one step ---

    def _present(self) -> Slots:
        """The state at which the forward stands."""
        if self._put_off is not None:
            number, self._put_off = self._put_off, None
            self._advance(number)
        if self._slots is None:
            raise ScheduleError("the schedule goes on from a state that it did not restore")
        return self._slots

    def _advance(self, n: int) -> None:
        slots = self._present()
        self._slots = None
        explores = n + 1 == len(self._required)
        if explores and (n == 0 or self._required[n] != self._form.differentiable):
            new = self._explored(n, slots)
        else:
            with torch.no_grad():
                new = self._traced(n, slots)
            if explores:
                self._required.append(self._required[n])
        self._slots, self._at = self._replaced(new, torch.Tensor.detach), n + 1

    def _explored(self, n: int, slots: Slots) -> Slots:
        """A step with a graph, which shows the tensors that will require a gradient."""
        leaves, slots = self._leaves(slots)
        with torch.enable_grad():
            first = sequence_number()
            new = self._traced(n, slots)
            self._parameters.reached(new, list(leaves.values()), first)
        before = self._required[n]
        self._required.append(tuple(was or tensor.requires_grad for was, tensor in zip(before, new, strict=True)))
        return new

    def _traced(self, n: int, slots: Slots) -> Slots:
        """A step as it was called in the forward sweep."""
        with self._autocast.applied():
            return self._call(n, slots)

    def _call(self, n: int, slots: Slots) -> Slots:
        versions = [_version(tensor) for tensor in slots]
        new = self._form.flatten(self._step(n, self._form.build(slots)), n)
        for path, tensor, version in zip(self._form.paths, slots, versions, strict=True):
            if _version(tensor) != version:
                raise InvalidArgument(
                    f"step({n}, …) wrote into {path}, which it was given: let it compute a new tensor, or clone it."
                )
        return new

    # --- tensors at places ---

    def owners(self, slots: Slots) -> tuple[int, ...]:
        """For each place the first one of the same tensor; -1 and less for parameters 0 and up."""
        first: dict[int, int] = {}
        return tuple(
            self._named[id(tensor)] if id(tensor) in self._named else first.setdefault(id(tensor), place)
            for place, tensor in enumerate(slots)
        )

    def _replaced(self, slots: Slots, replace: Callable[[torch.Tensor], torch.Tensor]) -> Slots:
        """Other tensors in place of all but parameters; what was one tensor stays one."""
        owners = self.owners(slots)
        own = {place: replace(slots[place]) for place, owner in enumerate(owners) if place == owner}
        return self._placed(owners, own)

    def _placed(self, owners: Sequence[int], own: Mapping[int, torch.Tensor]) -> Slots:
        return tuple(own[owner] if owner >= 0 else self._parameters.tensors[-1 - owner] for owner in owners)

    def _leaves(self, slots: Slots) -> tuple[dict[int, torch.Tensor], Slots]:
        """The same state as leaves of a new graph, by place, and at all places."""
        owners = self.owners(slots)
        required = self._required[self._at]
        leaves = {
            place: slots[place].detach().requires_grad_(required[place])
            for place, owner in enumerate(owners)
            if place == owner
        }
        return leaves, self._placed(owners, leaves)

    def _regions(self, slots: Slots) -> dict[str, Any]:
        """A state and the generators, to be stored."""
        owners = self.owners(slots)
        own = [place for place, owner in enumerate(owners) if place == owner]
        self._stored[self._at] = owners, {place: layout_of(slots[place]) for place in own}
        regions = {str(place): packed(slots[place]) for place in own}
        return {**regions, "step": np.array(self._at), **self._generators.read()}

    def _unpacked(self, regions: Mapping[str, Any], take: Callable[[torch.Tensor], torch.Tensor]) -> Slots:
        """The state that regions hold, made of the tensors that ``take`` makes of these."""
        owners, layouts = self._stored[self._at]
        own = {place: unpacked(take(regions[str(place)]), layout) for place, layout in layouts.items()}
        return self._placed(owners, own)


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _version(tensor: torch.Tensor) -> int:
    """Counts the writes into a tensor; those made in inference mode are not counted."""
    return 0 if tensor.is_inference() else tensor._version
