"""Cost rows that belong to pairs (spec 9): both constructors, files, data, bounds, the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import surefoot as sf
from surefoot.errors import InvalidInput
from surefoot.exact import safe_sets
from tests.tank import cell, features, tank, tank_world

ROWS = [[1.0, 0.0], [0.0, 1.0]]


# --- declaring ------------------------------------------------------------------------------------------


def test_a_function_of_three_arguments_gives_a_row_per_pair() -> None:
    by_pair, by_triplet = tank(), tank(by_pair=False)
    for one, other in zip(by_pair.graph.layers, by_triplet.graph.layers, strict=True):
        assert not one.per_triplet
        assert one.n_rows == one.n_pairs < other.n_rows == one.n_edges
        assert other.row_ptr is other.pair_ptr
        assert np.array_equal(one.worst_of_edges(np.asarray(one.cost_features)), other.cost_features)
    assert by_pair.graph.largest_feature_distance() == 0.0


def test_a_function_that_may_take_four_arguments_gets_four() -> None:
    for function in (lambda *place: features(*place[:3]), lambda h, s, a, s2=None: features(h, s, a)):
        assert all(layer.per_triplet for layer in tank(cost_features=function).graph.layers)


@pytest.mark.parametrize("function", [lambda h, s: [1.0], lambda h, s, a, s2, more: [1.0], lambda: [1.0]])
def test_any_other_number_of_arguments_is_refused(function: Any) -> None:
    with pytest.raises(InvalidInput, match=r"wrong number of arguments.*\(h, s, a, s2\), or of \(h, s, a\)"):
        tank(cost_features=function)


def test_transitions_cannot_use_features_that_do_not_know_the_next_state() -> None:
    with pytest.raises(InvalidInput, match="transition_features are missing"):
        tank(transition_features=None)


def test_where_every_action_has_one_successor_both_declarations_are_the_same() -> None:
    one, other = (
        sf.Problem.from_functions(
            horizon=3,
            start=0,
            actions=lambda h, s: [0, 1],
            successors=lambda h, s, a: [0],
            reward=lambda h, s, a: 0.5,
            cost_features=cost,
            transition_features=lambda h, s, a, s2: [1.0],
            fallback=lambda h, s: 0,
            limits=sf.Limit("load", bound=0.5, noise=0.01, norm=1.0),
        )
        for cost in (lambda h, s, a: [0.2 + a], lambda h, s, a, s2: [0.2 + a])
    )
    assert one.digest == other.digest
    assert one.graph.layers[0].per_triplet


def arrays(problem: sf.Problem, **changed: Any) -> sf.Problem:
    """A problem declared again by its arrays."""
    graph = problem.graph
    columns = {
        name: [getattr(layer, name) for layer in graph.layers]
        for name in ("state_ptr", "pair_ptr", "reward", "cost_features", "transition_features")
    }
    declared: dict[str, Any] = {
        "horizon": problem.horizon,
        "start": graph.starts.tolist(),
        **columns,
        "successors": [layer.successor for layer in graph.layers],
        "fallback": [np.where(y.fallback < 0, -1, y.fallback - y.state_ptr[:-1]) for y in graph.layers],
        "terminal_reward": graph.terminal.reward,
        "forbidden": [graph.forbidden(h) for h in range(problem.horizon)],
        "limits": list(problem.limits),
        "state_labels": [list(problem.states(h)) for h in range(problem.horizon)],
        "action_labels": problem.naming.actions,
    }
    return sf.Problem.from_arrays(**{**declared, **changed})


def test_the_number_of_rows_says_whose_they_are() -> None:
    by_pair, by_triplet = tank(), tank(by_pair=False)
    assert arrays(by_pair).digest == by_pair.digest
    assert arrays(by_triplet).digest == by_triplet.digest
    assert by_pair.digest != by_triplet.digest
    pointers = [layer.row_ptr for layer in by_pair.graph.layers]
    assert arrays(by_pair, row_ptr=pointers).digest == by_pair.digest


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cost_features": np.zeros((2, 3))}, r"one row per triplet \(5\) or one per pair \(3\)"),
        ({"row_ptr": np.array([0, 1, 2, 4])}, "row_ptr must run from 0 to the number of cost rows"),
        ({"row_ptr": np.array([0, 3])}, r"row_ptr has the wrong shape.*\(2,\) where pairs \+ 1 \(4\)"),
        ({"row_ptr": np.array([0, 2, 1, 3])}, "row_ptr decreases"),
        ({"row_ptr": np.array([0, 0, 1, 3])}, "action without cost features.*action 0"),
        ({"row_ptr": np.array([0, 1, 2, 3], np.int32)}, "row_ptr has the wrong dtype"),
        ({"transition_features": None}, "transition_features are missing"),
    ],
)
def test_rows_that_do_not_fit_are_refused(changed: dict[str, Any], said: str) -> None:
    problem = tank(horizon=2)
    assert (problem.graph.layers[0].n_edges, problem.graph.layers[0].n_pairs) == (5, 3)
    if isinstance(pointer := changed.get("row_ptr"), np.ndarray):
        changed = {"row_ptr": [pointer]}
    elif changed.get("cost_features") is not None:
        changed = {"cost_features": [changed["cost_features"]]}
    with pytest.raises(InvalidInput, match=said):
        arrays(problem, **changed)


def test_rows_that_are_given_to_pairs_stay_theirs_though_the_counts_agree() -> None:
    """Two successors and two corners: with the pointer of the edges as that of the rows, rows belong to pairs."""
    layer = tank(horizon=2).graph.layers[0]
    pointer = np.array([0, 2, 3, 5])
    problem = arrays(
        tank(horizon=2),
        pair_ptr=[pointer],
        successors=[np.array([0, 1, 0, 0, 1])],
        cost_features=[np.ones((5, 3))],
        transition_features=[np.ones((5, 2))],
        row_ptr=[pointer],
        terminal_reward=None,
        forbidden=None,
        state_labels=None,
        action_labels=None,
    )
    assert layer.n_pairs == problem.graph.layers[0].n_pairs
    assert not problem.graph.layers[0].per_triplet
    assert problem.graph.several_rows


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("problem", [tank(), cell(ROWS)], ids=["one row", "several rows"])
def test_files_bring_rows_back(problem: sf.Problem, suffix: str, tmp_path: Path) -> None:
    again = sf.Problem.load(problem.save(tmp_path / f"p{suffix}"))
    assert again.digest == problem.digest
    for one, other in zip(again.graph.layers, problem.graph.layers, strict=True):
        assert np.array_equal(one.row_ptr, other.row_ptr)
        assert one.per_triplet == other.per_triplet


def test_pruning_and_float32_keep_the_rows_with_their_pairs() -> None:
    whole = arrays(tank(), start=[0])
    pruned = tank_world().problem.pruned()
    assert pruned.graph.several_rows is False
    narrow = whole.stored_in_float32()
    assert narrow.graph.layers[0].cost_features.dtype == np.float32
    assert np.array_equal(narrow.graph.layers[0].row_ptr, whole.graph.layers[0].row_ptr)
    extra = arrays(tank(), start=[0], fallback=[np.zeros(y.n_states, np.int64) for y in tank().graph.layers])
    unreached = sf.Problem.from_arrays(
        horizon=3,
        start=0,
        state_ptr=np.array([0, 1, 3]),
        pair_ptr=np.array([0, 1, 2, 3]),
        successors=np.array([0, 1, 1]),
        reward=np.zeros(3),
        cost_features=np.arange(1.0, 6.0)[:, None],
        row_ptr=np.array([0, 2, 3, 5]),
        transition_features=np.ones((3, 1)),
        fallback=np.array([0, 0]),
        limits=sf.Limit("load", bound=5.0, noise=0.1, norm=1.0),
    ).pruned()
    assert extra.digest
    assert np.asarray(unreached.graph.layers[0].cost_features).tolist() == [[1.0], [2.0]]
    assert unreached.graph.layers[0].row_ptr.tolist() == [0, 2]


# --- learning -------------------------------------------------------------------------------------------


def test_a_plan_with_rows_per_pair_speaks_of_actions() -> None:
    world = tank_world()
    plan = sf.run(sf.LsviNew(world.problem, ridges=(0.1, 1.0)), world, 200, seed=0).plan
    assert plan is not None
    assert np.array_equal(plan.upper(0, 0, 2), plan.upper(0, 0, 2, 1))
    assert np.array_equal(plan.lower(0, 0, 2), plan.lower(0, 0, 2, 2))
    assert "towards" not in str(plan.why(0, 0, 1)) + str(plan.why(1, 2, 1))
    with pytest.raises(sf.errors.UnknownLabel, match="outside the declared support"):
        plan.upper(0, 0, 2, 0)
    by_triplet = sf.LsviNew(tank(by_pair=False)).plan
    with pytest.raises(InvalidInput, match="name the next state"):
        by_triplet.upper(0, 0, 2)


def test_of_several_rows_all_have_to_keep_the_limits() -> None:
    """Bounds of the rows are L‖x‖ = 2‖x‖ before any data; of the pair, the largest."""
    for longest, certified in ((0.24, True), (0.26, False)):
        plan = sf.LsviNew(cell([[0.1, 0.0], [0.0, longest]])).plan
        assert plan.certified(0, 0, 1) is certified
        assert plan.upper(0, 0, 1)[0] == pytest.approx(2 * longest)
        assert plan.condition_1(0).tolist() == [True, certified]
        assert plan.certified(0, 0, 0)


def test_a_cost_of_several_rows_is_told_with_its_features() -> None:
    agent = sf.LsviNew(cell(ROWS))
    agent.begin_episode()
    for wrong, said in (
        (None, "features of a measured cost are missing.*several cost rows"),
        ([1.0], "wrong length"),
        ([np.nan, 0.0], "not finite"),
        ([1.0, 1.0], "longer than any that is declared"),
    ):
        with pytest.raises(InvalidInput, match=said):
            agent.observe(0, 0, 1, 0, 0.3, features=wrong)
    agent.observe(0, 0, 1, 0, 0.3, features=[0.5, 0.5])
    agent.observe(1, 0, 1, 0, None)  # nothing was measured
    agent.end_episode()
    assert agent.costs.bank.rows.tolist() == [1]
    twin = sf.LsviNew(cell(ROWS))
    twin.costs.add(0, np.array([0.5, 0.5]), np.array([0.3]))
    assert np.array_equal(twin.costs.bank.state.squares[0], agent.costs.bank.state.squares[0])
    assert np.array_equal(twin.costs.bank.state.targets, agent.costs.bank.state.targets)


def test_the_bound_of_a_cell_covers_every_point_between_its_corners(seed: int) -> None:
    """Upper bounds are convex in the features: the largest of the corners is enough (spec 9)."""
    rng, rows = np.random.default_rng(seed), [[1.0, 0.2], [0.2, 1.0], [0.4, 0.4]]
    agent, truth = sf.LsviNew(cell(rows)), np.array([0.3, 0.35])
    points = [rng.dirichlet(np.ones(3)) @ np.array(rows) for _ in range(40)]
    for x in points:
        agent.begin_episode()
        for h in range(2):
            agent.observe(h, 0, 1, 0, float(truth @ x + 0.01 * rng.standard_normal()), features=x)
        agent.end_episode()
    assert agent.plan.certified(0, 0, 1)
    one = sf.LsviNew(cell([list(points[0])]), ridges=agent.options.ridges, shaped=agent.options.shaped)
    one.inherit(agent)
    one.replan()
    assert (one.plan.upper(0, 0, 1) <= agent.plan.upper(0, 0, 1)).all()


def test_sparse_rows_of_one_pair_share_a_block() -> None:
    """What is measured lies between them, so its columns must be in one block."""
    rows = np.array([[0.5, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    dense = sf.Problem.from_arrays(**_cell_arrays(rows))
    sparse = sf.Problem.from_arrays(**_cell_arrays(csr_array(rows)))
    agents = [sf.LsviNew(problem) for problem in (dense, sparse)]
    for agent in agents:
        agent.begin_episode()
        agent.observe(0, 0, 1, 0, 0.2, features=[0.0, 0.4, 0.6, 0.0])
        agent.end_episode()
        agent.replan()
    assert np.allclose(agents[0].plan.bounds.upper[0], agents[1].plan.bounds.upper[0])
    agents[1].begin_episode()
    with pytest.raises(InvalidInput, match="a column that no row of the action has"):
        agents[1].observe(0, 0, 1, 0, 0.2, features=[0.1, 0.4, 0.0, 0.0])


def _cell_arrays(rows: Any) -> dict[str, Any]:
    return {
        "horizon": 2,
        "start": 0,
        "state_ptr": np.array([0, 2]),
        "pair_ptr": np.array([0, 1, 2]),
        "successors": np.array([0, 0]),
        "reward": np.array([0.1, 0.9]),
        "cost_features": rows,
        "row_ptr": np.array([0, 1, 3]),
        "transition_features": np.ones((2, 1)),
        "fallback": np.array([0]),
        "limits": sf.Limit("load", bound=0.5, noise=0.01, norm=2.0),
    }


# --- the truth ------------------------------------------------------------------------------------------


def test_with_several_rows_an_action_is_truly_safe_when_all_of_them_are() -> None:
    problem = cell(ROWS)
    for gamma, safe in (([0.4, 0.4], True), ([0.4, 0.6], False)):
        world = sf.World(problem, transition=[1.0], cost=gamma)
        assert sf.exact.solve(world).safe_actions[0].tolist() == [True, safe]
        assert safe_sets(world)[1][0].tolist() == [True, safe]
        assert sf.exact.violations(world, lambda h, s: 1).expected == (0.0 if safe else 2.0)
        with pytest.raises(InvalidInput, match="costs cannot be sampled"):
            sf.run(sf.LsviNew(problem), world, 1, seed=0)
        with pytest.raises(InvalidInput, match="costs cannot be sampled"):
            world.env().reset(seed=0)
    rows = [[0.0, 0.0], [0.9, 0.0]]
    layered = cell(rows, sf.Limit("load", bound=0.5, noise=0.01, norm=2.0))
    with pytest.raises(InvalidInput, match="wrong shape"):
        sf.World(layered, transition=[1.0], cost=[0.1, 0.1], deviation=[np.zeros((2, 1))] * 2)


def test_a_fallback_with_an_unsafe_row_is_refused() -> None:
    problem = sf.Problem.from_arrays(**{**_cell_arrays(np.eye(3)), "fallback": np.array([1])})
    with pytest.raises(InvalidInput, match=r"fallback is not safe.*cost row 1"):
        sf.World(problem, transition=[1.0], cost=[0.1, 0.1, 0.9])


def test_a_world_with_rows_per_pair_is_that_with_rows_per_triplet() -> None:
    one, other = tank_world(), tank_world(by_pair=False)
    assert sf.exact.solve(one).value == sf.exact.solve(other).value
    always = [sf.exact.violations(world, lambda h, s: 2) for world in (one, other)]
    assert always[0] == always[1]
    assert always[0].expected > 0
    draws = [world.sampler(3) for world in (one, other)]
    layers = one.problem.graph.layers
    for h, layer in enumerate(layers):
        for pair in range(layer.n_pairs):
            edges = {sampler.step(h, pair) for sampler in draws}
            assert len(edges) == 1
            (edge,) = edges
            assert np.array_equal(draws[0].measure(h, edge), draws[1].measure(h, edge))
    rounded = one.stored_in_float32()
    assert rounded.deviation is not None
    assert [len(table) for table in rounded.deviation] == [layer.n_rows for layer in layers]


# --- studies --------------------------------------------------------------------------------------------


def test_a_study_with_rows_per_pair_passes_its_audit(tmp_path: Path, seed: int) -> None:
    world, path = tank_world(), tmp_path / "tank.study"
    sampler = world.sampler(seed)
    with sf.Study.open(path, world.problem) as study:
        for _ in range(25):
            with study.episode() as episode:
                while not episode.done:
                    offer = episode.ask()
                    pair = world.problem.pair_index(offer.step, offer.state, offer.action)
                    edge = sampler.step(offer.step, pair)
                    after = world.problem.states(offer.step + 1)[
                        int(world.problem.graph.layers[offer.step].successor[edge])
                    ]
                    uppers = [tuple(each["upper"]) for each in offer.certificate["successors"]]
                    assert len(set(uppers)) == 1
                    episode.tell(after, sampler.measure(offer.step, edge))
    assert sf.audit(path).clean
    with pytest.raises(InvalidInput, match="one cost row per action"):
        sf.Study.open(tmp_path / "cell.study", cell(ROWS))
