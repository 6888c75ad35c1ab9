"""What an application with streams of its own does beside a store, on the driver's double.

`test_streams` runs each function in a process of its own. An argument is the seed of its random data.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from board import LEGACY, PER_THREAD, Board
from foreign import Dlpack, Interface, Seen

import velocpy

#: A stream that the array's interface names, by what it is; None: it says that no order is needed.
Stream = int | None


@contextmanager
def opened(device: str = "32MiB") -> Iterator[tuple[Board, velocpy.Store]]:
    """A store on the double; afterwards everything was ordered."""
    board = Board()
    with velocpy.open(device=device, host="128MiB") as store:
        yield board, store
    gc.collect()  # leases, whose release is watched too
    assert board.misuse() == []


class Array(Interface):
    """An array on the double. It names a stream; ``-1``: its interface has no such entry."""

    def __init__(self, board: Board, nbytes: int, stream: Stream = -1) -> None:
        self.address, self.nbytes = board.allocate(nbytes), nbytes
        entries = {} if stream == -1 else {"stream": stream}
        super().__init__(shape=(nbytes,), typestr="|u1", data=(self.address, False), **entries)


def sizes(chance: random.Random, count: int) -> list[int]:
    return [chance.choice([1, 63, 4096, chance.randrange(1, 3 << 20)]) for _ in range(count)]


def restored(history: velocpy.History, key: Any, region: str, nbytes: int) -> bytes:
    back = np.empty(nbytes, np.uint8)
    history.restore(key, [region], into=[back])
    return back.tobytes()


def capture(seed: int, make: Callable[[Board], tuple[Stream, int]]) -> None:
    """A capture reads behind what its array's stream has to do, the call waits for nothing, and what comes later waits.

    ``make`` gives the stream that the array names, and the one that fills it.
    """
    chance = random.Random(seed)
    with opened() as (board, store):
        history = store.history("h")
        for key, nbytes in enumerate(sizes(chance, 4)):
            named, filling = make(board)
            u = Array(board, nbytes, named)
            content = chance.randbytes(nbytes)
            release = board.hold(filling)
            board.fill(u.address, content, filling)
            ticket = history.checkpoint(key, u=u)
            assert not ticket.captured  # and the call has returned
            board.fill(u.address, chance.randbytes(nbytes), filling)
            release()
            ticket.wait(timeout=60)
            assert restored(history, key, "u", nbytes) == content


def stream_of_the_array(seed: int) -> None:
    def own(board: Board) -> tuple[Stream, int]:
        stream = board.stream()
        return stream, stream

    capture(seed, own)


def blocking_stream_of_the_array(seed: int) -> None:
    def own(board: Board) -> tuple[Stream, int]:
        stream = board.stream(blocking=True)
        return stream, stream

    capture(seed, own)


def legacy_stream(seed: int) -> None:
    capture(seed, lambda board: (LEGACY, LEGACY))


def stream_of_the_thread(seed: int) -> None:
    capture(seed, lambda board: (PER_THREAD, PER_THREAD))


def no_stream(seed: int) -> None:
    """Where an interface names none, the legacy default stream is what the library has, as Numba's is."""
    capture(seed, lambda board: (None, LEGACY))
    capture(seed, lambda board: (-1, LEGACY))


def several_arrays(seed: int) -> None:
    """Every array of a checkpoint is read behind its own stream, whichever goes on last."""
    chance = random.Random(seed)
    with opened() as (board, store):
        history = store.history("h")
        for key in range(5):
            streams = [board.stream(chance.random() < 0.5) for _ in range(3)] + [PER_THREAD]
            regions, content, releases = {}, {}, []
            for i, nbytes in enumerate(sizes(chance, 6)):
                stream = chance.choice(streams)
                regions[f"u{i}"] = u = Array(board, nbytes, stream)
                content[f"u{i}"] = chance.randbytes(nbytes)
                if chance.random() < 0.7:
                    releases.append(board.hold(stream))
                board.fill(u.address, content[f"u{i}"], stream)
            ticket = history.checkpoint(key, regions)
            for u in regions.values():
                board.fill(u.address, chance.randbytes(u.nbytes), u.__cuda_array_interface__["stream"])
            chance.shuffle(releases)
            for release in releases:
                assert not ticket.captured
                release()
            ticket.wait(timeout=60)
            for name, want in content.items():
                assert restored(history, key, name, len(want)) == want, name


def array_and_caller(seed: int) -> None:
    """With ``stream=`` as well the capture is behind both streams, and both wait for it."""
    chance = random.Random(seed)
    with opened() as (board, store):
        history = store.history("h")
        for key in range(6):
            array, caller = board.stream(), board.stream()
            nbytes = chance.randrange(1, 2 << 20)
            u, v = Array(board, nbytes, array), Array(board, nbytes)
            content = chance.randbytes(nbytes)
            releases = [board.hold(stream) for stream in (array, caller)]
            board.fill(u.address, content, array)
            board.fill(v.address, content, caller)
            ticket = history.checkpoint(key, u=u, v=v, stream=caller)
            board.fill(u.address, chance.randbytes(nbytes), chance.choice([array, caller]))
            board.fill(v.address, chance.randbytes(nbytes), chance.choice([array, caller]))
            chance.shuffle(releases)
            for release in releases:
                assert not ticket.captured
                release()
            ticket.wait(timeout=60)
            assert restored(history, key, "u", nbytes) == restored(history, key, "v", nbytes) == content


def borrowed_arrays(seed: int) -> None:
    """``copy=False`` reads behind the array's stream as well."""
    chance = random.Random(seed)
    with opened() as (board, store):
        history = store.history("h")
        for key, nbytes in enumerate(sizes(chance, 5)):
            stream = board.stream()
            u, content = Array(board, nbytes, stream), chance.randbytes(nbytes)
            release = board.hold(stream)
            board.fill(u.address, content, stream)
            ticket = history.checkpoint(key, u=u, copy=False)
            assert not ticket.captured
            release()
            ticket.wait(timeout=60)
            board.fill(u.address, chance.randbytes(nbytes), stream)
            assert restored(history, key, "u", nbytes) == content


def destinations(seed: int) -> None:
    """A restore writes behind what the destination's stream has to do, and that stream reads what it wrote."""
    chance = random.Random(seed)
    with opened("8MiB") as (board, store):
        history = store.history("h")
        content = {}
        for key in range(8):  # more than the device's tier holds: some come up from host memory
            content[key] = chance.randbytes(2 << 20)
            history.checkpoint(key, u=np.frombuffer(content[key], np.uint8), tier="host")
        history.wait("host")
        for key, want in content.items():
            stream = chance.choice([board.stream(), board.stream(blocking=True), LEGACY])
            u, seen = Array(board, len(want), stream), board.allocate(len(want))
            release = board.hold(stream)
            board.fill(u.address, chance.randbytes(len(want)), stream)
            release()  # a restore from host memory that is not pinned may wait for it
            history.restore(key, into={"u": u})
            board.copy(seen, u.address, len(want), stream)
            board.fill(u.address, chance.randbytes(len(want)), stream)
            assert board.look(seen, len(want)) == want


def comparisons(seed: int) -> None:
    """Checkpoints on the device, in host memory and on the way there are compared with ones of host memory."""
    chance = random.Random(seed)
    with opened("8MiB") as (board, store):
        history = store.history("h")
        content = {}
        for key in range(8):  # more than the device's tier holds
            content[key] = bytearray(chance.randbytes(2 << 20))
            u = Array(board, len(content[key]), stream := board.stream())
            board.fill(u.address, bytes(content[key]), stream)
            history.checkpoint(key, u=u)
            for _ in range(chance.randrange(3)):
                content[key][chance.randrange(len(content[key]))] ^= 1 << chance.randrange(8)
            history.checkpoint(f"host {key}", u=np.frombuffer(bytes(content[key]), np.uint8))
        for key in chance.sample(range(8), 8):
            found = history.compare(key, history, f"host {key}")
            captured = np.frombuffer(restored(history, key, "u", len(content[key])), np.uint8)
            unlike = np.flatnonzero(captured != np.frombuffer(bytes(content[key]), np.uint8)).tolist()
            assert found.equal == (not unlike)
            for region in found.regions:
                assert region.count == len(unlike)
                assert (region.ranges[0][0], region.bounds[0]) == (unlike[0], (unlike[0], unlike[-1] + 1))
            assert history.compare(key, history, key).read_nbytes == 0


def destinations_on_the_device(seed: int) -> None:
    """The same for what lies on the device: the call returns while the destination's stream is still busy."""
    chance = random.Random(seed)
    with opened() as (board, store):
        history = store.history("h")
        for key in range(5):
            first, second = board.stream(), board.stream()
            nbytes = chance.randrange(1, 2 << 20)
            u, v = Array(board, nbytes, first), Array(board, nbytes, second)
            content = {"u": chance.randbytes(nbytes), "v": chance.randbytes(nbytes)}
            board.fill(u.address, content["u"], first)
            board.fill(v.address, content["v"], second)
            history.checkpoint(key, u=u, v=v)
            releases = [board.hold(stream) for stream in (first, second)]
            board.fill(u.address, chance.randbytes(nbytes), first)
            board.fill(v.address, chance.randbytes(nbytes), second)
            history.restore(key, into={"u": u, "v": v})
            seen = board.allocate(nbytes), board.allocate(nbytes)
            board.copy(seen[0], u.address, nbytes, first)
            board.copy(seen[1], v.address, nbytes, second)
            chance.shuffle(releases)
            for release in releases:
                release()
            assert board.look(seen[0], nbytes) == content["u"]
            assert board.look(seen[1], nbytes) == content["v"]


def dlpack(seed: int) -> None:
    """What has DLPack alone is told the stream that reads it: the caller's, or else the legacy default stream."""
    chance = random.Random(seed)
    with opened() as (board, store):
        history = store.history("h")
        kept = []
        for key, nbytes in enumerate(sizes(chance, 6)):
            producing, caller = board.stream(), chance.choice([None, board.stream()])
            address, content = board.allocate(nbytes), chance.randbytes(nbytes)

            def ordered(stream: int | None, producing: int = producing) -> None:
                assert stream is not None
                board.follow(stream, producing)

            version = chance.choice([None, (1, 0), (1, 3)])
            u = Dlpack(address, (nbytes,), "|u1", ordered=ordered, version=version)
            release = board.hold(producing)
            board.fill(address, content, producing)
            ticket = history.checkpoint(key, u=u, stream=caller)
            assert u.streams == [caller or LEGACY]
            assert not ticket.captured
            assert u.returned == 0  # the memory is not to be used for something else yet
            board.fill(address, chance.randbytes(nbytes), caller or LEGACY)
            release()
            ticket.wait(timeout=60)
            assert restored(history, key, "u", nbytes) == content
            kept.append(u)
        store.wait()
        assert store._core.kept_sources() == 0
        assert [u.returned for u in kept] == [1] * len(kept)


def interface_without_streams(seed: int) -> None:
    """As JAX's arrays: an interface from before streams, and DLPack, which is then told the stream."""
    chance = random.Random(seed)
    with opened() as (board, store):
        history = store.history("h")
        for key, nbytes in enumerate(sizes(chance, 4)):
            producing = board.stream()
            plain = Array(board, nbytes)
            plain.__cuda_array_interface__["version"] = 2

            class Both(Dlpack):
                __cuda_array_interface__ = plain.__cuda_array_interface__

            u = Both(plain.address, (nbytes,), "|u1", ordered=lambda stream, on=producing: board.follow(stream, on))
            content = chance.randbytes(nbytes)
            release = board.hold(producing)
            board.fill(plain.address, content, producing)
            ticket = history.checkpoint(key, u=u)
            assert u.streams == [LEGACY]
            assert not ticket.captured
            release()
            ticket.wait(timeout=60)
            assert restored(history, key, "u", nbytes) == content


def written_through_dlpack(seed: int) -> None:
    """Only what says that it may be written is a destination."""
    chance = random.Random(seed)
    with opened() as (board, store):
        history = store.history("h")
        nbytes = chance.randrange(1, 1 << 20)
        u, content = Array(board, nbytes, LEGACY), chance.randbytes(nbytes)
        board.fill(u.address, content, LEGACY)
        history.checkpoint(0, u=u)
        for wrong in ({"version": None}, {"flags": 1}, {"flags": 2}):
            refused = Dlpack(u.address, (nbytes,), "|u1", **wrong)
            with pytest.raises(velocpy.errors.InvalidArgument, match="read-only"):
                history.restore(0, into=[refused])
        stream, back = board.stream(), board.allocate(nbytes)
        history.restore(0, into=[Dlpack(back, (nbytes,), "|u1")], stream=stream)
        seen = board.allocate(nbytes)
        board.copy(seen, back, nbytes, stream)
        assert board.look(seen, nbytes) == content


def leases(seed: int) -> None:
    """Whoever takes the array of a lease gets its bytes, and they stay until it has read them."""
    chance = random.Random(seed)
    with opened("8MiB") as (board, store):
        history = store.history("h")
        nbytes, content = 2 << 20, {}
        for key in range(6):
            stream = board.stream()
            u, content[key] = Array(board, nbytes, stream), chance.randbytes(nbytes)
            board.fill(u.address, bytes(content[key]), stream)
            history.checkpoint(key, u=u)
        history.wait("host")
        for key in [*content, *content]:
            reader, seen = board.stream(), board.allocate(nbytes)
            lease = history.restore(key)
            array = lease["u"]
            shown = array.__cuda_array_interface__
            assert (shown["version"], shown["shape"], shown["data"][1]) == (3, (nbytes,), False)
            held = board.hold(reader)
            if chance.random() < 0.5:
                capsule = array.__dlpack__(stream=reader, max_version=(1, 0))
                tensor = Seen(capsule)
                assert (tensor.address, tensor.shape, tensor.flags) == (shown["data"][0], (nbytes,), 1)
                del capsule
            else:
                board.follow(reader, shown["stream"])
                lease.used_on(reader)
            board.copy(seen, shown["data"][0], nbytes, reader)
            del lease, array
            for other in range(20, 23):  # into the room that was given back
                history.checkpoint(other, u=np.frombuffer(chance.randbytes(nbytes), np.uint8))
            held()
            assert board.look(seen, nbytes) == content[key], key


def leases_on_the_legacy_stream(seed: int) -> None:
    """A consumer that works on the stream that the interface names needs nothing else."""
    chance = random.Random(seed)
    with opened("8MiB") as (board, store):
        history = store.history("h")
        nbytes, content = 2 << 20, {}
        for key in range(6):
            stream = board.stream()
            u, content[key] = Array(board, nbytes, stream), chance.randbytes(nbytes)
            board.fill(u.address, bytes(content[key]), stream)
            history.checkpoint(key, u=u)
        history.wait("host")
        for key in [*content, *content]:
            lease = history.restore(key, stream=board.stream())  # what the lease was asked for on is another one
            shown, seen = lease["u"].__cuda_array_interface__, board.allocate(nbytes)
            board.copy(seen, shown["data"][0], nbytes, shown["stream"])
            del lease
            for other in range(20, 23):
                history.checkpoint(other, u=np.frombuffer(chance.randbytes(nbytes), np.uint8))
            assert board.look(seen, nbytes) == content[key], key


def writers_of_leases_are_found(seed: int) -> None:
    """``debug=True`` finds who writes into a lease that it was given as another library's array."""
    chance = random.Random(seed)
    board = Board()
    with velocpy.open(device="32MiB", host="128MiB", debug=True) as store:
        history = store.history("h")
        u = Array(board, 5000, LEGACY)
        board.fill(u.address, chance.randbytes(5000), LEGACY)
        history.checkpoint(0, u=u)
        lease = history.restore(0)
        shown = lease["u"].__cuda_array_interface__
        board.fill(shown["data"][0] + chance.randrange(5000), b"\x00\xff", shown["stream"])
        board.settle()
        lease.release()
        del lease
        gc.collect()
        failures = velocpy._core.release_failures()
        assert len(failures) == 1, failures


def round_trip(seed: int) -> None:
    """The array of a lease is an array like any other: a source, and, when the lease is writable, a destination."""
    chance = random.Random(seed)
    with opened() as (board, store):
        history = store.history("h")
        stream = board.stream()
        u, content = Array(board, 70_000, stream), chance.randbytes(70_000)
        board.fill(u.address, content, stream)
        history.checkpoint(0, u=u)
        with history.restore(0) as first:
            history.checkpoint(1, u=first["u"])
            assert not first["u"].writable
            with pytest.raises(velocpy.errors.InvalidArgument, match="read-only"):  # others may share it
                history.restore(1, into={"u": first["u"]})
        assert restored(history, 1, "u", 70_000) == content
        board.fill(u.address, (other := chance.randbytes(70_000)), stream)
        history.checkpoint(2, u=u)
        with history.restore(1, last=True) as mine:
            history.restore(2, into={"u": mine["u"]})
            seen = board.allocate(70_000)
            board.copy(seen, mine["u"].__cuda_array_interface__["data"][0], 70_000, LEGACY)
            assert board.look(seen, 70_000) == other


def arrays_outlive_their_store(seed: int) -> None:
    """The array of a lease is good for every consumer after the lease and the store have gone."""
    chance = random.Random(seed)
    with opened() as (board, store):
        history = store.history("h")
        u, content = Array(board, 9000, LEGACY), chance.randbytes(9000)
        board.fill(u.address, content, LEGACY)
        history.checkpoint(0, u=u)
        lease = history.restore(0)
        array = lease["u"]
        lease.release()
        store.close()
        reader, seen = board.stream(), [board.allocate(9000) for _ in range(2)]
        shown = array.__cuda_array_interface__
        board.copy(seen[0], shown["data"][0], 9000, shown["stream"])
        tensor = array.__dlpack__(stream=reader)
        board.copy(seen[1], Seen(tensor).address, 9000, reader)
        assert [board.look(at, 9000) for at in seen] == [content, content]
        del array, lease, tensor


def random_work(seed: int) -> None:
    """Everything at once, on arrays of several streams and of a history that is larger than the device's tier."""
    chance = random.Random(seed)
    with opened("6MiB") as (board, store):
        history = store.history("h")
        streams = [board.stream(), board.stream(), board.stream(blocking=True), LEGACY, PER_THREAD]
        nbytes = 300_000
        arrays = [Array(board, nbytes, stream) for stream in streams]
        content = [b""] * len(arrays)  # what will lie there, behind the array's stream
        captured: dict[int, dict[str, bytes]] = {}
        seen: list[tuple[int, bytes]] = []

        def fill(i: int) -> None:
            content[i] = chance.randbytes(nbytes)
            board.fill(arrays[i].address, content[i], streams[i])

        def capture(key: int) -> None:
            some = chance.sample(range(len(arrays)), chance.randrange(1, len(arrays)))
            caller = chance.choice([None, None, *streams])
            copy = chance.random() < 0.8
            ticket = history.checkpoint(key, {str(i): arrays[i] for i in some}, stream=caller, copy=copy)
            captured[key] = {str(i): content[i] for i in some}
            if not copy:
                ticket.wait(timeout=60)
            for i in chance.sample(some, len(some) // 2):
                fill(i)

        def restore(key: int) -> None:
            names = list(captured[key])
            some = chance.sample(range(len(arrays)), len(names))
            last = chance.random() < 0.3
            history.restore(key, into={name: arrays[i] for name, i in zip(names, some, strict=True)}, last=last)
            for name, i in zip(names, some, strict=True):
                content[i] = captured[key][name]
            if last:
                del captured[key]

        def read(key: int) -> None:
            last = chance.random() < 0.3
            with history.restore(key, last=last) as lease:
                for name, want in captured[key].items():
                    to, reader = board.allocate(nbytes), chance.choice(streams)
                    if chance.random() < 0.5:
                        shown = Seen(lease[name].__dlpack__(stream=reader)).address
                    else:
                        shown, reader = lease[name].__cuda_array_interface__["data"][0], LEGACY
                    board.copy(to, shown, nbytes, reader)
                    seen.append((to, want))
            if last:
                del captured[key]

        for i in range(len(arrays)):
            fill(i)
        for step in range(120):
            what = chance.random()
            if what < 0.4 or not captured:
                capture(step % 20)
            elif what < 0.6:
                restore(chance.choice(list(captured)))
            elif what < 0.8:
                read(chance.choice(list(captured)))
            elif what < 0.9:
                fill(chance.randrange(len(arrays)))
            else:
                key = chance.choice(list(captured))
                history.drop(key)
                del captured[key]
        for array, want in zip(arrays, content, strict=True):
            assert board.look(array.address, nbytes) == want
        for at, want in seen:
            assert board.look(at, nbytes) == want


SCENARIOS = [
    stream_of_the_array,
    blocking_stream_of_the_array,
    legacy_stream,
    stream_of_the_thread,
    no_stream,
    several_arrays,
    array_and_caller,
    borrowed_arrays,
    destinations,
    comparisons,
    destinations_on_the_device,
    dlpack,
    interface_without_streams,
    written_through_dlpack,
    leases,
    leases_on_the_legacy_stream,
    writers_of_leases_are_found,
    round_trip,
    arrays_outlive_their_store,
    random_work,
]
