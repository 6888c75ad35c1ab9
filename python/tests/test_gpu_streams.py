"""Arrays of libraries with streams of their own on a CUDA device: read and written behind what those have to do.

Before each call a kernel keeps the stream busy, so that a copy which is not ordered behind it is wrong every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RunPython

import velocpy

cupy = pytest.importorskip("cupy")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),  # of the libraries, about themselves
]

ROUNDS = 10
ELEMENTS = (4 << 20) + 3
SPIN = 250_000_000  # cycles: more than a tenth of a second at 2 GHz

KERNEL = r"""
extern "C" __global__ void spin(long long cycles) {
  const long long began = clock64();
  while (clock64() - began < cycles) {
  }
}
"""


@pytest.fixture(scope="module")
def spin() -> Any:
    """Keeps the current stream of CuPy busy."""
    kernel = cupy.RawKernel(KERNEL, "spin")

    def keep_busy(cycles: int = SPIN) -> None:
        kernel((1,), (1,), (np.int64(cycles),))

    keep_busy(1000)
    cupy.cuda.Device().synchronize()  # it is compiled and loaded
    return keep_busy


@pytest.fixture
def history(tmp_path: Path) -> Iterator[velocpy.History]:
    with velocpy.open(tmp_path, device="256MiB", host="512MiB", durable=False) as store:
        history = store.history("h")
        history.checkpoint("warm", u=cupy.zeros(ELEMENTS, np.int32))  # memory, code and pools
        history.restore("warm", into={"u": cupy.zeros(ELEMENTS, np.int32)})
        store.wait()
        history.drop("warm")
        yield history


class Named:
    """An array of CuPy by its interface alone, which names a stream."""

    def __init__(self, array: Any, stream: int | None) -> None:
        self.array, self.stream = array, stream
        self.device = array.device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self.array.__cuda_array_interface__, stream=self.stream, version=3)


def random_array(seed: int) -> Any:
    array = cupy.asarray(np.random.default_rng(seed).integers(-(2**31), 2**31, ELEMENTS, dtype=np.int32))
    cupy.cuda.Device().synchronize()
    return array


def copied(to: int, array: Any, stream: Any) -> None:
    """Queues a copy of an array to an address; it needs no kernel."""
    runtime = cupy.cuda.runtime
    runtime.memcpyAsync(to, array.data.ptr, array.nbytes, runtime.memcpyDeviceToDevice, stream.ptr)


def same(one: Any, other: Any) -> bool:
    cupy.cuda.Device().synchronize()
    return np.array_equal(cupy.asnumpy(one), cupy.asnumpy(other))


def restored(history: velocpy.History, key: Any) -> Any:
    back = np.empty(ELEMENTS, np.int32)
    history.restore(key, into={"u": back})
    return back


@pytest.mark.parametrize("how", ["current", "named", "both", "caller"])
@pytest.mark.parametrize("copy", [True, False])
def test_capture_behind_a_stream_that_is_busy(history: velocpy.History, spin: Any, how: str, copy: bool) -> None:
    """The stream of the array is current in CuPy, or its interface names it, or the caller, or both of them another."""
    stream, other = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    u, junk = cupy.zeros(ELEMENTS, np.int32), random_array(99)
    exact = 0
    for key in range(ROUNDS):
        kept = random_array(key)
        copied(u.data.ptr, junk, cupy.cuda.Stream.null)
        cupy.cuda.Device().synchronize()
        with stream:
            spin()
        copied(u.data.ptr, kept, stream)
        if how == "current":
            with stream:
                ticket = history.checkpoint(key, u=u, copy=copy)
        else:
            source = u if how == "caller" else Named(u, stream.ptr)
            caller = {"named": None, "both": other, "caller": stream}[how]
            ticket = history.checkpoint(key, u=source, copy=copy, stream=caller)
        assert not stream.done, "the call waited for the device"
        if copy:
            copied(u.data.ptr, junk, stream)  # at once: what is queued later waits for the capture
        ticket.wait(timeout=60)
        exact += same(restored(history, key), kept)
    assert exact == ROUNDS


def test_several_streams_in_one_checkpoint(history: velocpy.History, spin: Any) -> None:
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    for key in range(ROUNDS):
        kept = [random_array(10 * key + i) for i in range(4)]
        arrays = [cupy.zeros(ELEMENTS, np.int32) for _ in streams]
        cupy.cuda.Device().synchronize()
        for i, stream in enumerate(streams):
            with stream:
                spin(SPIN * (i + 1) // 4)
            copied(arrays[i].data.ptr, kept[i], stream)
        history.checkpoint(key, [Named(u, stream.ptr) for u, stream in zip(arrays, streams, strict=True)])
        for u, stream in zip(arrays, streams, strict=True):
            copied(u.data.ptr, kept[0], stream)
        with history.restore(key, last=True) as state:
            for i, want in enumerate(kept):
                assert same(cupy.asarray(state[i]), want), (key, i)


def test_restore_behind_a_stream_that_is_busy(history: velocpy.History, spin: Any) -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    u, seen, junk = cupy.zeros(ELEMENTS, np.int32), cupy.zeros(ELEMENTS, np.int32), random_array(99)
    exact = 0
    for key in range(ROUNDS):
        kept = random_array(key)
        history.checkpoint(key, u=kept)
        cupy.cuda.Device().synchronize()
        with stream:
            spin()
        copied(u.data.ptr, junk, stream)  # still to come when the restore is called
        history.restore(key, into={"u": Named(u, stream.ptr)})
        assert not stream.done, "the call waited for the device"
        copied(seen.data.ptr, u, stream)
        copied(u.data.ptr, junk, stream)
        exact += same(seen, kept)
    assert exact == ROUNDS


def test_numba(history: velocpy.History, spin: Any) -> None:
    cuda = pytest.importorskip("numba.cuda")
    junk, exact = random_array(99), 0
    for key in range(ROUNDS):
        kept, stream = random_array(key), cuda.stream()
        u = cuda.device_array(ELEMENTS, np.int32, stream=stream)
        handle = u.__cuda_array_interface__["stream"]
        assert handle not in (None, 0, 1, 2)
        own = cupy.cuda.ExternalStream(handle)
        with own:
            spin()
        copied(u.__cuda_array_interface__["data"][0], kept, own)
        history.checkpoint(key, u=u)
        copied(u.__cuda_array_interface__["data"][0], junk, own)
        with history.restore(key) as state:
            exact += np.array_equal(cuda.as_cuda_array(state["u"]).copy_to_host(), cupy.asnumpy(kept))
        back = cuda.device_array(ELEMENTS, np.int32, stream=stream)
        history.restore(key, into={"u": back})
        assert np.array_equal(back.copy_to_host(stream=stream), cupy.asnumpy(kept))
    assert exact == ROUNDS


def test_numba_on_the_default_stream(history: velocpy.History, spin: Any) -> None:
    """Numba names no stream then, although work is queued there."""
    cuda = pytest.importorskip("numba.cuda")
    junk = random_array(99)
    for key in range(ROUNDS):
        kept, u = random_array(key), cuda.device_array(ELEMENTS, np.int32)
        spin()
        copied(u.__cuda_array_interface__["data"][0], kept, cupy.cuda.Stream.null)
        history.checkpoint(key, u=u)
        copied(u.__cuda_array_interface__["data"][0], junk, cupy.cuda.Stream.null)
        assert same(restored(history, key), kept), key


def test_jax(run_python: RunPython) -> None:
    """In a process of its own: JAX would keep most of the device's memory for itself."""
    pytest.importorskip("jax")
    done = run_python(
        """
import jax, jax.numpy as jnp, numpy as np, velocpy

N = 8192

@jax.jit
def steps(x, w):                                     # a permutation: exact, and a tenth of a second long
    for _ in range(10):
        x = jnp.matmul(x, w, precision=jax.lax.Precision.HIGHEST)
    return x

w = jnp.asarray(np.eye(N, dtype=np.float32)[np.random.default_rng(1).permutation(N)])
x = [jnp.asarray(np.random.default_rng(key).random((N, N), np.float32)) for key in range(10)]
first = jax.block_until_ready(steps(x[0], w))        # it is compiled
half = jnp.arange(1 << 20, dtype=jnp.bfloat16)
with velocpy.open(device="1GiB", host="2GiB") as store:
    history = store.history("h")
    history.checkpoint("warm", u=first)
    store.wait()
    history.drop("warm")
    late, exact = 0, 0
    for key in range(10):
        y = steps(x[key], w)
        history.checkpoint(key, u=y)
        late += not y.is_ready()
        want = np.asarray(y)
        back = np.empty_like(want)
        history.restore(key, into={"u": back})
        exact += np.array_equal(back, want)
        with history.restore(key) as state:
            shown = jax.dlpack.from_dlpack(state["u"])
            assert np.array_equal(np.asarray(shown), want), key
            del shown
        if key > 0:
            history.drop(key)
    history.checkpoint("half", u=half)
    with history.restore("half") as state:
        shown = jax.dlpack.from_dlpack(state["u"])
        assert shown.dtype == jnp.bfloat16 and bool((shown == half).all())
        del shown
    try:
        history.restore(0, into={"u": x[0]})
    except velocpy.errors.InvalidArgument as error:
        assert "read-only" in str(error), error
    else:
        raise AssertionError("an array of JAX was written")
print(late, exact)
""",
        env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        timeout=280,
    )
    assert (done.returncode, done.stdout) == (0, "10 10\n"), done.stderr


def core_of_cuda() -> Any:
    """The module with Device, wherever this version has it."""
    core = pytest.importorskip("cuda.core")
    return core if hasattr(core, "Device") else pytest.importorskip("cuda.core.experimental")


def test_buffers_and_streams_of_cuda_core(history: velocpy.History, spin: Any) -> None:
    """Buffers have DLPack alone, which does not order them: the caller names the stream."""
    device = core_of_cuda().Device(0)
    device.set_current()
    stream, junk, exact = device.create_stream(), random_array(99), 0
    own = cupy.cuda.ExternalStream(int(stream.handle))
    for key in range(ROUNDS):
        kept = random_array(key)
        buffer = device.allocate(kept.nbytes, stream=stream)
        for source in (buffer, Named(cupy.zeros(ELEMENTS, np.int32), int(stream.handle))):
            address = source.array.data.ptr if isinstance(source, Named) else int(source.handle)
            cupy.cuda.Device().synchronize()
            with own:
                spin()
            copied(address, kept, own)
            history.checkpoint(key, u=source, stream=stream if source is buffer else None)
            assert not own.done, "the call waited for the device"
            copied(address, junk, own)
            with history.restore(key, stream=stream) as state:
                seen = cupy.from_dlpack(state["u"]).view(np.int32)
                exact += same(seen, kept)
                del seen
        buffer.close(stream)
    assert exact == 2 * ROUNDS


def test_torch_behind_dlpack(history: velocpy.History) -> None:
    """What shows a tensor by DLPack alone is ordered by torch."""
    torch = pytest.importorskip("torch")

    class Hidden:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor

        def __dlpack__(self, **options: Any) -> Any:
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.tensor.__dlpack_device__()

    side = torch.cuda.Stream()
    u = torch.zeros(ELEMENTS, dtype=torch.int32, device="cuda")
    for key in range(ROUNDS):
        kept = torch.as_tensor(random_array(key), device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(SPIN)
            u.copy_(kept)
            ticket = history.checkpoint(key, u=Hidden(u))
        assert not side.query(), "the call waited for the device"
        ticket.wait(timeout=60)
        assert np.array_equal(restored(history, key), kept.cpu().numpy()), key


@pytest.mark.parametrize("consumer", ["from_dlpack", "as_tensor", "cupy.from_dlpack", "cupy.asarray"])
def test_leases_are_arrays_for_others(tmp_path: Path, consumer: str) -> None:
    """What came from a library that velocpy does not know goes to any other, on a stream that is current there."""
    torch = pytest.importorskip("torch")
    torch.cuda.init()
    side, queue = torch.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)
    with velocpy.open(tmp_path, device="40MiB", host="1GiB", durable=False) as store:
        history = store.history("h")
        kept = [random_array(key) for key in range(8)]
        for key, u in enumerate(kept):  # more than the device's tier holds: they come up for their restores
            history.checkpoint(key, u=Named(u, cupy.cuda.runtime.streamLegacy))
            history.wait("host")
        seen = cupy.zeros(ELEMENTS, np.int32)
        cupy.cuda.runtime.deviceSynchronize()  # neither stream waits for the default one, in which it is cleared
        for key, want in enumerate(kept):
            lease = history.restore(key)
            array = lease["u"]
            if consumer.startswith("cupy"):
                with queue:
                    shown = getattr(cupy, consumer[5:])(array)
                    assert (shown.dtype, shown.shape) == (np.int32, (ELEMENTS,))
                copied(seen.data.ptr, shown, queue)
            else:
                with torch.cuda.stream(side):
                    shown = (
                        torch.from_dlpack(array) if consumer == "from_dlpack" else torch.as_tensor(array, device="cuda")
                    )
                    assert (shown.dtype, tuple(shown.shape)) == (torch.int32, (ELEMENTS,))
                    torch.as_tensor(seen, device="cuda").copy_(shown)
                side.synchronize()
            queue.synchronize()
            del shown, array
            lease.release()
            assert same(seen, want), key
        with history.restore(0, last=True) as state:  # the caller's own: it may be written
            mine = torch.from_dlpack(state["u"])
            mine += 1
            assert np.array_equal(mine.cpu().numpy(), cupy.asnumpy(kept[0]) + 1)
            del mine


def test_a_lease_outlives_its_store_in_another_library(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    kept = random_array(1)
    with velocpy.open(tmp_path, device="64MiB", host="64MiB", durable=False) as store:
        history = store.history("h")
        history.checkpoint(0, u=Named(kept, None))
        tensor = torch.from_dlpack(history.restore(0)["u"])
    assert np.array_equal(tensor.cpu().numpy(), cupy.asnumpy(kept))


def test_debug_finds_who_writes_into_a_lease(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    torch = pytest.importorskip("torch")
    with velocpy.open(tmp_path, device="64MiB", host="64MiB", durable=False, debug=True) as store:
        history = store.history("h")
        history.checkpoint(0, u=Named(random_array(1), None))
        lease = history.restore(0)
        written = torch.from_dlpack(lease["u"])
        written[77] += 1
        del written
        lease.release()
        del lease
        store.stats()  # passes on what the core has to say
    assert "wrote into a lease" in caplog.text
