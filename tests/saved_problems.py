"""Problems of every shape that a file must hold, what it means to hold them exactly, and tools for damage."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from surefoot.errors import UnreadableFile
from surefoot.model.labels import Names, same_label
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.model.sparse_rows import SparseRows

Edit = Callable[[dict[str, Any]], object]

KINDS = [
    *("cold", "", "é😀\x00\u2028", 7, -(2**63), 2**63 - 1, 2.5, 0.1 + 0.2, 5e-324, True, None),
    *((), (3, "x", (None, -0.0)), ((((1,),),),)),
]


def labelled() -> Problem:
    """Labels of every kind, two starts and limits, features apart, anchors and last costs here and there."""
    ring = len(KINDS)

    def step(s: Any, by: int) -> Any:
        return KINDS[(next(i for i, k in enumerate(KINDS) if k is s) + by) % ring]

    return Problem.from_functions(
        horizon=5,
        start=[KINDS[0], KINDS[6]],
        actions=lambda h, s: ["stay", ("go", 1), None] if s is not True else ["stay"],
        successors=lambda h, s, a: [s] if a == "stay" else [step(s, 1), step(s, 4)],
        reward=lambda h, s, a: 1 / (h + 3),
        cost_features=lambda h, s, a, t: [0.1 * h, 1 / 3, -0.0],
        transition_features=lambda h, s, a, t: [1e-310, 1.0 / (h + 7)],
        terminal_reward=lambda s: 0.25,
        terminal_cost_features=lambda s: [1.0, 0.1, 0.2] if isinstance(s, str) else None,
        fallback=lambda h, s: "stay",
        anchor=lambda h: ([0.3, 0.1, 0.7], [0.1, -0.2]) if h in (1, 4) else None,
        limits=[
            Limit("heat", bound=0.6, noise=0.05, norm=1.0),
            Limit("naïve/ü", bound=1 / 3, noise=0.0, norm=2.0, misspecification=0.125),
        ],
        transition_norm=1.7,
    )


def template(**changes: Any) -> Problem:
    """Six states on a line, one array of each kind for all layers, int32 successors; start in the middle."""
    n = 6
    arguments: dict[str, Any] = {
        "horizon": 4,
        "start": 2,
        "state_ptr": np.arange(0, 2 * n + 1, 2),
        "pair_ptr": np.arange(2 * n + 1),
        "successors": np.array([[i, min(i + 1, n - 1)] for i in range(n)], np.int32).ravel(),
        "reward": np.linspace(0, 1, 2 * n),
        "cost_features": np.linspace(-1, 1, 4 * n).reshape(2 * n, 2),
        "fallback": np.zeros(n, np.int64),
        "limits": Limit("level", bound=0.5, noise=0.1, norm=1.0),
    }
    return Problem.from_arrays(**(arguments | changes))


def stationary() -> Problem:
    return template(
        anchor=lambda h: ([0.25, 0.5], 0.125),
        terminal_cost_features=np.ones((6, 2)),
        terminal_has_cost=None,
        stationary_costs=True,
        stationary_transitions=True,
    )


def partly_costed() -> Problem:
    features = np.eye(6, 2)
    return template(terminal_cost_features=features, terminal_has_cost=features.any(axis=1), start=np.array([3, 1, 2]))


def partly_shared() -> Problem:
    """Some layers share some arrays; transition features are the cost features in one layer only."""
    shared, phi = template().graph.layers[0], np.full((12, 2), 0.5)
    own = shared.cost_features.copy()
    return template(
        successors=[shared.successor, shared.successor.astype(np.int64), shared.successor],
        cost_features=[shared.cost_features, own, shared.cost_features],
        transition_features=[phi, own, phi],
        pair_ptr=[shared.pair_ptr, shared.pair_ptr.copy(), shared.pair_ptr],
    )


def pruned() -> Problem:
    """Labels in the layers that lost states, numbers in the others; the only costed last state is gone."""
    features = np.zeros((6, 2))
    features[0] = 1
    line = template().graph.layers[0].successor
    problem = template(
        start=list(range(6)),
        successors=[line, line, np.tile(np.array([1, 2]), 6)],
        terminal_reward=np.zeros(6),
        terminal_cost_features=features,
        terminal_has_cost=features.any(axis=1),
    ).pruned()
    assert [names.listed for names in problem.naming.states] == [None, None, None, (1, 2)]
    return problem


def sparse() -> Problem:
    """Sparse features shared by some layers, rows without an entry, last costs, an anchor; transitions of their own."""
    shared, own = (scipy.sparse.csr_array(scale * np.eye(12, 9, -1)) for scale in (1.0, 0.5))
    return template(
        cost_features=[shared, own, shared],
        transition_features=scipy.sparse.eye_array(12).tocsr(),
        terminal_cost_features=scipy.sparse.csr_array(np.eye(6, 9)),
        anchor=lambda h: (np.eye(9)[2], 0.125) if h == 1 else None,
    )


def sparse_costs() -> Problem:
    """Sparse costs, which transitions use too in one layer and do not in the others."""
    x, phi = scipy.sparse.csr_array(np.eye(12)), scipy.sparse.csr_array(np.full((12, 12), 0.25))
    return template(cost_features=x, transition_features=[x, phi, phi])


def empty_rows() -> Problem:
    """No entry at all, and a dense table beside it."""
    return template(cost_features=scipy.sparse.csr_array((12, 7)), transition_features=np.ones((12, 1)))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    build.__name__: build
    for build in (
        *(labelled, template, stationary, partly_costed, partly_shared, pruned),
        *(sparse, sparse_costs, empty_rows),
    )
}

DENSE = [name for name in PROBLEMS if name not in ("sparse", "sparse_costs", "empty_rows")]  #: what a study takes


def arrays_of(problem: Problem) -> dict[str, np.ndarray[Any, Any] | None]:
    """Every array of a problem by its place."""
    graph = problem.graph
    found: dict[str, np.ndarray[Any, Any] | None] = {"starts": graph.starts}
    parts: dict[str, object] = {f"step {h}": layer for h, layer in enumerate(graph.layers)} | {
        "terminal": graph.terminal
    }
    parts |= {f"anchor {h}": anchor for h, anchor in enumerate(graph.anchors) if anchor is not None}
    for place, part in parts.items():
        for field, array in vars(part).items():
            own = array.parts._asdict() if isinstance(array, SparseRows) else {"": array}
            found |= {f"{place} {field} {name}".rstrip(): each for name, each in own.items()}
    return found


def sharing_of(problem: Problem) -> list[int]:
    """For each array the position of the first one that is the same object; masks that forbid nothing are all alike."""
    graph = problem.graph
    tables = [table for part in (*graph.layers, graph.terminal) for table in vars(part).values()]
    idle = {id(mask) for h in range(graph.horizon) if not (mask := graph.forbidden(h)).any()}
    ids = [0 if i in idle else i for i in [*map(id, arrays_of(problem).values()), *map(id, tables)]]
    return [ids.index(i) for i in ids]


def _same_names(a: Names, b: Names) -> bool:
    return (a.listed is None) == (b.listed is None) and same_label(
        tuple(a[i] for i in range(len(a))), tuple(b[i] for i in range(len(b)))
    )


def assert_same(a: Problem, b: Problem) -> None:
    """Bit for bit, type for type, object for object."""
    left, right = arrays_of(a), arrays_of(b)
    assert left.keys() == right.keys()
    for place, array in left.items():
        other = right[place]
        if array is None or other is None:
            assert array is other, place
            continue
        assert (array.dtype, array.shape) == (other.dtype, other.shape), place
        assert array.tobytes() == other.tobytes(), place
        assert not other.flags.writeable, place
    assert sharing_of(a) == sharing_of(b)
    assert (a.graph.cost_dim, a.graph.transition_dim) == (b.graph.cost_dim, b.graph.transition_dim)
    assert all(map(_same_names, a.naming.states, b.naming.states))
    assert same_label(a.naming.actions, b.naming.actions)
    assert a.limits == b.limits
    flags = ("transition_norm", "stationary_costs", "stationary_transitions", "digest")
    for name in flags:
        assert getattr(a, name) == getattr(b, name), name
        assert type(getattr(a, name)) is type(getattr(b, name)), name


def document_of(path: Path) -> Any:
    if path.suffix == ".json":
        return json.loads(path.read_text("utf-8"))
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("header.json"))


def edited(path: Path, edit: Edit) -> None:
    """Change a JSON file as someone would by hand."""
    document = document_of(path)
    del document["digest"]
    edit(document)
    path.write_text(json.dumps(document), "utf-8")


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def repack(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def refused(path: Path, words: str) -> UnreadableFile:
    with pytest.raises(UnreadableFile, match=words) as caught:
        Problem.load(path)
    error = caught.value
    assert error.where.startswith(str(path))
    assert error.rule
    assert error.fix
    assert len(str(error)) < 1000
    return error
