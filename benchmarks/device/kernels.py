"""The GPU kernels by themselves: every byte compared on the host, then times beside a plain device-to-device copy.

It needs a CUDA driver, NumPy and xxhash, and neither an installed velocpy nor a framework, so that it also runs as a
file on a machine that has nothing but the kernels::

    python benchmarks/device/kernels.py --fatbin velocpy_kernels.fatbin --out kernels.json
"""

from __future__ import annotations

import ctypes
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import click
import numpy as np
import numpy.typing as npt

LEAF = 256 << 10
PACK_UNIT = 64 << 10
STRAIGHT_UNIT = 8192
THREADS = {"pack": 256, "pack_sums": 288, "hash": 288, "gather": 256, "scatter": 256}
PIECES = {"": 1020, "_few": 28}
ARRAYS = {"": (448, 1680), "_few": (16, 64)}

Bytes = npt.NDArray[np.uint8]
Run = tuple[int, int, int]
"""to, from, bytes."""


def pieces_type(n: int) -> np.dtype[Any]:
    """The struct Pieces of cuda/parameters.h."""
    single = [("sums", "<u8"), ("count", "<u4"), ("units", "<u4"), ("unit", "<u4"), ("reserved", "<u4")]
    each = [("to", "<u8", n), ("from", "<u8", n), ("bytes", "<u8", n), ("first", "<u4", n), ("sum", "<u4", n)]
    return cast("np.dtype[Any]", np.dtype(cast("Any", single + each)))


def arrays_type(n: int, axes: int) -> np.dtype[Any]:
    """The struct Arrays of cuda/parameters.h."""
    each = [("slot", "<u8", n), ("mem", "<u8", n), ("elements", "<u4", n), ("first", "<u4", n), ("layout", "<u4", n)]
    fields = [("count", "<u4"), ("units", "<u4"), *each, ("stride", "<i8", axes), ("length", "<u4", axes)]
    return cast("np.dtype[Any]", np.dtype(cast("Any", fields)))


class Driver:
    """What is needed of the CUDA driver, on one device and one stream."""

    def __init__(self, fatbin: Path, ordinal: int = 0) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, ordinal)
        self.name = name.value.decode()
        self._module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(self._module), fatbin.read_bytes())
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._owned: list[int] = []

    def call(self, name: str, *arguments: object) -> None:
        """One function of the driver; an error is raised with its name."""
        result = getattr(self._cuda, name)(*arguments)
        if result != 0:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorName(result, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def function(self, name: str) -> ctypes.c_void_p:
        """A kernel."""
        if name not in self._functions:
            found = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(found), self._module, name.encode())
            self._functions[name] = found
        return self._functions[name]

    def allocate(self, size: int) -> int:
        """Memory of the device, until release."""
        at = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
        self._owned.append(at.value)
        return at.value

    def release(self) -> None:
        """Frees all that was allocated."""
        self.synchronize()
        for at in self._owned:
            self.call("cuMemFree_v2", ctypes.c_uint64(at))
        self._owned = []

    def pinned(self, size: int) -> Bytes:
        """Host memory that kernels reach at its own address."""
        at = ctypes.c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(at), ctypes.c_size_t(size), 3)
        return np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(ctypes.c_uint8)), (size,))

    def upload(self, to: int, data: Bytes) -> None:
        """Copies to the device and waits."""
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(to), data.ctypes.data_as(ctypes.c_void_p), data_size(data))
        self.call("cuCtxSynchronize")  # the call may return before the bytes have come

    def download(self, at: int, size: int) -> Bytes:
        """Copies from the device and waits for everything queued before."""
        self.synchronize()
        data = np.empty(size, np.uint8)
        self.call("cuMemcpyDtoH_v2", data.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(at), data_size(data))
        return data

    def copy(self, to: int, source: int, size: int) -> None:
        """Queues a plain copy between two places of the device."""
        addresses = ctypes.c_uint64(to), ctypes.c_uint64(source)
        self.call("cuMemcpyDtoDAsync_v2", *addresses, ctypes.c_size_t(size), self.stream)

    def launch(
        self, name: str, blocks: int, threads: int, parameter: np.ndarray[Any, Any], stream: object = None
    ) -> None:
        """Queues a kernel of one struct, on the driver's own stream unless another is named."""
        values = (ctypes.c_void_p * 1)(parameter.ctypes.data)
        grid, block = (blocks, 1, 1), (threads, 1, 1)
        on = self.stream if stream is None else stream
        self.call("cuLaunchKernel", self.function(name), *grid, *block, 0, on, values, ctypes.c_void_p())

    def synchronize(self) -> None:
        """Waits for the stream."""
        self.call("cuStreamSynchronize", self.stream)

    def event(self) -> ctypes.c_void_p:
        """An event that takes the time."""
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def milliseconds(self, begin: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        """The time between two events that have passed."""
        took = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(took), begin, end)
        return took.value

    def blocks_per_processor(self, name: str, threads: int) -> int:
        """How many blocks of the kernel run on one processor at once."""
        count = ctypes.c_int()
        arguments = self.function(name), threads, ctypes.c_size_t(0)
        self.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(count), *arguments)
        return count.value


def data_size(data: Bytes) -> ctypes.c_size_t:
    """An array's bytes, as the driver takes them."""
    return ctypes.c_size_t(data.nbytes)


Launch = tuple[str, int, int, "np.ndarray[Any, Any]"]
"""name, blocks, threads, parameter."""


def dense(what: str, runs: Sequence[Run], sums: int = 0, unit: int = PACK_UNIT) -> list[Launch]:
    """The launches of pack, pack_sums or hash for these runs."""
    unit = unit if what == "pack" else LEAF
    runs = [run for run in runs if run[2] > 0]
    launches: list[Launch] = []
    word = 0
    while runs:
        form = "_few" if len(runs) <= PIECES["_few"] else ""
        part, runs = runs[: PIECES[form]], runs[PIECES[form] :]
        parameter = np.zeros(1, pieces_type(PIECES[form]))
        table = np.array(part, np.uint64)
        units = (table[:, 2].astype(np.int64) + unit - 1) // unit
        first = np.cumsum(units) - units
        values = {"to": table[:, 0], "from": table[:, 1], "bytes": table[:, 2], "first": first, "sum": first + word}
        for name, column in values.items():
            parameter[name][0, : len(part)] = column
        blocks = int(units.sum())
        for name, value in {"sums": sums, "count": len(part), "units": blocks, "unit": unit}.items():
            parameter[name] = value
        word += blocks
        launches.append((f"velocpy_{what}{form}", blocks, THREADS[what], parameter))
    return launches


def strided(what: str, slot: int, mem: int, axes: Sequence[tuple[int, int]], size: int) -> Launch:
    """The launch of gather or scatter for one array of (length, stride in bytes) and elements of 1 to 16 bytes."""
    lengths = [n for n, _ in axes]
    elements = int(np.prod(lengths))
    turned = 0
    if axes[-1][1] != size and axes[-1][0] >= 16:
        turned = next((i + 1 for i, (n, stride) in enumerate(axes[:-1]) if stride == size and n >= 16), 0)
    blocks = -(-elements // STRAIGHT_UNIT)
    if turned:
        side = 64 if size <= 4 else 32
        along = {turned - 1, len(axes) - 1}
        blocks = int(np.prod([-(-n // side) if i in along else n for i, n in enumerate(lengths)]))
    parameter = np.zeros(1, arrays_type(*ARRAYS["_few"]))
    parameter["count"], parameter["units"] = 1, blocks
    layout = len(axes) << 16 | (size.bit_length() - 1) << 20 | turned << 24
    for name, value in {"slot": slot, "mem": mem, "elements": elements, "layout": layout}.items():
        parameter[name][0, 0] = value
    parameter["length"][0, : len(axes)] = lengths
    parameter["stride"][0, : len(axes)] = [stride for _, stride in axes]
    return f"velocpy_{what}_few", blocks, THREADS[what], parameter


def leaf_hashes(data: Bytes, lengths: Sequence[int], starts: Sequence[int]) -> list[int]:
    """XXH3-64 of every leaf, by another implementation."""
    import xxhash

    leaves = [(s + at, min(LEAF, n - at)) for s, n in zip(starts, lengths, strict=True) for at in range(0, n, LEAF)]
    return [xxhash.xxh3_64_intdigest(data[at : at + n].tobytes()) for at, n in leaves]


def differing(what: str, got: npt.NDArray[Any], want: npt.NDArray[Any]) -> None:
    """Raises with the first difference."""
    wrong = np.flatnonzero(got != want)
    if len(wrong):
        i = wrong[0]
        raise AssertionError(f"{what}: {len(wrong)} of {len(want)} differ, first [{i}]: {got[i]}, not {want[i]}")


def check_dense(driver: Driver, seed: int) -> int:
    """Runs pack, pack_sums and hash over pieces of odd sizes and places; returns how many pieces were right."""
    rng = np.random.default_rng(seed)
    sizes = [*range(0, 260, 7), 1, 2, 3, 240, 241, 1023, 1024, 1025, 65535, 65537, LEAF - 1, LEAF, LEAF + 1]
    sizes += [3 * LEAF, 5 * LEAF + 77, *map(int, rng.integers(1, 70_000, 40)), *([50] * (1100 if seed % 2 else 0))]
    skews = rng.integers(0, 16, (len(sizes), 2)) * (rng.random((len(sizes), 2)) < 0.6)
    room = np.array([(n + 63) // 64 * 64 + 64 for n in sizes])
    starts = np.cumsum(room) - room
    total = int(room.sum())
    before = rng.integers(0, 256, (2, total), np.uint8)
    to, source = driver.allocate(total), driver.allocate(total)
    words = driver.pinned(8 * sum(-(-n // LEAF) for n in sizes)).view(np.uint64)
    driver.upload(source, before[1])
    places = list(zip((starts + skews[:, 0]).tolist(), (starts + skews[:, 1]).tolist(), sizes, strict=True))
    want = before[0].copy()
    for t, f, n in places:
        want[t : t + n] = before[1][f : f + n]
    hashes = np.array(leaf_hashes(before[1], sizes, [f for _, f, _ in places]), np.uint64)
    for what in ("pack", "pack_sums", "hash"):
        driver.upload(to, before[0])
        words[:] = 0
        for launch in dense(what, [(to + t, source + f, n) for t, f, n in places], words.ctypes.data):
            driver.launch(*launch)
        differing(what, driver.download(to, total), before[0] if what == "hash" else want)
        if what != "pack":
            differing(what + "'s sums", words, hashes)
    driver.release()
    return len(sizes)


def layouts(rng: np.random.Generator) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Shapes, the order of their axes in memory, bytes of an element."""
    for size in (1, 2, 4, 8, 16):
        yield (301, 517), (1, 0), size
        yield (64, 64), (1, 0), size
        yield (3, 100, 41), (0, 2, 1), size
        yield (17, 70, 33), (2, 0, 1), size
        for _ in range(6):
            rank = int(rng.integers(1, 6))
            shape = tuple(map(int, rng.integers(1, (3000, 100, 30, 12, 7)[rank - 1], rank)))
            yield shape, tuple(map(int, rng.permutation(rank))), size
        yield (2, 3, 2, 3, 2, 3, 2, 5), tuple(map(int, rng.permutation(8))), size


def check_strided(driver: Driver, seed: int) -> int:
    """Runs gather and scatter over strided arrays, gapped, turned and backwards; returns how many were right."""
    rng = np.random.default_rng(seed)
    done = 0
    for shape, order, size in layouts(rng):
        strides, stride = [0] * len(shape), size * int(rng.integers(1, 3)) if seed % 2 else size
        for axis in reversed(order):
            strides[axis] = stride
            stride = (stride * shape[axis]) + size * int(rng.integers(0, 4))
        backwards = [bool(b) and seed % 3 == 0 for b in rng.integers(0, 2, len(shape))]
        strides = [-s if b else s for s, b in zip(strides, backwards, strict=True)]
        low = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0)
        memory = rng.integers(0, 256, stride + size, np.uint8)
        flat = int(np.prod(shape)) * size
        mem, slot = driver.allocate(memory.nbytes), driver.allocate(flat)
        view: npt.NDArray[Any] = np.ndarray((*shape, size), np.uint8, memory, -low, (*strides, 1))
        axes = list(zip(shape, strides, strict=True))
        driver.upload(mem, memory)
        driver.launch(*strided("gather", slot, mem - low, axes, size))
        differing(f"gather {shape} {strides} {size}", driver.download(slot, flat), view.copy().reshape(-1))
        fresh = rng.integers(0, 256, flat, np.uint8)
        driver.upload(slot, fresh)
        view[...] = fresh.reshape(*shape, size)
        driver.launch(*strided("scatter", slot, mem - low, axes, size))
        differing(f"scatter {shape} {strides} {size}", driver.download(mem, memory.nbytes), memory)
        driver.release()
        done += 2
    return done


def check(driver: Driver, seeds: Sequence[int] = (0, 1, 2, 3)) -> int:
    """Every kernel against NumPy and another XXH3; raises at the first wrong byte, returns the number of cases."""
    return sum(check_dense(driver, seed) + check_strided(driver, seed) for seed in seeds)


Work = Callable[[], object]


def turns(names: Sequence[str], number: int) -> list[str]:
    """The names in the order of a round: each round begins with another one."""
    first = number % len(names)
    return [*names[first:], *names[:first]]


def timed(driver: Driver, works: dict[str, Work], rounds: int, ahead: Work) -> dict[str, list[float]]:
    """Milliseconds of the device for each, by turns. Work queued ahead keeps the host's part out of the time."""
    begin, end = driver.event(), driver.event()
    took: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for number in range(-2, rounds):
        for name in turns(names, number):
            ahead()
            driver.call("cuEventRecord", begin, driver.stream)
            works[name]()
            driver.call("cuEventRecord", end, driver.stream)
            driver.synchronize()
            if number >= 0:
                took[name].append(driver.milliseconds(begin, end))
    return took


def launcher(driver: Driver, launches: Sequence[Launch]) -> Work:
    """Work that queues launches made before."""

    def work() -> None:
        for launch in launches:
            driver.launch(*launch)

    return work


def cut(total: int, count: int, spread: float, seed: int = 1) -> list[int]:
    """So many sizes, multiples of 4, that make up the total; spread 0 makes them equal."""
    weights = np.exp(spread * np.random.default_rng(seed).standard_normal(count))
    edges = np.rint(np.cumsum(weights) / weights.sum() * (total // 4)).astype(np.int64) * 4
    return [int(n) for n in np.diff(edges, prepend=0)]


def runs_of(sizes: Sequence[int], slot: int, mem: int) -> list[Run]:
    """Pieces that lie apart in memory, each at a multiple of 512, and side by side in the slot, at multiples of 64."""
    runs, to, source = [], slot, mem
    for n in sizes:
        runs.append((to, source, n))
        to += (n + 63) // 64 * 64
        source += (n + 511) // 512 * 512 + 512
    return runs


def measure(driver: Driver, rounds: int) -> list[dict[str, Any]]:
    """Times of pack, pack_sums and hash beside one plain copy of as many bytes, and of gathering a turned array."""
    large = 1 << 30
    slot, mem = driver.allocate(large + (16 << 20)), driver.allocate(large + (16 << 20))
    driver.upload(mem, np.random.default_rng(5).integers(0, 256, large, np.uint8))
    words = driver.pinned(8 * (large // LEAF + 8000)).ctypes.data

    def ahead() -> None:
        driver.copy(slot, mem, large)

    rows: list[dict[str, Any]] = []

    def contest(case: str, size: int, works: dict[str, Work]) -> None:
        times = timed(driver, {"copy": lambda: driver.copy(slot, mem, size), **works}, rounds, ahead)
        plain = statistics.median(times["copy"])
        for name, values in times.items():
            median = statistics.median(values)
            rate = size / median / 1e6
            row = {"case": case, "what": name, "µs": median * 1e3, "GB/s": rate, "of copy": median / plain}
            rows.append(row | {"least µs": min(values) * 1e3})

    for size in (1 << 20, 128 << 20, large):
        whole = [(slot, mem, size)]
        works = {
            f"pack {u >> 10} KiB": launcher(driver, dense("pack", whole, 0, u)) for u in (1 << n for n in range(14, 19))
        }
        works |= {what: launcher(driver, dense(what, whole, words)) for what in ("pack_sums", "hash")}
        contest(f"{size >> 20} MiB", size, works)
    skewed = [(slot, mem + 1, 128 << 20)]
    works = {f"{w}, shifted": launcher(driver, dense(w, skewed, words)) for w in ("pack", "pack_sums")}
    contest("128 MiB from an odd address", 128 << 20, works)
    for case, count, spread in (("500 equal", 500, 0.0), ("500 uneven", 500, 2.0), ("5000 uneven", 5000, 2.0)):
        runs = runs_of(cut(large - (4 << 20), count, spread), slot, mem)
        works = {w: launcher(driver, dense(w, runs, words)) for w in ("pack", "pack_sums", "hash")}
        contest(f"{case} pieces, 1 GiB", sum(n for _, _, n in runs), works)
    for size in (1, 2, 4, 8, 16):
        n = 4096
        turned, stepped = [(n, size), (n, n * size)], [(n, 2 * n * size), (n // 2, 2 * size)]
        plain = n * n * size
        works = {what: launcher(driver, [strided(what, slot, mem, turned, size)]) for what in ("gather", "scatter")}
        contest(f"{n} x {n} turned, {size} B", plain, works)
        works = {what: launcher(driver, [strided(what, slot, mem, stepped, size)]) for what in ("gather", "scatter")}
        contest(f"every second of {n} x {n}, {size} B", plain // 2, works)
    driver.release()
    return rows


def host_times(driver: Driver) -> dict[str, float]:
    """Microseconds of the host for one launch, with the small parameter and with the large one."""
    slot, mem = driver.allocate(1 << 20), driver.allocate(1 << 20)
    took = {}
    for name, count in (("few", 8), ("many", 500)):
        launches = dense("pack", [(slot + 64 * i, mem + 64 * i, 64) for i in range(count)])
        work = launcher(driver, launches)
        times = []
        for _ in range(200):
            began = time.perf_counter()
            work()
            times.append((time.perf_counter() - began) * 1e6)
            driver.synchronize()
        took[name] = statistics.median(times)
    driver.release()
    return took


@click.command()
@click.option("--fatbin", type=click.Path(path_type=Path, exists=True), help="Default: that of the checkout.")
@click.option("--rounds", default=31, help="How often each is timed.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the JSON here too.")
@click.option("--check-only", is_flag=True, help="Compare bytes and time nothing.")
def main(fatbin: Path | None, rounds: int, out: Path | None, check_only: bool) -> None:
    """Check the kernels on this machine's first GPU, time them, and print JSON."""
    driver = Driver(fatbin or Path(__file__).parents[2] / "python" / "velocpy" / "velocpy_kernels.fatbin")
    found: dict[str, Any] = {"device": driver.name, "cases right": check(driver)}
    names = {f"velocpy_{what}{form}": threads for what, threads in THREADS.items() for form in PIECES}
    found["blocks per processor"] = {name: driver.blocks_per_processor(name, n) for name, n in names.items()}
    if not check_only:
        found["host µs of a launch"] = host_times(driver)
        found["rows"] = measure(driver, rounds)
    text = json.dumps(found, indent=1, ensure_ascii=False)
    click.echo(text)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
