"""States that are written as they are: the quick walk over a state, beside the one that writes any."""

from __future__ import annotations

import operator
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest
from bits import alike
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from velocpy import _core  # noqa: E402
from velocpy.training import encoding  # noqa: E402

SHARED = torch.arange(6.0)
LEAVES = st.sampled_from(
    [
        lambda: torch.zeros(3),
        lambda: torch.zeros(2, 3).t(),
        lambda: torch.zeros((), dtype=torch.bfloat16),
        lambda: torch.zeros(0),
        lambda: torch.zeros(3, requires_grad=True),
        lambda: torch.nn.Parameter(torch.zeros(3)),
        lambda: SHARED,
        lambda: SHARED[:3],
        lambda: torch.zeros(2, dtype=torch.complex64),
        lambda: torch.zeros(2, dtype=torch.complex64).conj(),
        lambda: torch.zeros(2, dtype=torch.complex64).conj().imag,
        lambda: np.zeros(3),
        lambda: None,
        lambda: 1.5,
        lambda: "text",
        lambda: {1, 2},
        lambda: torch.float32,
        lambda: b"raw",
    ]
).map(lambda make: make())
STATES = st.recursive(
    LEAVES,
    lambda node: (
        st.lists(node, max_size=3)
        | st.lists(node, max_size=3).map(tuple)
        | st.dictionaries(st.text("ab", max_size=2), node, max_size=3)
        | st.dictionaries(st.integers(0, 5), node, max_size=3).map(OrderedDict)
        | st.dictionaries(st.text("ab", max_size=2), node, max_size=2).map(lambda d: defaultdict(int, d))
    ),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    """Whether two states have the same containers with the same leaves in them."""
    return alike(one, other, operator.is_)


@settings(max_examples=500, deadline=None)
@given(state=STATES)
def test_a_state_that_is_written_as_it_is_would_be_written_so(state: Any) -> None:
    if _core.is_written_as_it_is(state):
        assert same(encoding._Encoder(0).node(state, ()), state)


def test_the_states_of_a_training_are_written_as_they_are() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    for state in (model.state_dict(), optimizer.state_dict()):
        assert _core.is_written_as_it_is(state)
        assert encoding.encode(state) is state
        assert same(encoding._Encoder(0).node(state, ()), state)


@pytest.mark.filterwarnings("ignore")  # torch's own, of layouts that it may change
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.nn.Parameter(torch.zeros(3)),
        lambda: torch.zeros(3, requires_grad=True),
        lambda: torch.zeros(3, requires_grad=True) * 2,
        lambda: torch.zeros(2, dtype=torch.complex64).conj(),
        lambda: torch.zeros(2, dtype=torch.complex64).conj().imag,
        lambda: torch.zeros(3).to_sparse(),
        lambda: torch.eye(3).to_sparse_csr(),
        lambda: torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8),
        lambda: torch.zeros(3, device="meta"),
        lambda: torch.zeros(3).as_subclass(type("Own", (torch.Tensor,), {})),
        lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
        lambda: [SHARED, SHARED],
        lambda: [SHARED, SHARED[:2]],
        lambda: Counter(a=1),
        lambda: {encoding.KIND: "set"},
        lambda: np.float64(1),
        lambda: object(),
    ],
)
def test_other_states_are_left_to_python(make: Any) -> None:
    assert not _core.is_written_as_it_is({"a": [make()]})


def test_a_state_that_holds_itself_is_left_to_python() -> None:
    state: list[Any] = []
    state.append(state)
    assert not _core.is_written_as_it_is(state)
