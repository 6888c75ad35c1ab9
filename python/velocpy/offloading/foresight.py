"""Which nodes a backward pass will run, read from its graph when the first of them runs.

PyTorch's engine has a function that tells the order of a backward pass, `_current_graph_task_execution_order`. It is of
no use here. It refuses while the engine may use several threads, which is the default. It fails as soon as a node has
run, and in nearly all graphs that is before the first request for a saved tensor. The order needs no such function. The
engine runs the node with the highest number among those that are ready, and a node has a higher number than those whose
results it used. So it runs the nodes of the graph from the highest number to the lowest. A walk over ``next_functions``
finds the nodes of the graph, in less time than the engine's function takes.

The walk has to start at the node that runs first. `Foresight` gives each node that is created under the context a hook
that runs before it. All hooks are one dict, so that a node costs little and nothing refers to a node. The dict is empty
until a storage has left the device.
"""

from __future__ import annotations

import logging
import weakref
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.autograd.graph as graph

from .saved import View

log = logging.getLogger("velocpy")

#: The graph task of this thread's backward pass; -1 outside of one.
graph_task: Callable[[], int] = torch._C._current_graph_task_id

#: Backward passes whose nodes are remembered at once, at most.
_PASSES = 8

#: Saves of one node whose number is corrected, at most.
_FRESH = 64

#: Numbers from here on belong to nodes that accumulate gradients; they save nothing.
_NO_NUMBER = 1 << 63


class Foresight:
    """The nodes of the backward passes that run, as the set of their numbers.

    Numbers count the nodes of a thread. Nodes of two threads may share one; an order may then be wrong, which costs
    time.
    """

    def __init__(self) -> None:
        self._passes: dict[int, set[int]] = {}
        #: What runs before each node: the hooks of a tensor, as PyTorch keeps them.
        self._hooks: dict[int, Callable[[torch.Tensor], torch.Tensor | None]] = OrderedDict()
        self._before = _before(self)
        #: How often threads have begun to watch, and not ended.
        self.watches = 0
        #: What was saved since the last node was complete.
        self._fresh: list[View] = []
        #: Whether PyTorch lacks a function that this needs, or one has failed.
        self.failed = False
        # A tensor is the only way to give a node a dict of hooks.
        self._carrier: Any = None
        try:
            with torch.inference_mode(False):
                self._carrier = torch.empty(0, device="cpu", requires_grad=True)
                self._carrier._backward_hooks = self._hooks
        except Exception as error:
            self.fail(error)

    def watch(self) -> AbstractContextManager[Any] | None:
        """Begins to give nodes that this thread creates the hook; None: PyTorch cannot do that."""
        make = getattr(graph, "node_creation_hook", None)
        if make is None or self.failed:
            return None
        try:
            watched: AbstractContextManager[Any] = make(_created(self, self._fresh, self._carrier))
            watched.__enter__()
        except Exception as error:
            self.fail(error)
            return None
        self.watches += 1
        return watched

    def unwatch(self, watched: AbstractContextManager[Any]) -> None:
        """Ends it."""
        self.watches -= 1
        self._fresh.clear()
        watched.__exit__(None, None, None)

    def saved(self, view: View) -> None:
        """It was saved; the node that is complete next will tell the node's number."""
        if len(self._fresh) >= _FRESH:  # other threads save, which are not watched
            self._fresh.clear()
        self._fresh.append(view)

    def arm(self) -> None:
        """A storage has left: from now on the hook runs."""
        if not self.failed:
            self._hooks[0] = self._before

    def disarm(self) -> None:
        """No storage is away: the hook need not run."""
        self._hooks.clear()
        self._passes.clear()

    def nodes(self, task: int) -> set[int] | None:
        """The numbers of the nodes that a backward pass runs, as far as its hooks tell; None: they told nothing."""
        return self._passes.get(task)

    def forget(self, task: int) -> None:
        """The backward pass is over."""
        self._passes.pop(task, None)

    def look(self) -> set[int] | None:
        """Adds the node that this thread runs, and all behind it, to its backward pass; None: that fails."""
        if self.failed:
            return None
        try:
            task = graph_task()
            nodes = self._passes.get(task)
            node = torch._C._current_autograd_node()
            if node is None or task == -1:
                return nodes
            if nodes is None:
                while len(self._passes) >= _PASSES:
                    self._passes.pop(next(iter(self._passes)), None)
                nodes = self._passes[task] = set()
            if node._sequence_nr() not in nodes:
                _walk(node, nodes)
        except Exception as error:
            self.fail(error)
            return None
        return nodes

    def fail(self, error: Exception) -> None:
        """From now on orders are learnt, or reversed."""
        self.failed = True
        self._fresh.clear()
        self.disarm()
        log.debug(
            "the order of backward passes cannot be predicted with this PyTorch, %s: %s: %s. It is learnt instead.",
            torch.__version__,
            type(error).__name__,
            error,
        )


def _walk(start: Any, nodes: set[int]) -> None:
    """Adds the numbers of all nodes that the engine will run from here."""
    runs = getattr(torch._C, "_will_engine_execute_node", None)
    nodes.add(start._sequence_nr())
    stack = [start]
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is None:
                continue
            number = node._sequence_nr()
            # The engine leaves out nodes that lead to none of the inputs= of a call.
            if number not in nodes and number < _NO_NUMBER and (runs is None or runs(node)):
                nodes.add(number)
                stack.append(node)


def _created(foresight: Foresight, fresh: list[View], carrier: torch.Tensor) -> Callable[[Any], None]:
    """What PyTorch calls with each node that it has created. It must not raise: the forward pass would."""
    reference = weakref.ref(foresight)

    def created(node: Any) -> None:
        try:
            node._register_hook_dict(carrier)
            if fresh:
                number = node._sequence_nr()
                if number < _NO_NUMBER:
                    for view in fresh:
                        view.created(number)
                    fresh.clear()
        except Exception as error:
            found = reference()
            if found is not None and not found.failed:
                found.fail(error)

    return created


def _before(foresight: Foresight) -> Callable[[torch.Tensor], torch.Tensor | None]:
    """What the engine calls before it runs a node; it does not keep the context alive."""
    reference = weakref.ref(foresight)

    def before(grad: torch.Tensor) -> None:
        found = reference()
        if found is not None:
            found.look()

    return before
