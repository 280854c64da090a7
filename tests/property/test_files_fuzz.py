"""Whatever happens to a file, loading it gives a valid problem or UnreadableFile, and soon."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.errors import UnreadableFile
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from tests.saved_problems import PROBLEMS, assert_same, document_of, members_of, repack

FORMATS = ("json", "npz")
SLOWEST = 10.0  # seconds for one small file: far above what it takes, far below a hang


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


@cache
def saved(name: str, suffix: str) -> tuple[bytes, dict[str, Any], dict[str, bytes]]:
    """A file's bytes, its document without the digest, and the members of an archive."""
    with TemporaryDirectory() as folder:
        path = PROBLEMS[name]().save(Path(folder) / f"p.{suffix}")
        document = document_of(path)
        del document["digest"]
        return path.read_bytes(), document, members_of(path) if suffix == "npz" else {}


def loads_or_refuses(path: Path) -> bool:
    """True if the file loads, and then as a problem that can be saved and loaded again."""
    began = time.monotonic()
    try:
        problem, refusal = Problem.load(path), None
    except UnreadableFile as error:
        problem, refusal = None, error
    assert time.monotonic() - began < SLOWEST
    if problem is None:
        assert refusal is not None
        assert refusal.where.startswith(str(path))
        assert refusal.rule
        assert refusal.fix
        return False
    assert_same(problem, Problem.load(problem.save(path.with_name(f"again{path.suffix}"))))
    return True


names = st.sampled_from(sorted(PROBLEMS))
suffixes = st.sampled_from(FORMATS)
edits = st.lists(st.tuples(st.integers(0, 2**20), st.integers(1, 255)), min_size=1, max_size=8)


def flipped(data: bytes, changes: list[tuple[int, int]]) -> bytes:
    damaged = bytearray(data)
    for position, bits in changes:
        damaged[position % len(data)] ^= bits
    return bytes(damaged)


@given(name=names, suffix=suffixes, changes=edits)
def test_flipped_bytes(folder: Path, name: str, suffix: str, changes: list[tuple[int, int]]) -> None:
    data, _, _ = saved(name, suffix)
    path = folder / f"p.{suffix}"
    path.write_bytes(flipped(data, changes))
    if loads_or_refuses(path):  # only what carries no meaning, such as a date in the archive, may change
        assert Problem.load(path).digest == PROBLEMS[name]().digest


@given(name=names, member=st.integers(0, 100), changes=edits)
def test_flipped_bytes_under_a_right_checksum(
    folder: Path, name: str, member: int, changes: list[tuple[int, int]]
) -> None:
    _, document, members = saved(name, "npz")
    members = members | {"header.json": json.dumps(document).encode()}
    target = sorted(members)[member % len(members)]
    path = folder / "p.npz"
    repack(path, members | {target: flipped(members[target], changes)})
    loads_or_refuses(path)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_truncation_anywhere(folder: Path, name: str, suffix: str) -> None:
    data, _, _ = saved(name, suffix)
    path = folder / f"p.{suffix}"
    for end in range(0, len(data) - 2, 97):  # the last two bytes of a JSON file say nothing
        path.write_bytes(data[:end])
        assert not loads_or_refuses(path), end


@given(name=names, suffix=suffixes, cut=st.tuples(st.integers(0, 2**20), st.integers(0, 200)), new=st.binary())
def test_replaced_slices(folder: Path, name: str, suffix: str, cut: tuple[int, int], new: bytes) -> None:
    data, _, _ = saved(name, suffix)
    first = cut[0] % len(data)
    path = folder / f"p.{suffix}"
    path.write_bytes(data[:first] + new + data[first + cut[1] :])
    loads_or_refuses(path)


@given(suffix=suffixes, data=st.binary(max_size=2000))
def test_any_bytes(folder: Path, suffix: str, data: bytes) -> None:
    path = folder / f"p.{suffix}"
    path.write_bytes(data)
    assert not loads_or_refuses(path)


# --- other values in the document -----------------------------------------------------------------------

scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2, 7, 2**31, 2**63, -(2**63), 10**400])
    | st.floats()
    | st.text(max_size=5)
)
references = st.builds(lambda n: {"array": f"a{n}"}, st.integers(0, 9))
values = st.recursive(
    scalars | references,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document, long runs of numbers thinned out."""
    found: list[tuple[Any, Any]] = []
    keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
    for key in keys[:12]:
        found.append((node, key))
        if isinstance(node[key], (dict, list)):
            found += places(node[key])
    return found


@settings(max_examples=80)
@given(
    name=names,
    suffix=suffixes,
    changes=st.lists(st.tuples(st.integers(0, 2**20), values), min_size=1, max_size=3),
)
def test_other_values(folder: Path, name: str, suffix: str, changes: list[tuple[int, Any]]) -> None:
    _, document, members = saved(name, suffix)
    document = copy.deepcopy(document)
    for position, value in changes:
        found = places(document)
        container, key = found[position % len(found)]
        container[key] = copy.deepcopy(value)
    text = json.dumps(document).encode()
    path = folder / f"p.{suffix}"
    if suffix == "json":
        path.write_bytes(text)
    else:
        repack(path, members | {"header.json": text})
    loads_or_refuses(path)


# --- any problem, there and back ------------------------------------------------------------------------

labels = st.recursive(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.none()
    | st.booleans(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)
features = st.just([0.0, 0.0]) | st.tuples(  # what can be squared, and beside it anything that is smaller
    st.floats(1e-100, 1e100), st.floats(-1e100, 1e100, allow_subnormal=True)
).map(list)


@settings(max_examples=60)
@given(
    data=st.data(),
    horizon=st.integers(2, 5),
    states=st.lists(labels, min_size=1, max_size=6, unique=True),
    actions=st.lists(labels, min_size=1, max_size=3, unique=True),
    suffix=suffixes,
    flags=st.tuples(st.booleans(), st.booleans()),
    norm=st.floats(1e-300, 1e20),
)
def test_any_problem_comes_back(
    folder: Path,
    data: st.DataObject,
    horizon: int,
    states: list[Any],
    actions: list[Any],
    suffix: str,
    flags: tuple[bool, bool],
    norm: float,
) -> None:
    some = st.lists(st.sampled_from(states), min_size=1, max_size=3, unique=True)
    costed = data.draw(st.sets(st.sampled_from(range(len(states)))), "costed at the end")
    drawn: dict[str, Any] = {}  # asked again, a function must answer the same

    def once(strategy: st.SearchStrategy[Any], *place: object) -> Any:
        key = f"{strategy!r} {place!r}"
        if key not in drawn:
            drawn[key] = data.draw(strategy)
        return drawn[key]

    problem = Problem.from_functions(
        horizon=horizon,
        start=data.draw(some, "starts"),
        actions=lambda h, s: actions,
        successors=lambda h, s, a: once(some, h, s, a),
        reward=lambda h, s, a: once(st.floats(0, 1), h, s, a),
        cost_features=lambda h, s, a, t: data.draw(features),
        transition_features=(lambda h, s, a, t: [0.5]) if data.draw(st.booleans()) else None,
        terminal_cost_features=lambda s: data.draw(features) if states.index(s) in costed else None,
        fallback=lambda h, s: actions[-1],
        limits=[Limit("a", bound=0.5, noise=0.1, norm=1.0), Limit("b", bound=1.0, noise=0.0, norm=norm)],
        anchor=None if flags[0] else lambda h: ([1.0, h], [0.25, 0.0]) if h % 2 else None,
        stationary_costs=flags[0],
        stationary_transitions=flags[1],
        transition_norm=norm,
    )
    assert_same(problem, Problem.load(problem.save(folder / f"any.{suffix}")))
