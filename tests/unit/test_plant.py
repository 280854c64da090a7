"""Plants: cells, boxes, corner rows, hats, what is refused, what samples refute, and certificates at exact states."""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import AssumptionBroken, InvalidInput, OutOfOrder, UnknownLabel
from surefoot.model.plant.cells import make_cells
from surefoot.model.plant.given import make_box
from surefoot.model.plant.reach import successors
from surefoot.worlds.named.tank import simulated

LIMIT = sf.Limit("foam", bound=0.9, noise=0.05, norm=2.0)


def tank(**changes: Any) -> sf.Plant:
    """A leaking tank: a quarter flows out per step."""
    declared: dict[str, Any] = {
        "state": {"level": (0.0, 1.0, 10)},
        "inputs": {"flow": [0.05, 0.1, 0.2]},
        "horizon": 5,
        "start": [0.45],
        "models": [lambda h, x, u: [0.75 * x[0] + u]],
        "disturbance": [0.01],
        "measures": lambda h, x, u: [1.0, x[0], u],
        "reward": lambda h, x, u: 5 * u,
        "fallback": 0.1,
        "limits": [LIMIT],
    }
    return sf.Plant(**{**declared, **changes})


def truth(h: int, x: Any, u: float, rng: np.random.Generator) -> tuple[Any, float]:
    return 0.75 * x + u + rng.uniform(-0.01, 0.01), 0.2 + 0.5 * x[0] + 0.5 * u


def test_cells_are_half_open_and_the_last_one_is_closed() -> None:
    cells = make_cells({"a": (0.0, 1.0, 4), "b": [0.0, 1.0, 3.0]})
    at = cells.of(np.array([[0.0, 0.25, 1.0, 1.1, np.nan], [0.5, 1.0, 3.0, 0.5, 0.5]]))
    assert at.tolist() == [0, 3, 7, 8, 8]
    assert cells.ranges(3) == ((0.25, 0.5), (1.0, 3.0))
    assert cells.said(8) == "outside the box"


def test_even_edges_are_the_numbers_that_one_would_write() -> None:
    cells = make_cells({"a": (0.0, 1.0, 10), "b": (0.0, 2.6, 13), "c": (1e9, 1e9 + 1, 1000), "d": (0.0, 1e-305, 3)})
    assert cells.edges[0].tolist() == [i / 10 for i in range(11)]  # np.linspace has 0.7000000000000001
    assert cells.edges[1].tolist() == [i / 5 for i in range(14)]
    assert np.allclose(np.diff(cells.edges[2]), 1e-3, rtol=1e-3)
    assert cells.edges[3][-1] == 1e-305
    below = np.array([make_cells({"a": (0.0, 1.0, 10)}).of(np.array([[0.65]]))[0]])
    assert not make_cells({"a": (0.0, 1.0, 10)}).meets({"a": (0.7, None)}, below)[0]


def test_all_cells_that_a_box_meets_are_found() -> None:
    cells = make_cells({"a": (0.0, 1.0, 4), "b": (0.0, 1.0, 2)})
    ptr, met = successors(cells, [(np.array([[0.3, 0.9], [0.1, 0.2]]), np.array([[0.6, 1.2], [0.2, 0.6]]))])
    assert met[ptr[0] : ptr[1]].tolist() == [2, 4]
    assert met[ptr[1] : ptr[2]].tolist() == [6, 7, cells.outside]
    both = successors(cells, [(np.array([[0.3], [0.1]]), np.array([[0.3], [0.1]]))] * 2)
    assert both[1].tolist() == [2]


def test_boxes_of_many_inputs_on_endless_cells_are_not_mixed_up() -> None:
    """Numbers of cells go up to 2⁵³: one number for a box and its cell would not fit."""
    cells = make_cells({"x": (0.0, None, 0.5), "y": (0.0, 1.0, 8)})
    low = np.stack([np.arange(3000.0), np.full(3000, 0.5)])
    ptr, met = successors(cells, [(low + 0.1, low + 0.1), (low + 0.6, low + 0.6)])
    assert np.array_equal(ptr, 2 * np.arange(3001))
    assert np.array_equal(met.reshape(-1, 2).T, [cells.of(low + 0.1), cells.of(low + 0.6)])


def test_supports_and_corner_rows_are_those_worked_out_by_hand() -> None:
    plant = tank()
    problem, layer = plant.problem, plant.problem.graph.layers[0]
    # From level 0.4 … 0.5 with flow 0.1: 0.75·[0.4, 0.5] + 0.1 ± 0.01 = [0.39, 0.485].
    assert problem.successors(0, 4, 1) == (3, 4)
    pair = problem.pair_index(0, 4, 1)
    rows = layer.cost_features[layer.row_ptr[pair] : layer.row_ptr[pair + 1]]
    assert np.allclose(rows, [[1.0, 0.4, 0.1], [1.0, 0.5, 0.1]])
    assert plant.next_cells(0, [0.45], 0.1).tolist() == [4]  # [0.4275, 0.4475]: at the point one cell is left
    chance = layer.transition_features[layer.pair_ptr[pair] : layer.pair_ptr[pair + 1], 0]
    assert chance.sum() == pytest.approx(1.0)


def test_corners_that_features_do_not_tell_apart_have_one_row() -> None:
    flat = tank(measures=lambda h, x, u: [1.0, u])
    assert flat.problem.graph.layers[0].n_rows == flat.problem.graph.layers[0].n_pairs


def test_a_function_for_one_state_at_a_time_gives_the_same_plant() -> None:
    def one(h: int, x: Any, u: float) -> list[float]:
        if x[0] > 2.0:
            raise ValueError("never")
        return [max(0.75 * float(x[0]) + u, math.exp(-50.0))]

    def summed(h: int, x: Any, u: float) -> list[Any]:
        return [1.0, np.sum(x), u]  # right for one state, wrong for many: noticed, and called state by state

    assert tank(models=[one], measures=summed).problem.digest == tank().problem.digest


def test_functions_may_change_the_state_that_they_are_given() -> None:
    """What may follow one input must not be where the one before led."""

    def model(h: int, x: Any, u: float) -> Any:
        x[0] = 0.75 * x[0] + u
        return x

    def measures(h: int, x: Any, u: float) -> list[Any]:
        x *= 1.0 if np.ndim(x) == 2 else 2.0
        return [1.0, x[0] / 2 if np.ndim(x) == 1 else x[0], u]

    plant, given = tank(models=[model], measures=measures), np.array([0.45])
    assert plant.problem.digest == tank().problem.digest
    (found,), (own,) = (each.ahead(0, given, plant.inputs.values).boxes for each in (plant, tank()))
    assert np.array_equal(found, own)
    assert given.tolist() == [0.45]


def test_hats_sum_to_one_and_are_refused_off_the_grid() -> None:
    plant = tank(measures=[sf.hat("level", [0, 0.5, 1]) * (lambda h, x, u: u), lambda h, x, u: 1.0])
    assert plant.features(0, [0.75], 0.2).tolist() == pytest.approx([0.0, 0.1, 0.1, 1.0])
    assert not plant.check().refuted
    for bad in (sf.hat("level", [0, 0.55, 1]), sf.hat("level") * sf.hat("level"), sf.hat("depth")):
        with pytest.raises(InvalidInput):
            tank(measures=[bad])


def test_reach_and_slopes_bound_what_corners_do_not() -> None:
    def bent(h: int, x: Any, u: float) -> list[Any]:
        return [0.402 - 1.6 * (x[0] - 0.45) ** 2 + u]  # highest inside a cell

    with pytest.raises(InvalidInput, match="reach= or slopes="):
        tank(models=[bent], disturbance=0.0, quadrature=5)  # 0.502, between corners with 0.498
    with pytest.raises(InvalidInput, match="Give slopes= that allow for it"):
        tank(models=[bent], disturbance=0.0, slopes=[[0.1]])
    with pytest.raises(InvalidInput, match=r"ends of a box: .*Give \(low, high\)"):
        tank(models=[bent], reach=lambda h, low, high, u: 0.5)
    wide = tank(models=[bent], slopes=[[1.8]])
    assert not wide.check().refuted

    def reach(h: int, low: Any, high: Any, u: float) -> tuple[list[Any], list[Any]]:
        ends = [bent(h, low, u)[0], bent(h, high, u)[0]]
        top = np.where((low[0] <= 0.45) & (high[0] >= 0.45), 0.402 + u, np.maximum(*ends))
        return [np.minimum(*ends)], [top]

    assert not tank(models=[bent], reach=reach).check().refuted


def test_samples_refute_what_is_not_so_and_name_the_state() -> None:
    bent = tank(measures=lambda h, x, u: [1.0, x[0] ** 2, u])
    (found,) = bent.check().refutations
    assert found.rule == "a feature is not affine in each coordinate"
    assert "step" in found.where
    assert "state [" in found.where
    assert "hats" in found.fix

    swings = tank(models=[lambda h, x, u: [0.3 + 0.2 * np.sin(20 * np.pi * x[0]) + u]], quadrature=1)
    assert any("leads outside" in each.rule for each in swings.check().refutations)
    assert str(tank().check()).endswith("refute nothing that was declared")


LATER: dict[str, dict[str, Any]] = {
    "model 0": {"models": lambda h, x, u: 0.75 * x + (u if h < 3 else 0.9 * u)},
    "a measure": {"measures": lambda h, x, u: [1.0, x[0], u * (1 + h)]},
    "the reward": {"reward": lambda h, x, u: u * h},
    "the fallback": {"fallback": lambda h, x: 0.05 if h == 2 else 0.1},
}


@pytest.mark.parametrize("name", LATER)
def test_functions_that_depend_on_the_step_are_refuted_where_that_was_denied(name: str) -> None:
    assert not tank(**LATER[name]).check().refuted
    (found,) = tank(**LATER[name], same_at_every_step=True).check().refutations
    assert found.rule == f"{name} is not the same at every step"
    assert "at step 0" in found.got
    assert found.fix == "Leave out same_at_every_step."


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"state": {"level": (1.0, 0.0, 10)}}, "edges of cells must increase"),
        ({"start": [1.5]}, "start must lie in the box of states: level 1.5 is not within 0 … 1"),
        ({"start": [True]}, "start must be numbers"),
        ({"start": [(0.5, 0.4)]}, "a range of start goes from low to high"),
        ({"forbidden": lambda h, x: x > 0.9}, "a range names its coordinate: <function"),
        (
            {"fallback": 0.15},
            r"fallback's input is not on the grid: 0.15\. The inputs are .* Or give a function of \(h, x\)",
        ),
        (
            {"state": {"level": (10, 0.0, 0.5)}},
            r"number of cells must be .*: 0.5\. Give \(low, high, number of cells\)",
        ),
        ({"fallback": lambda h, x: 0.07}, "fallback's input is not on the grid"),
        (
            {"reward": lambda h, x, u: 20 * u},
            r"reward is outside \[0, 1\]: step 0, state 0 \(level 0 … 0.1\), input 0.1",
        ),
        ({"models": []}, "needs a model"),
        ({"models": [lambda h, x, u: [x[0], x[0]]]}, "wrong number of values"),
        ({"measures": lambda h, x, u: [np.nan]}, "finite"),
        ({"disturbance": [-0.1]}, "disturbance"),
        ({"forbidden": {"depth": (1, 2)}}, "no such coordinate"),
        ({"forbidden": {"level": (0.9, 0.8)}}, "a range goes from low to high"),
        ({"forbidden": {"level": (float("nan"), None)}}, "a range goes from low to high"),
        ({"forbidden": {"level": 0.9}}, "a range has two ends"),
        ({"forbidden": [0.9]}, "a range names its coordinate"),
        ({"forbidden": {"level": ("0.9", None)}}, "the end of a range must be a number"),
        ({"forbidden": {"level": (0.3, None)}}, "forbidden"),
        ({"inputs": {"flow": [0.1, 0.1]}}, "different numbers"),
        ({"same_at_every_step": "no"}, "same_at_every_step must be True or False"),
        ({"rays": float("nan")}, "rays must be True or False"),
        ({"measures": lambda h, x, u: ["1", x[0]]}, "must give numbers"),
        ({"measures": lambda h, x, u: []}, "must give numbers"),
        ({"remainder": 1j}, "remainder must be a number, or one per limit"),
        ({"remainder": [0.1, 0.1]}, "remainder must be a number, or one per limit"),
        ({"slopes": [["1"]]}, "slopes bound the derivatives"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        tank(**changes)


def test_some_coordinates_of_a_start_may_be_ranges() -> None:
    cells = make_cells({"level": (0.0, 1.0, 2), "heat": (0.0, 1.0, 2)})
    low, high = make_box(cells, "start", [(0.2, 0.4), 0.5])
    assert (low.tolist(), high.tolist()) == ([0.2, 0.5], [0.4, 0.5])


def test_an_error_about_a_cell_says_which_states_it_holds() -> None:
    told = r"input 0.2 can reach 10 \(outside the box\), which is forbidden: level 1.\d* is not within 0 … 1\."
    with pytest.raises(InvalidInput, match=told):
        tank(fallback=0.2, models=[lambda h, x, u: [x[0] + u]])


@pytest.mark.parametrize("changes", [{"start": [0.72]}, {"fallback": 0.2, "start": [0.65]}], ids=["start", "fallback"])
def test_a_range_that_ends_inside_a_cell_is_named(changes: dict[str, Any]) -> None:
    edge = r"ends inside this cell, and all of the cell is forbidden: give it an edge at level 0.75\."
    with pytest.raises(InvalidInput, match=rf"forbidden.*\(level 0.7 … 0.8\).*{edge}"):
        tank(forbidden={"level": (0.75, None)}, **changes)
    with pytest.raises(InvalidInput) as refused:
        tank(forbidden={"level": (0.7, None)}, **changes)
    assert "inside" not in str(refused.value)


def test_what_is_found_about_a_plant_names_ranges_and_inputs() -> None:
    (found,) = (str(each) for each in sf.check(sf.worlds.tank().plant).findings if each.grade == "warning")
    assert re.search(r"Closest is step \d, state \d+ \(level 0.\d … 0.\d\), input 0.05: over limit 'foam'", found)


@pytest.mark.parametrize(
    ("cost", "rule"),
    [([0.1, 0.4, 1.1], "cost parameters are longer than declared"), ([0.4, 0.4, 0.1], "fallback is not safe")],
)
def test_a_plants_truth_is_refused_as_a_worlds_is(cost: list[float], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        simulated(sf.worlds.tank().plant, lambda h, x, u, rng: 0.75 * x + u, [1.0], cost)


def test_the_agent_takes_exact_states_only_as_they_were_told() -> None:
    agent = sf.PlantAgent(tank())
    with pytest.raises(InvalidInput, match="declared start"):
        agent.begin_episode([0.2])
    agent.begin_episode([0.45])
    for other in (0.46, 0.56):  # in the same cell, and in another one
        told = rf"the plant is elsewhere: step 0: \[{other}\], told last was \[0.45\]\. Give the state that was told"
        with pytest.raises(OutOfOrder, match=told):
            agent.act(0, [other])
    with pytest.raises(OutOfOrder, match=r"the episode is elsewhere: episode 1, step 0, state \[0.45\]: step 1$"):
        agent.act(1, [0.45])
    with pytest.raises(UnknownLabel, match="no input is chosen at this step: 4, they are at steps 0 … 3"):
        agent.why(4, [0.45], 0.1)
    u = agent.act(0, [0.45])
    with pytest.raises(AssumptionBroken, match=r"outside what the models .*: level 0.9 is not within 0.4275 … 0.4475"):
        agent.observe(0, [0.45], u, [0.9], 0.3)
    agent.observe(0, [0.45], u, [0.75 * 0.45 + u], 0.3)
    assert agent.act(1, [0.75 * 0.45 + u]) in tank().inputs.values


def test_a_simulators_process_that_does_not_answer_is_told() -> None:
    with pytest.raises(InvalidInput, match=r"the simulator cannot be started: \./no-such-tank"):
        tank().simulate(["./no-such-tank"])
    for program, got in (("print(input())", "{.*step.*: 0"), ("", "it has ended")):
        wrong = tank().simulate([sys.executable, "-c", program])
        if not program:  # what is written to it then stays in the pipe's buffer
            wrong._step._process.wait()  # type: ignore[union-attr]
        with pytest.raises(AssumptionBroken, match=f"{got}.*such as .*cost"):
            sf.run(tank().fallback, wrong, episodes=1)
        wrong.close()


def test_players_are_compared_on_a_simulation() -> None:
    plant = tank()
    with pytest.raises(InvalidInput, match=r"compare plays a simulation: a dict\. Give plant\.simulate\(step\) first"):
        sf.compare({"open": plant.fallback}, plant.simulate(truth), episodes=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"Give \{name: player\}"):
        sf.compare(plant.simulate(truth), [plant.fallback], episodes=1)  # type: ignore[arg-type]


def test_a_simulator_may_be_a_process() -> None:
    program = (
        "import sys, json\n"
        "for line in sys.stdin:\n"
        "    a = json.loads(line)\n"
        "    print(json.dumps({'state': [0.75 * a['state'][0] + a['input']], 'cost': [0.3]}), flush=True)\n"
    )
    plant = tank()
    other = plant.simulate([sys.executable, "-c", program])
    run = sf.run(sf.PlantAgent(plant), other, 3, seed=0)
    assert run.episodes == 3
    assert int(run.violations.sum()) == 0
    other.close()


def test_controllers_meet_the_same_disturbances_and_their_violations_are_counted() -> None:
    plant = tank()
    simulated = plant.simulate(truth)
    twice = [sf.run(lambda h, x: 0.1, simulated, 20, seed=3) for _ in range(2)]
    assert np.array_equal(twice[0].paths[-1], twice[1].paths[-1])
    runs = sf.compare(simulated, {"open": lambda h, x: 2.0, "surefoot": sf.PlantAgent(plant)}, episodes=20)
    assert list(runs) == ["fallback", "open", "surefoot"]
    assert runs["open"].violations.sum() > 0
    assert runs["surefoot"].violations.sum() == runs["fallback"].violations.sum() == 0
    assert runs["surefoot"].reward.mean() >= runs["fallback"].reward.mean()
    assert "violations" in sf.PlantRun.table(runs).splitlines()[0]


def test_a_remainder_is_paid_by_cells_and_not_by_points() -> None:
    def bent(h: int, x: Any, u: float) -> list[Any]:
        return [1.0, x[0] ** 2, u]  # at most 0.0025 below the line between the corners of a cell of 0.1

    plant = tank(measures=bent, remainder=0.3, limits=[sf.Limit("foam", bound=0.9, noise=0.05, prior=[(0, 1)] * 3)])
    assert not plant.check().refuted
    agent = sf.PlantAgent(plant)
    bounds, h, x = agent.plan.bounds, 0, np.array([0.45])
    pair = plant.problem.pair_index(0, plant.cell(x), 1)
    layer = plant.problem.graph.layers[0]
    corners = bounds.upper[0][layer.row_ptr[pair] : layer.row_ptr[pair + 1], 0].max()
    exact = bounds.at(h, plant.features(h, x, 0.1)[None])[0][0, 0]
    assert corners == pytest.approx(1.0 + 0.25 + 0.1 + 0.3, abs=1e-6)
    assert exact == pytest.approx(1.0 + 0.45**2 + 0.1, abs=1e-6)
    run = sf.run(agent, plant.simulate(truth), 5, seed=0)
    assert int(run.violations.sum()) == 0


@pytest.mark.parametrize("norm", [0.5, 1.0])
def test_a_remainder_is_paid_beside_a_norm_that_is_tight(norm: float) -> None:
    """Inside a cell the truth may be norm + 0.2: a norm says nothing of the known coefficient that adds the 0.2."""
    limit = sf.Limit("foam", bound=norm + 0.1, noise=0.05, norm=norm)
    plant = tank(measures=lambda h, x, u: [x[0] ** 0 * (u > 0.1)], remainder=0.2, limits=[limit])
    plan, full = sf.LsviNew(plant.problem).plan, len(plant.inputs) - 1
    assert not any(plan.certified(0, cell, full) for cell in range(plant.cells.number))


NAMES = ["one", "level", "flow"]


@pytest.mark.parametrize("more", [{}, {"most_states": 1000, "longest_row": 3.0}], ids=["whole", "growing"])
@pytest.mark.parametrize("remainder", [0.0, 0.3])
def test_measures_have_names(remainder: float, more: dict[str, Any]) -> None:
    by_column = [(0, 0.4), (0.3, 0.9), 0.5]
    by_name = sf.Limit("foam", bound=0.9, noise=0.05, prior=dict(zip(NAMES, by_column, strict=True)))
    plain = sf.Limit("foam", bound=0.9, noise=0.05, prior=by_column)
    named = tank(features=NAMES, limits=by_name, remainder=remainder, **more).problem
    assert named.features == (*NAMES, *["remainder of foam"] * bool(remainder))
    without = tank(limits=plain, remainder=remainder, **more).problem
    assert np.array_equal(named.priors[0].centre, without.priors[0].centre)
    assert np.array_equal(named.priors[0].width, without.priors[0].width)


def test_what_check_refutes_has_the_name_of_the_measure() -> None:
    bent = tank(features=NAMES, measures=lambda h, x, u: [1.0, x[0] ** 2, u]).check()
    assert "'level' is" in str(bent)


@pytest.mark.parametrize("remainder", [0.0, 0.3])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": ["one", "level"]}, "2 names for 3 features"),
        ({"features": "level"}, "features must be a list of names"),
        ({"features": ["one", "level", "level"]}, "two features share a name"),
        ({"limits": sf.Limit("foam", bound=0.9, noise=0.05, prior=[(0, 1)] * 4)}, "4 entries for 3 features"),
        ({"limits": sf.Limit("foam", bound=0.9, noise=0.05, norm=1.0, features=[3])}, "no such feature"),
    ],
)
def test_names_and_priors_are_as_many_as_the_measures(changes: dict[str, Any], words: str, remainder: float) -> None:
    with pytest.raises(InvalidInput, match=words):
        tank(remainder=remainder, **changes)


def arriving(**changes: Any) -> sf.Plant:
    """The limit is on the level that the tank comes to, and on how much it rises."""
    return tank(measures=lambda h, x, u, x_next: [1.0, x_next[0], x[0] * x_next[0]], **changes)


def arrives(h: int, x: Any, u: float, rng: np.random.Generator) -> tuple[Any, float]:
    after, _ = truth(h, x, u, rng)
    return after, 0.1 + 0.8 * after[0] + 0.7 * x[0] * after[0]


def test_features_of_the_next_state_have_rows_at_the_corners_of_its_box() -> None:
    alone = tank(measures=lambda h, x, u, x_next: [1.0, x_next[0]])
    layer = alone.problem.graph.layers[0]
    first = layer.row_ptr[alone.problem.pair_index(0, 4, 1)]
    # From level 0.4 … 0.5 with flow 0.1 to 0.39 … 0.485; the level itself does not matter: two rows in place of four.
    assert np.allclose(layer.cost_features[first : first + 2], [[1.0, 0.39], [1.0, 0.485]])
    assert layer.n_rows == 2 * layer.n_pairs - 1
    assert np.allclose(alone.rows_at(0, np.array([[0.45]]), 0.1)[:, :, 0], [[1.0, 0.4275], [1.0, 0.4475]])
    assert alone.features(0, [0.45], 0.1, [0.44]).tolist() == [1.0, 0.44]
    with pytest.raises(InvalidInput, match="depend on the next state"):
        alone.features(0, [0.45], 0.1)
    assert not arriving().check().refuted
    (found,) = tank(measures=lambda h, x, u, x_next: [1.0, x_next[0] ** 2]).check().refutations
    assert found.rule == "a feature is not affine in each coordinate"


def test_features_of_the_next_state_lie_between_those_of_the_corners(seed: int) -> None:
    plant, rng = arriving(), np.random.default_rng(seed)
    layer = plant.problem.graph.layers[0]
    for _ in range(200):
        x, number = rng.random(1) * 0.75, int(rng.integers(3))
        u, pair = plant.inputs.values[number], plant.cell(x) * 3 + number
        corners = layer.cost_features[layer.row_ptr[pair] : layer.row_ptr[pair + 1]]
        inner = plant.rows_at(0, x[:, None], u)[:, :, 0]
        exact = plant.features(0, x, u, truth(0, x, u, rng)[0])
        direction = rng.standard_normal(3)  # no direction leads out of the hulls
        assert direction @ exact <= (inner @ direction).max() + 1e-12
        assert (inner @ direction).max() <= (corners @ direction).max() + 1e-12


def test_a_limit_on_the_next_state_is_learned_and_kept(seed: int) -> None:
    plant = arriving()
    agent = sf.PlantAgent(plant)
    runs = sf.compare(plant.simulate(arrives), {"full": lambda h, x: 0.2, "learner": agent}, 60, seed)
    assert [int(run.violations.sum()) > 0 for run in runs.values()] == [False, True, False]
    assert runs["learner"].last_reward(10) > runs["fallback"].last_reward(10)
