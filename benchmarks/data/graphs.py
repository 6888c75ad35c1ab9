"""Graphs of the kinds of Tan et al., ICPP'23, table 1, in any size.

Vertices that are neighbours have numbers that are close to each other, as there: the paper orders vertices by Gorder
(Wei et al., SIGMOD 2016), here those of a plane follow a Z-order curve, and events their time.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from velocpy.extra import MissingExtra


class Graph(NamedTuple):
    """An undirected graph without loops: the neighbours of a vertex are ``ends[begins[vertex]:begins[vertex + 1]]``."""

    begins: np.ndarray
    ends: np.ndarray

    @property
    def vertices(self) -> int:
        """How many vertices there are."""
        return len(self.begins) - 1

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return len(self.ends) // 2


def graph_of(vertices: int, pairs: np.ndarray) -> Graph:
    """The graph of these edges; an edge that is there several times counts once, and a loop not at all."""
    low, high = pairs.min(axis=1).astype(np.int64), pairs.max(axis=1).astype(np.int64)
    keys = np.unique((low * vertices + high)[low != high])
    low, high = keys // vertices, keys % vertices
    sources, ends = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((ends, sources))
    begins = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=vertices), out=begins[1:])
    return Graph(begins, ends[order].astype(np.int32))


def delaunay(vertices: int, seed: int = 0) -> Graph:
    """The Delaunay triangulation of points that are drawn from a square."""
    x, y = _along_curve(np.random.default_rng(seed).random((2, vertices)))
    triangles, _ = _triangulated(x, y)
    return graph_of(vertices, np.concatenate([triangles[:, pair] for pair in ([0, 1], [1, 2], [0, 2])]))


def bubbles(vertices: int, seed: int = 0) -> Graph:
    """The triangles of an adaptive mesh, finer along the skins of bubbles, and which of them share an edge.

    Every vertex has three neighbours but those at the rim of the square.
    """
    random = np.random.default_rng(seed)
    points = vertices // 2 + 64  # which give a little less than twice as many triangles
    skin = points // 2
    centres, radii = random.random((2, 24)), 0.05 + 0.1 * random.random(24)
    which, angle = random.integers(0, 24, skin), 2 * np.pi * random.random(skin)
    away = radii[which] * (1 + 0.02 * random.standard_normal(skin))
    near = centres[:, which] + away * np.stack([np.cos(angle), np.sin(angle)])
    x, y = np.concatenate([np.abs(near) % 1.0, random.random((2, points - skin))], axis=1)
    triangles, neighbours = _triangulated(x, y)
    order = _curve(np.stack([x[triangles].mean(axis=1), y[triangles].mean(axis=1)]))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    sources = np.repeat(np.arange(len(triangles)), 3)
    beside = neighbours.ravel() >= 0
    pairs = place[np.stack([sources[beside], neighbours.ravel()[beside]], axis=1)]
    return _first(graph_of(len(triangles), pairs), vertices)


def roads(vertices: int, seed: int = 0) -> Graph:
    """A grid of crossings of which most streets are missing, each street a chain of vertices, as maps have them."""
    random = np.random.default_rng(seed)
    side = max(3, int(np.sqrt(vertices / 5.2)))
    at = np.arange(side * side).reshape(side, side)
    streets = np.concatenate(
        [np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()]), np.stack([at[:-1].ravel(), at[1:].ravel()])], axis=1
    )
    streets = streets[:, random.random(streets.shape[1]) < 0.62]
    places = np.stack([at % side, at // side]).reshape(2, -1) + 0.4 * random.random((2, side * side))
    between = random.geometric(1 / 4.4, (1, streets.shape[1]))[0] - 1
    number = np.arange(int(between.sum())) - np.repeat(np.cumsum(between) - between, between)
    street = np.repeat(np.arange(len(between)), between)
    share = (number + 1) / (between[street] + 1)
    begin, end = places[:, streets[0]], places[:, streets[1]]
    points = np.concatenate([places, begin[:, street] + share * (end - begin)[:, street]], axis=1)
    inner = side * side + np.arange(len(street))
    first, last = number == 0, number == between[street] - 1
    pairs = np.concatenate(
        [
            streets[:, between == 0].T,
            np.stack([streets[0, street[first]], inner[first]], axis=1),
            np.stack([inner[:-1], inner[1:]], axis=1)[~last[:-1]],
            np.stack([inner[last], streets[1, street[last]]], axis=1),
        ]
    )
    place = np.empty(points.shape[1], np.int64)
    place[_curve(points)] = np.arange(points.shape[1])
    return _first(graph_of(len(place), place[pairs]), vertices)


def message_race(vertices: int, seed: int = 0, ranks: int = 128) -> Graph:
    """Events of ranks that send to rank 0, which takes the messages as they come: a send and a receipt for each."""
    random = np.random.default_rng(seed)
    rounds = max(1, (vertices - 2 * ranks) // (2 * (ranks - 1)))
    sent = np.arange(rounds)[:, None] + 0.3 * random.random((rounds, ranks - 1))
    came = sent + 0.05 + random.exponential(0.5, sent.shape)
    senders = np.broadcast_to(np.arange(1, ranks), sent.shape)
    return _events(ranks, senders.ravel(), sent.ravel(), np.zeros(sent.size, np.int64), came.ravel())


def mesh_exchange(vertices: int, seed: int = 0, ranks: int = 128) -> Graph:
    """Events of ranks that exchange with neighbours in an unstructured mesh, and take messages as they come."""
    random = np.random.default_rng(seed)
    halves = [random.permutation(ranks) for _ in range(4)]
    beside = np.unique(np.concatenate([np.sort(half.reshape(-1, 2), axis=1) for half in halves]), axis=0)
    links = np.concatenate([beside, beside[:, ::-1]])
    rounds = max(1, (vertices - 2 * ranks) // (2 * len(links)))
    sent = np.arange(rounds)[:, None] + 0.2 * random.random((rounds, len(links)))
    came = sent + 0.25 + random.exponential(0.15, sent.shape)
    senders, receivers = np.broadcast_to(links.T[:, None], (2, *sent.shape))
    return _events(ranks, senders.ravel(), sent.ravel(), receivers.ravel(), came.ravel())


#: The kinds by name; the numbers of vertices in the paper are between 11 and 18 million.
KINDS: dict[str, Callable[[int, int], Graph]] = {
    "delaunay": delaunay,
    "message race": message_race,
    "mesh exchange": mesh_exchange,
    "roads": roads,
    "bubbles": bubbles,
}


def _events(ranks: int, senders: np.ndarray, sent: np.ndarray, receivers: np.ndarray, came: np.ndarray) -> Graph:
    """Events of each rank in a chain, from its start to its end, and an edge from each send to its receipt."""
    messages = len(sent)
    rank = np.concatenate([senders, receivers, np.arange(ranks), np.arange(ranks)])
    time = np.concatenate([sent, came, np.full(ranks, -1.0), np.full(ranks, came.max() + 1.0)])
    place = np.empty(len(time), np.int64)
    place[np.lexsort((rank, time))] = np.arange(len(time))
    chain = np.lexsort((time, rank))
    same = rank[chain[:-1]] == rank[chain[1:]]
    follows = np.stack([chain[:-1], chain[1:]], axis=1)[same]
    messages_of = np.stack([np.arange(messages), messages + np.arange(messages)], axis=1)
    return graph_of(len(time), place[np.concatenate([follows, messages_of])])


def _triangulated(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The triangles of points, and of each the three that share an edge with it, or -1."""
    try:
        found = importlib.import_module("matplotlib.tri").Triangulation(x, y)
    except ImportError as error:
        raise MissingExtra("matplotlib", "demo", "triangulations") from error
    return found.triangles.astype(np.int64), found.neighbors.astype(np.int64)


def _first(graph: Graph, vertices: int) -> Graph:
    """The graph of the first vertices, and the edges among them."""
    if graph.vertices <= vertices:
        return graph
    sources = np.repeat(np.arange(graph.vertices), np.diff(graph.begins))
    kept = (sources < vertices) & (graph.ends < vertices)
    return graph_of(vertices, np.stack([sources[kept], graph.ends[kept]], axis=1))


def _along_curve(points: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(points[:, _curve(points)])


def _curve(points: np.ndarray) -> np.ndarray:
    """The order of points along a Z-order curve."""
    low, high = points.min(axis=1, keepdims=True), points.max(axis=1, keepdims=True)
    scaled = ((points - low) / (high - low) * 0xFFFF).astype(np.uint64)
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        scaled = (scaled | (scaled << np.uint64(shift))) & np.uint64(mask)
    return np.argsort(scaled[0] | (scaled[1] << np.uint64(1)), kind="stable")
