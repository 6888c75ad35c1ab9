"""The data of the benchmark `deduplicated`: graphlet counts, graphs, trainings and wavefields; and its parts."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from benchmarks.data import graphlets, graphs, series, wavefields
from benchmarks.disk import compressors, deduplicated

needs_cc = pytest.mark.skipif(not graphlets.has_compiler(), reason="there is no C compiler")


@pytest.fixture(autouse=True)
def _needs_matplotlib():
    pytest.importorskip("matplotlib")


def graph_from(vertices, edges):
    return graphs.graph_of(vertices, np.array(sorted(edges), np.int64).reshape(-1, 2))


def counted(graph):
    counts = np.zeros((graph.vertices, graphlets.ORBITS), np.uint32)
    graphlets.count(graph, 0, graph.vertices, counts)
    return counts


def adjacency(graph):
    found = np.zeros((graph.vertices, graph.vertices), np.int64)
    for vertex in range(graph.vertices):
        found[vertex, graph.ends[graph.begins[vertex] : graph.begins[vertex + 1]]] = 1
    return found


def random_graph(vertices, share, seed):
    random = np.random.default_rng(seed)
    return graph_from(
        vertices, [pair for pair in itertools.combinations(range(vertices), 2) if random.random() < share]
    )


def by_all_subsets(graph):
    """Counts by trying all sets of vertices, and telling orbits apart without permutations: by numbers of walks."""
    edges, counts = adjacency(graph), np.zeros((graph.vertices, graphlets.ORBITS), np.uint32)
    known = {}
    number = 0
    for size, pairs in map(graphlets.edges_of, graphlets.GRAPHLETS):
        matrix = adjacency(graph_from(size, pairs))
        within = graphlets.orbits_of(size, pairs)
        for vertex in range(size):
            known[signature(matrix, vertex)] = number + within[vertex]
        number += max(within) + 1
    for size in range(2, 6):
        for subset in itertools.combinations(range(graph.vertices), size):
            matrix = edges[np.ix_(subset, subset)]
            if np.linalg.matrix_power(np.eye(size, dtype=np.int64) + matrix, size).all():
                for at, vertex in enumerate(subset):
                    counts[vertex, known[signature(matrix, at)]] += 1
    return counts


def signature(matrix, vertex):
    """The numbers of closed walks of a vertex, and the sorted ones of all: they tell the 73 orbits apart."""
    powers = [np.linalg.matrix_power(matrix, power) for power in range(2, 8)]
    walks = np.stack([np.diag(power) for power in powers] + [power.sum(axis=1) for power in powers])
    return len(matrix), tuple(walks[:, vertex]), tuple(sorted(map(tuple, walks.T)))


def test_there_are_73_orbits_of_30_graphlets_that_all_differ():
    table, first = graphlets.orbit_table()
    assert len(graphlets.GRAPHLETS) == 30
    assert set(np.unique(table)) == {*range(73), 255}
    found = {
        signature(adjacency(graph_from(n, e)), v)
        for n, e in map(graphlets.edges_of, graphlets.GRAPHLETS)
        for v in range(n)
    }
    assert len(found) == 73
    assert first.tolist() == [0, 0, 1, 3, 11, 75]
    # Labelled connected graphs of 2 to 5 vertices.
    connected = [(table[a:b, 0] != 255).sum() for a, b in itertools.pairwise([1, 3, 11, 75, len(table)])]
    assert connected == [1, 4, 38, 728]


@needs_cc
@pytest.mark.parametrize(
    ("vertices", "share"), [(1, 0.5), (2, 1.0), (7, 0.3), (10, 0.25), (10, 0.5), (9, 0.8), (8, 1.0)]
)
def test_counts_are_those_of_all_subsets(vertices, share):
    graph = random_graph(vertices, share, seed=vertices)
    assert np.array_equal(counted(graph), by_all_subsets(graph))


@needs_cc
@pytest.mark.parametrize("kind", sorted(graphs.KINDS))
def test_counts_of_small_graphs_of_each_kind_have_the_known_sums(kind):
    graph = graphs.KINDS[kind](700, 3)
    counts, edges = counted(graph).astype(np.int64), adjacency(graph)
    degree = edges.sum(axis=1)
    triangles = (edges * (edges.astype(float) @ edges).astype(np.int64)).sum(axis=1) // 2
    assert np.array_equal(counts[:, 0], degree)
    assert np.array_equal(counts[:, 3], triangles)
    assert np.array_equal(counts[:, 2], degree * (degree - 1) // 2 - triangles)
    assert np.array_equal(counts[:, 1], edges @ degree - degree - 2 * triangles)
    sizes = {orbit: size for size, orbit in ((5, 72), (5, 34), (4, 14), (4, 8), (3, 3))}
    assert all(counts[:, orbit].sum() % size == 0 for orbit, size in sizes.items())


@needs_cc
def test_the_accumulated_counts_are_those_of_the_vertices_so_far_in_any_order_of_asking():
    graph = graphs.delaunay(500, 1)
    accumulated = graphlets.Accumulated(graph, 7)
    assert accumulated.cuts[-1] == 500
    for number in (0, 1, 2, 6, 5, 3, 3, 0, 6):
        counts = np.zeros((500, graphlets.ORBITS), np.uint32)
        graphlets.count(graph, 0, accumulated.cuts[number], counts)
        assert np.array_equal(accumulated.state(number), counts), number
    assert np.array_equal(accumulated.state(6), counted(graph))


@pytest.mark.parametrize("kind", sorted(graphs.KINDS))
def test_graphs_are_simple_symmetric_and_the_same_for_a_seed(kind):
    graph, again, other = (graphs.KINDS[kind](3000, seed) for seed in (5, 5, 6))
    assert np.array_equal(graph.ends, again.ends)
    assert np.array_equal(graph.begins, again.begins)
    assert not (len(graph.ends) == len(other.ends) and np.array_equal(graph.ends, other.ends))
    assert 0.7 * 3000 <= graph.vertices <= 3000
    sources = np.repeat(np.arange(graph.vertices), np.diff(graph.begins))
    forth = set(zip(sources.tolist(), graph.ends.tolist(), strict=True))
    assert len(forth) == len(graph.ends)
    assert forth == {(b, a) for a, b in forth}
    assert all(a != b for a, b in forth)
    assert np.median(np.abs(sources - graph.ends)) < 300, "neighbours lie close to each other"


def test_graphs_have_the_degrees_of_their_kind():
    degrees = {kind: np.diff(make(20_000, 0).begins) for kind, make in graphs.KINDS.items()}
    assert 5.9 < degrees["delaunay"].mean() < 6
    assert 2.9 < degrees["bubbles"].mean() < 3
    assert degrees["bubbles"].max() == 3
    for kind in ("message race", "mesh exchange"):
        assert 2.9 < degrees[kind].mean() < 3.0, "two edges of the chain, and a message"
        assert degrees[kind].max() == 3
    assert 2.0 < degrees["roads"].mean() < 2.2, "of Asia OSM: 2.13"
    assert degrees["roads"].max() <= 4


def test_duplicate_edges_and_loops_do_not_count():
    graph = graphs.graph_of(4, np.array([[0, 1], [1, 0], [2, 2], [3, 1], [1, 3]]))
    assert graph.begins.tolist() == [0, 1, 3, 3, 4]
    assert graph.ends.tolist() == [1, 0, 3, 1]
    assert graph.edges == 2


def test_trainings_change_what_they_train_and_nothing_else():
    torch = pytest.importorskip("torch")
    from benchmarks.data import training

    for kind, make in training.KINDS.items():
        (one, two), words = make(2, 0.4)
        again, _ = make(2, 0.4)
        assert one.keys() == two.keys()
        assert all(torch.equal(one[name], again[0][name]) for name in one), f"{kind} is the same for the same seed"
        size = sum(len(series.flat(array)) for array in one.values())
        assert 0.36e6 < size < 1.5e6, (kind, size)
        same = {name for name in one if torch.equal(one[name], two[name])}
        weights = {name for name in one if ", " not in name}
        if kind == "LoRA":
            trained = {name for name in weights if name.endswith((".up", ".down"))}
            assert trained
            assert weights - same <= trained
            assert {name.partition(", ")[0] for name in one if ", " in name} == trained
        elif kind == "embeddings":
            (table,) = weights
            rows = (one[table] != two[table]).any(dim=1)
            assert 0 < int(rows.sum()) < len(rows)
        else:
            assert weights - same
        if kind == "full bf16":
            assert {one[name].dtype for name in weights} == {torch.bfloat16}
        assert words


def test_wavefields_begin_quiet_and_fill():
    one, *_, last = wavefields.forward(64, 4)
    assert len(list(wavefields.forward(64, 4))) == 4
    assert one.keys() == {"current", "previous"}
    assert one["current"].dtype == np.float32
    assert np.count_nonzero(last["current"]) >= np.count_nonzero(one["current"]) > 0
    assert np.isfinite(last["current"]).all()


def test_bytes_that_differ_are_counted_in_any_type():
    state = {"a": np.arange(6, dtype=np.float32), "b": np.zeros(0), "c": np.array([np.nan, -0.0])}
    copy = {name: array.copy() for name, array in state.items()}
    assert series.same(copy, state) == 0
    copy["c"][1] = 0.0
    assert series.same(copy, state) == 1
    copy["a"] = copy["a"][:5]
    assert series.same(copy, state) == 1 + 24
    del copy["c"]
    assert series.same(copy, state) == 24 + 16


@pytest.mark.parametrize("element", [1, 2, 4, 8])
def test_shuffled_bytes_come_back(element):
    plain = np.random.default_rng(element).integers(0, 256, 24 * element, dtype=np.uint8)
    planes = compressors.shuffled(plain, element)
    assert np.array_equal(planes[:24], plain[::element])
    assert np.array_equal(compressors.unshuffled(planes, element), plain)


def test_compressors_give_back_what_they_were_given(tmp_path):
    states = [{"a": np.arange(100 + n, dtype=np.int16), "b": np.full((3, 4), n / 3)} for n in range(3)]
    data = series.of_list(states, "")
    size = sum(array.nbytes for state in states for array in state.values())
    for name, compressor in compressors.compressors().items():
        found = compressors.play(tmp_path, compressor, data)
        assert found["differ"] == 0, name
        assert found["used"] == sum(path.stat().st_size for path in tmp_path.iterdir())
        if name == "file":
            assert found["used"] == size + 3 * 2 * 8


def test_a_wrong_byte_of_a_file_or_of_a_store_is_found(tmp_path, monkeypatch):
    data = series.of_list([{"a": np.arange(40_000 * (n + 1))} for n in range(2)], "")
    plain = compressors.Compressor(lambda plain: plain, lambda packed: bytes(8) + packed[8:])
    assert compressors.play(tmp_path, plain, data)["differ"] == 0, "these bytes are zero"
    wrong = compressors.Compressor(lambda plain: plain, lambda packed: packed[:-1] + b"\xff")
    assert compressors.play(tmp_path, wrong, data)["differ"] == 2
    asked = []

    def state(number):
        asked.append(number)
        return {"a": np.full(40_000, float(len(asked)))}

    other = series.Series(1, state)
    with_wrong = deduplicated._stream(Path(tmp_path / "store"), deduplicated.Method("tree", 128), other, 320_000)
    assert with_wrong["differ"] > 0


def test_rounds_begin_with_another_method_and_play_the_heavy_ones_once():
    turns = list(deduplicated._by_turns(["a", "b", "c"], 3, ["a", "b", "c"]))
    assert turns == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]
    assert list(deduplicated._by_turns(["a", "b", "c"], 3, ["b"])) == ["a", "b", "c", "b", "b"]


def test_cells_are_chosen_by_group_and_by_name():
    known = deduplicated.cells_of(10, 20, 1, 64, (3, 2))
    assert not [name for name in deduplicated._chosen(known, None) if name.endswith("large")]
    assert list(deduplicated._chosen(known, "waves, roads 2")) == ["wavefields", "roads 2"]
    assert len(deduplicated._chosen(known, "large")) == len(graphs.KINDS)
    assert list(deduplicated._chosen(known, "full bf16 references")) == ["full bf16 references"]
    with pytest.raises(ValueError, match="no cell 'road'; there are graphs, "):
        deduplicated._chosen(known, "road")


def test_all_methods_and_those_that_every_round_compares():
    names = [method.name for method in deduplicated.methods_of((64, 128))]
    assert names[:5] == ["raw", "codec", "full", "reference", "basic 64"]
    assert names[-1] == "tree 128 murmur3"
    assert len(names) == len(set(names)) == 4 + 2 * 4 + 3 + 2
    assert set(deduplicated.COMPARED) <= {*names, "shuffle, zstd-1"}
