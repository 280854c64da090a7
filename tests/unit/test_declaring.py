"""What a new declaration may change: the study's rules and the audit's own, on the same pairs of problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.audits import answers
from surefoot.audits.declaration import read_problem
from surefoot.errors import InvalidInput
from surefoot.estimate.costs import bound_costs
from surefoot.model.graph import Anchors
from surefoot.model.labels import label_of
from surefoot.study import alarms as study_alarms
from surefoot.study import comparing, declaring
from surefoot.study.alarms import Raised
from tests.hand_made import corridor
from tests.monitored import chain
from tests.studies import Calm, Plant, Quick, go_on, kettle, records_of

WARM = ("warm", 1)
OPENED = {"problem_file": "problem.json", "despite": None}
Change = Callable[[sf.Problem], sf.Problem]


def limit(problem: sf.Problem, **changed: Any) -> sf.Problem:
    return replace(problem, limits=(replace(problem.limits[0], **changed),))


def graph(problem: sf.Problem, **changed: Any) -> sf.Problem:
    return replace(problem, graph=replace(problem.graph, **changed))


def layer(problem: sf.Problem, h: int, **changed: Any) -> sf.Problem:
    layers = list(problem.graph.layers)
    layers[h] = replace(layers[h], **changed)
    return graph(problem, layers=tuple(layers))


def anchored(problem: sf.Problem, cost: float, feature: float = 0.1) -> sf.Problem:
    return graph(problem, anchors=(None, Anchors(np.array([[feature]]), np.array([[cost]]), np.zeros((1, 1))), None))


def last_features(problem: sf.Problem) -> sf.Problem:
    last = problem.graph.terminal
    assert last.cost_features is not None
    return graph(problem, terminal=replace(last, cost_features=last.cost_features * 0.5))


def last_cost(problem: sf.Problem) -> sf.Problem:
    """One last state less has a cost."""
    last = problem.graph.terminal
    assert last.cost_features is not None
    keeps = np.arange(last.n_states) != np.flatnonzero(last.has_cost)[0]
    features = np.where(keeps[:, None], last.cost_features, 0.0)
    return graph(problem, terminal=replace(last, has_cost=last.has_cost & keeps, cost_features=features))


def no_last_costs(problem: sf.Problem) -> sf.Problem:
    last = problem.graph.terminal
    return graph(problem, terminal=replace(last, has_cost=np.zeros_like(last.has_cost), cost_features=None))


def melts(problem: sf.Problem) -> Any:
    return np.array([name == "melt" for name in problem.naming.states[2]])


WIDER: dict[str, tuple[Change, str]] = {
    "noise": (lambda p: limit(p, noise=0.06), "larger noise"),
    "norm": (lambda p: limit(p, norm=3.5), "larger norm or misspecification"),
    "misspecification": (lambda p: limit(p, misspecification=0.01), "larger norm or misspecification"),
    "transition norm": (lambda p: replace(p, transition_norm=1.5), "larger norm or misspecification"),
    "support": (lambda p: kettle(wider=True).problem, "wider support"),
}
OTHER: dict[str, Change] = {
    "bound": lambda p: limit(p, bound=0.4),
    "name": lambda p: limit(p, name="other"),
    "stationarity": lambda p: replace(p, stationary_costs=True),
    "features": lambda p: layer(p, 1, cost_features=p.graph.layers[1].cost_features * 0.5),
    "fallback": lambda p: layer(p, 1, fallback=p.graph.layers[1].fallback + np.array([1, 0])),
    "features of a last state": last_features,
    "cost of a last state": last_cost,
    "costs of all last states": no_last_costs,
    "a forbidden state": lambda p: layer(p, 1, forbidden=np.array([s == WARM for s in p.naming.states[1]])),
    "a forbidden last state": lambda p: graph(p, terminal=replace(p.graph.terminal, forbidden=melts(p))),
}


def refused(old: sf.Problem, new: sf.Problem, folder: Path, discard: bool = False) -> bool:
    """By the study, and by the audit just as well."""
    found = []
    try:
        comparing.refuse_narrower(old, new, discard)
    except InvalidInput:
        found.append("study")
    read = [read_problem(p.save(folder / f"{name}.json")) for name, p in (("old", old), ("new", new))]
    if answers.narrower(*read, discard):
        found.append("audit")
    assert found in ([], ["study", "audit"]), found
    return bool(found)


def changes(old: sf.Problem, new: sf.Problem, folder: Path, discard: bool = False) -> list[str]:
    read = [read_problem(p.save(folder / f"{name}.json")) for name, p in (("old", old), ("new", new))]
    found = declaring.changes(old, new, discard)
    assert found == answers.changes(*read, discard)
    return found


@pytest.mark.parametrize("discard", [False, True])
@pytest.mark.parametrize("name", WIDER)
def test_a_declaration_may_widen_and_never_narrow(tmp_path: Path, name: str, discard: bool) -> None:
    change, words = WIDER[name]
    old, new = kettle().problem, change(kettle().problem)
    assert not refused(old, old, tmp_path, discard)
    assert not refused(old, new, tmp_path, discard)
    assert refused(new, old, tmp_path, discard)
    discarded = ["data discarded"] if discard else []
    assert changes(old, old, tmp_path, discard) == discarded
    assert changes(old, new, tmp_path, discard) == [*discarded, words]


@pytest.mark.parametrize("discard", [False, True])
@pytest.mark.parametrize("name", OTHER)
def test_what_else_is_declared_stays(tmp_path: Path, name: str, discard: bool) -> None:
    old, new = kettle().problem, OTHER[name](kettle().problem)
    assert refused(old, new, tmp_path, discard)
    assert refused(new, old, tmp_path, discard)


@pytest.mark.parametrize("name", ["stationary transitions", "transition features", "horizon"])
def test_what_the_audit_does_not_need_stays_too(name: str) -> None:
    old = kettle().problem
    first = old.graph.layers[0]
    halved = first.transition_features * np.where(np.arange(first.n_edges) == first.n_edges - 1, 0.5, 1.0)[:, None]
    new = {
        "stationary transitions": lambda: replace(old, stationary_transitions=True),
        "transition features": lambda: layer(old, 0, transition_features=halved),
        "horizon": lambda: corridor({"wait": [1.0]}, old.limits[0], horizon=2),
    }[name]()
    with pytest.raises(InvalidInput, match=name.replace(" ", "_")):
        comparing.refuse_narrower(old, new, False)


@pytest.mark.parametrize("n_features", [3, 300])
def test_the_number_of_features_stays(n_features: int) -> None:
    old, more = (chain(np.ones((1, n)), kettle().problem.limits) for n in (n_features, n_features + 1))
    comparing.refuse_narrower(old, limit(old, noise=0.06), False)
    with pytest.raises(InvalidInput, match=f"{n_features + 1} features, there were {n_features}"):
        comparing.refuse_narrower(old, more, False)


def test_starts_may_be_added_and_not_left_out(tmp_path: Path) -> None:
    both = kettle().problem
    one = graph(both, starts=both.graph.starts[:1])
    assert refused(both, one, tmp_path)
    assert not refused(one, both, tmp_path)


def test_anchors_stay_as_long_as_the_data_do(tmp_path: Path) -> None:
    bare = kettle().problem
    first = anchored(bare, 0.1)
    others = (anchored(bare, 0.2), anchored(bare, 0.1, 0.2), bare)
    assert not refused(first, anchored(bare, 0.1), tmp_path)
    for old, new in [(first, other) for other in others] + [(other, first) for other in others]:
        assert refused(old, new, tmp_path)
        assert not refused(old, new, tmp_path, discard=True)
    assert changes(first, bare, tmp_path, discard=True) == ["data discarded", "anchors dropped"]
    assert changes(first, first, tmp_path, discard=True) == ["data discarded", "anchors trusted"]
    assert changes(first, first, tmp_path) == []


# --- answers --------------------------------------------------------------------------------------------


def successor(state: str = "cold") -> Raised:
    return Raised("successor", 3, "…", {"step": 0, "state": "s", "action": "heat", "next_state": state})


def test_a_discard_answers_a_transition_once_unless_it_is_declared() -> None:
    """Only transitions that stay outside the support are remembered, and of no other kind of alarm."""
    narrow, wide = kettle().problem, kettle(wider=True).problem
    residual = Raised("residual", 4, "…", {})
    alarms = [residual, successor()]
    assert study_alarms.answered_by_discard(alarms, narrow) == [successor().transition]
    assert study_alarms.answered_by_discard(alarms, wide) == []
    outside = study_alarms.answered_by_discard(alarms, narrow)
    assert study_alarms.unanswered([successor("melt")], narrow, True, outside) == []
    assert "a second time" in study_alarms.unanswered([successor()], narrow, True, outside)[0]
    assert study_alarms.unanswered([successor()], wide, False, outside) == []


def test_the_noise_that_is_asked_for_is_enough_and_hardly_more() -> None:
    problem, needed = kettle().problem, 0.123456789
    alarm = Raised("limit", 3, "…", {"certified": True, "noise_needed": {"limit 0": needed}})
    (words,) = study_alarms.unanswered([alarm], problem, False, ())
    asked = float(words.partition("'limit 0': ")[2].partition("}")[0])
    assert needed <= asked <= needed * 1.0001
    assert study_alarms.unanswered([alarm], limit(problem, noise=needed), False, ()) == []
    assert study_alarms.unanswered([alarm], limit(problem, noise=needed * (1 - 1e-9)), False, ()) == [words]
    assert study_alarms.unanswered([alarm], problem, True, ()) == []


def test_one_alarm_speaks_for_all_rows_of_an_import() -> None:
    details: dict[str, Any] = {"certified": False, "noise_needed": {"a": 0.2}}
    study_alarms.join(details, {"noise_needed": {"a": 0.1, "b": 0.3}}, False)
    assert details == {"certified": False, "noise_needed": {"a": 0.2, "b": 0.3}}
    study_alarms.join(details, {"noise_needed": {"a": 0.4}}, True)
    study_alarms.join(details, {}, False)
    assert details == {"certified": True, "noise_needed": {"a": 0.4, "b": 0.3}}
    residual: dict[str, Any] = {"certified": False}
    study_alarms.join(residual, {"noise_needed": {"a": 0.1}}, False)
    assert residual == {"certified": False}


def test_the_audit_knows_the_rows_of_the_fallback(tmp_path: Path) -> None:
    """Every plan certifies these: a logged one that exceeds its limit disproves what is declared."""
    read = read_problem(kettle().problem.save(tmp_path / "problem.json"))
    for action in ("wait", "heat"):
        assert answers.of_the_fallback(read, [0, "s", action, "s", [0.1]]) is (action == "wait")
        assert answers.of_the_fallback(read, [1, "s", action, ["warm", 1], [0.1]]) is (action == "wait")
    for state, reached in (("s", True), ("melt", False), (["warm", 1], False)):
        assert answers.of_the_fallback(read, [2, state, [0.1]]) is reached


def test_what_a_limit_depends_on_may_only_widen(tmp_path: Path) -> None:
    def declared(**known: Any) -> sf.Problem:
        return corridor({"stay": [1.0, 0.5]}, sf.Limit("load", bound=2.0, noise=0.1, **known))

    first, second = declared(norm=1.0, features=[0]), declared(norm=1.0, features=[1])
    assert refused(first, second, tmp_path, discard=True)
    assert not refused(first, declared(norm=1.0), tmp_path, discard=True)
    assert not refused(declared(prior=[(0, 0.5)], features=[0]), first, tmp_path, discard=True)


def test_offsets_that_episodes_share_are_no_news_for_data_that_are_kept(tmp_path: Path) -> None:
    """What was learned after an override may depend on the offset, and logs did not name their episodes (spec 3)."""
    none, some, more = (limit(kettle().problem, episode_noise=scale) for scale in (0.0, 0.01, 0.02))
    assert refused(none, some, tmp_path)
    assert not refused(none, some, tmp_path, discard=True)
    assert not refused(some, more, tmp_path)
    assert changes(some, more, tmp_path) == ["larger noise"]


@pytest.mark.parametrize("before", [0.0, 0.01])
def test_model_errors_that_are_declared_later_count_for_the_data_that_are_kept(tmp_path: Path, before: float) -> None:
    """Bounds are those of a learner that knew of them all along; wider where no visits were counted before."""
    first, later = (limit(kettle().problem, misspecification=zeta) for zeta in (before, 0.03))
    path, plant = tmp_path / "k.study", Plant(sf.World(first, transition=[1.0], cost=[1.0]), 3)
    with sf.Study.open(path, first, files=Quick(), monitor_factory=Calm) as study:
        go_on(study, plant, 60)
        study.begin("s")
        study.tell(study.ask().ask_id, "s", float("nan"))
        study.abort("the sensor was loose")
        study.acknowledge("and the model is not exact", problem=later)
        agent = study.standing.agent
        upper = np.vstack(agent.plan.bounds.upper)
        knew = sf.LsviNew(later, 0.025, ridges=agent.options.ridges, shaped=agent.options.shaped)
        for record in records_of(path):
            if record["kind"] == "tell" and record["cost"] is not None:
                h, names = record["step"], [label_of(record[key]) for key in ("state", "action", "next_state")]
                edge = later.edge_index(h, *names)
                knew.costs.add(h, later.graph.layers[h].cost_features[edge], np.array(record["cost"]))
        wanted = np.vstack(bound_costs(later, knew.costs, knew.cost_confidence).upper)
        assert np.all(upper >= wanted)
        assert np.array_equal(upper, wanted) == (before > 0.0)
        go_on(study, plant, 90)
    assert sf.audit(path).clean, str(sf.audit(path))


PRIOR = [(0.0, 1.0), (-1.0, 1.0)]


@pytest.mark.parametrize(
    ("old", "new", "holds"),
    [
        ({"prior": PRIOR}, {"prior": [(-0.1, 1.0), (-1.0, 1.1)]}, True),
        ({"prior": PRIOR}, {"prior": [(0.1, 2.0), (-2.0, 2.0)]}, False),
        ({"prior": PRIOR}, {"prior": [(-1.0, 2.0), (-2.0, 0.9)]}, False),
        ({"prior": PRIOR}, {"prior": [(0.0, 2.0), (-1.0, 1.0)], "norm": 1.42}, True),  # every corner is √2 away
        ({"prior": PRIOR}, {"prior": [(0.0, 2.0), (-1.0, 1.0)], "norm": 1.41}, False),
        ({"prior": PRIOR, "norm": 1.2}, {"prior": [(0.0, 2.0), (-1.0, 1.0)], "norm": 1.2}, True),
        ({"prior": PRIOR, "norm": 1.2}, {"prior": [(0.0, 2.0), (-1.0, 1.0)], "norm": 1.1}, False),
        ({"prior": PRIOR, "norm": 1.2}, {"prior": PRIOR, "norm": 1.3}, True),
        ({"prior": PRIOR, "norm": 1.2}, {"prior": PRIOR, "norm": 1.1}, False),
        ({"prior": PRIOR}, {"norm": 1.42}, True),
        ({"prior": PRIOR}, {"norm": 1.41}, False),
        ({"prior": [(0.5, 0.5), (0.0, 0.0)]}, {"norm": 0.5, "features": [0]}, True),
        ({"prior": [(0.5, 0.5), (0.0, 0.0)]}, {"norm": 0.5, "features": [1]}, False),
        ({"norm": 0.5}, {"prior": [(-0.5, 0.5), (-0.6, 0.5)]}, True),
        ({"norm": 0.5}, {"prior": [(-0.5, 0.5), (-0.4, 0.6)]}, False),
        ({"norm": 0.5}, {"prior": [(-0.5, 0.4), (-0.6, 0.6)]}, False),
        ({"norm": 0.5}, {"prior": [(-0.5, 0.5), (-0.5, 0.5)], "norm": 0.5}, True),
        ({"norm": 0.5}, {"prior": [(-0.5, 0.5), (-0.5, 0.5)], "norm": 0.4}, False),
        ({"norm": 0.5, "features": [0]}, {"prior": [(-0.5, 0.5), 0.0]}, True),
    ],
)
def test_a_prior_gives_way_to_one_that_holds_it(tmp_path: Path, old: Any, new: Any, holds: bool) -> None:
    """Every γ that was possible stays possible; and where the rows are other ones, only with the data discarded."""
    before, after = (
        corridor({"stay": [1.0, 0.5]}, [sf.Limit("a", bound=2.0, noise=0.1, norm=1.0), known])
        for known in (sf.Limit("load", bound=2.0, noise=0.1, **each) for each in (old, new))
    )
    assert refused(before, after, tmp_path, discard=True) is not holds
    assert refused(before, before, tmp_path) is False
    same = old.get("prior") == new.get("prior")
    assert refused(before, after, tmp_path) is not (holds and same)
    if holds:
        assert changes(before, after, tmp_path, discard=True)[1:] == ["larger norm or misspecification"]


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("name", ["noise", "episode_noise", "misspecification", "norm"])
def test_each_limit_is_looked_at(tmp_path: Path, name: str, at: int) -> None:
    limits = [sf.Limit(key, bound=2.0, noise=0.1, norm=1.0, episode_noise=0.1, misspecification=0.1) for key in "ab"]
    old = corridor({"stay": [1.0, 0.5]}, limits)
    limits[at] = replace(limits[at], **{name: 2.0})
    new = corridor({"stay": [1.0, 0.5]}, limits)
    assert not refused(old, new, tmp_path)
    assert refused(new, old, tmp_path)
    assert len(changes(old, new, tmp_path)) == 1


def needed(noise: float) -> Any:
    return {"certified": True, "noise_needed": {"limit 0": noise}}


WENT = {"step": 0, "state": "s", "action": "heat", "next_state": "cold"}


@pytest.mark.parametrize(
    ("kind", "details", "kept", "discarded"),  # is it answered by no change, and by a discard?
    [
        ("cost", {}, True, True),
        ("plan", {}, True, True),
        ("limit", {"certified": False}, True, True),
        ("limit", {"certified": True}, False, True),
        ("limit", needed(0.05), True, True),  # that is declared
        ("limit", needed(0.0501), False, True),
        ("residual", {"certified": False}, False, True),
        ("contradiction", {}, False, True),
        ("computation", {}, False, True),
        ("successor", WENT, False, True),
        ("successor", {**WENT, "next_state": "s"}, True, True),  # by a support that has it
        ("successor", {**WENT, "next_state": "s", "exact": [0.5]}, False, True),  # in the cell, outside the box
    ],
)
def test_what_answers_an_alarm(tmp_path: Path, kind: str, details: Any, kept: bool, discarded: bool) -> None:
    """The study and the audit, on the same alarms."""
    problem, alarm = kettle().problem, Raised(kind, 3, "…", details)
    read = read_problem(problem.save(tmp_path / "problem.json"))
    for discard, answered in ((False, kept), (True, discarded)):
        assert (study_alarms.unanswered([alarm], problem, discard, ()) == []) is answered
        declared = answers.Declared(read, OPENED, lambda name: read)
        for limit_name, scale in details.get("noise_needed", {}).items():
            declared.exceeded(3, limit_name, scale, True)
        if kind == "successor":
            declared.left_support(3, {**details, "point": details.get("exact")})
        changed = ["data discarded"] if discard else []
        record = {
            "n": 9,
            "discard": discard,
            "problem": read.digest,
            "problem_file": "problem.json",
            "changes": changed,
        }
        found = list(declared.answer({**record, "time": "2026", "despite": None}, [(4, {**alarm.entries()})]))
        assert (found == []) is answered, found
        assert (declared.restored is not None) is alarm.disproves
        assert alarm.disproves is (kind not in ("cost", "plan") and (kind, details) != ("limit", {"certified": False}))


def test_the_audit_knows_a_certified_action_whatever_the_alarm_says(tmp_path: Path) -> None:
    """A forged ``certified: false`` would make a limit that was exceeded no disproof."""
    read = read_problem(kettle().problem.save(tmp_path / "problem.json"))
    alarm = Raised("limit", 3, "…", {"certified": False}).entries()
    for certified in (False, True):
        declared = answers.Declared(read, OPENED, lambda name: read)
        declared.exceeded(3, "limit 0", 0.2, certified)
        assert declared.promise([(4, alarm)]).startswith("none: ended" if certified else "none in safe mode")


def test_the_first_differences_are_named() -> None:
    there = {"a": [1, 2.0], "b": {"c": np.zeros(2)}, "d": 1}
    here = {"a": [1, 3.0], "b": {"c": np.array([0.0, 1.0])}, "e": [1]}
    assert comparing.difference(there, here).split("; ") == [
        "a[1]: 2.0 there, 3.0 here",
        "b.c[1]: 0.0 there, 1.0 here",
        "d: 1 there, not given here",
        "e: not given there, [1] here",
    ]
    assert comparing.difference(there, dict(there)) == ""
    assert comparing.difference([1, 2], [1]) == ": 2 entries there, 1 here"
    assert comparing.difference({"a": 1}, {"a": True}) == "a: 1 there, True here"
    assert comparing.difference(np.zeros(1), np.zeros(2)) == ": float64 (1,) there, float64 (2,) here"
    assert comparing.difference(np.zeros(1), np.zeros(1, np.float32)) == ""
    assert comparing.difference(np.zeros(1), np.zeros(1, int)).startswith(": float64 (1,) there, int64 (1,)")
    for n, tail in ((5, "[4]: 0 there, 1 here"), (6, "; …")):
        found = comparing.difference([0] * n, [1] * n)
        assert found.endswith(tail)
        assert found.count("there") == 5


def test_two_problems_differ_where_their_documents_do() -> None:
    """Transition features that are the cost features are as good as the same ones written twice."""
    old = kettle().problem
    shared = corridor({"stay": [1.0]}, old.limits[0])
    assert comparing.problem_difference(shared, shared) == ""
    found = comparing.problem_difference(old, limit(old, noise=0.07))
    assert found == "limits[0].noise: 0.05 there, 0.07 here"
