"""Arrays of JAX on the host: they come back as NumPy's, and are refused by name where they have no memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import velocpy
from velocpy.errors import InvalidArgument, InvalidType

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def on_the_host() -> Iterator[None]:
    with jax.default_device(jax.devices("cpu")[0]):
        yield


DTYPES = ("float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "uint32", "bool", "complex64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (3, 5, 2)])
def test_arrays_come_back_bit_by_bit(dtype: str, shape: tuple[int, ...]) -> None:
    words = np.random.default_rng(1).integers(0, 2, shape) if dtype == "bool" else None
    array = jnp.asarray(np.random.default_rng(0).standard_normal(shape) if words is None else words).astype(dtype)
    with velocpy.open(host="16MiB") as store:
        history = store.history("jax")
        history.checkpoint(0, u=array)
        with history.restore(0) as lease:
            assert lease["u"].dtype == array.dtype
            back = jnp.array(lease["u"])
    assert (back.shape, back.dtype) == (array.shape, array.dtype)
    assert np.asarray(back).tobytes() == np.asarray(array).tobytes()


def test_a_state_comes_back_as_a_tree() -> None:
    state = {"params": {"w": jnp.ones((3, 2), jnp.bfloat16), "b": jnp.zeros(2)}, "step": 3, "key": [jnp.arange(2)]}
    with velocpy.open(host="16MiB") as store:
        history = store.history("jax")
        history.checkpoint(0, state)
        back = jax.tree_util.tree_map(jnp.asarray, history.restore(0).tree)
    assert jax.tree_util.tree_structure(back) == jax.tree_util.tree_structure(state)
    assert back["params"]["w"].dtype == jnp.bfloat16
    assert back["step"] == 3


def test_arrays_of_jax_are_not_written() -> None:
    array = jnp.arange(4.0)
    with velocpy.open(host="16MiB") as store:
        history = store.history("jax")
        history.checkpoint(0, u=array + 1)
        with pytest.raises(InvalidArgument, match="'u'"):
            history.restore(0, into={"u": array})
    assert array.tolist() == [0, 1, 2, 3]


def test_what_has_no_memory_is_named() -> None:
    donated = jnp.arange(4.0)
    donated.delete()
    with velocpy.open(host="16MiB") as store:
        history = store.history("jax")
        with pytest.raises(InvalidType, match=r"region 'k' is a key of jax\.random; give jax\.random\.key_data"):
            history.checkpoint(0, k=jax.random.key(0))
        with pytest.raises(InvalidArgument, match="region 'u' was deleted, or donated"):
            history.checkpoint(0, u=donated)

        @jax.jit
        def traced(u: jax.Array) -> jax.Array:
            with pytest.raises(InvalidType, match="region 'u' is traced by a transformation of JAX"):
                history.checkpoint(0, u=u)
            return u

        traced(jnp.arange(4.0))
        assert len(history) == 0


def test_gradients_through_a_history_are_those_of_jax() -> None:
    """States of a time loop lie in a history; JAX alone keeps them all for itself."""
    rng = np.random.default_rng(0)
    weights, first = jnp.asarray(rng.standard_normal((8, 8)) / 4), jnp.asarray(rng.standard_normal(8))

    @jax.jit
    def step(u: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.tanh(w @ u)

    @jax.jit
    def back(u: jax.Array, w: jax.Array, cotangent: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.vjp(step, u, w)[1](cotangent)

    def loss(w: jax.Array) -> jax.Array:
        u = first
        for _ in range(20):
            u = step(u, w)
        return (u * u).sum()

    with velocpy.open(host="1KiB", disk="16MiB") as store:  # most states go to the disk
        states = store.history("forward")
        u = first
        for i in range(20):
            states.checkpoint(i, u=u)
            u = step(u, weights)
        states.hint(velocpy.plan.Last(i) for i in reversed(range(20)))
        cotangent, total = 2 * u, jnp.zeros_like(weights)
        for _, lease in states.restore_iter():
            cotangent, part = back(jnp.array(lease["u"]), weights, cotangent)
            total = total + part
    np.testing.assert_allclose(np.asarray(total), np.asarray(jax.grad(loss)(weights)), rtol=1e-5, atol=1e-6)
