"""Studies of problems whose actions have an intensity (spec 9): offers, tells, replay, imports and the audit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.audits.audit import Unreadable
from surefoot.audits.declaration import read_problem
from surefoot.audits.rays import RayBound, largest_kept
from surefoot.errors import InvalidInput, OutOfOrder, UnreadableFile
from surefoot.reports.study_page import write_study_page
from surefoot.serve.openapi import description
from surefoot.study.protocol import answer
from surefoot.study.status import as_text
from tests.drawn_worlds import ray_problem, ray_tables
from tests.forgery import Record, forge
from tests.served import go_on as go_on_over_http
from tests.served import served
from tests.studies import Calm, Plant, Quick, fingerprint, go_on, nervous, records_of
from tests.unit.test_rays import declared

HIDDEN = [0.2, 0.45]  # strain: 0.2 at rest, 0.65 in full; the limit is 0.6


def valve(**changed: Any) -> sf.World:
    """The valve of the tests of rays, and a truth in which 8/9 of it are safe."""
    return sf.World(declared(**changed), transition=[1.0], cost=HIDDEN)


def opened(path: Path, problem: sf.Problem | None, **options: Any) -> sf.Study:
    return sf.Study.open(path, problem, **{"files": Quick(), **options})


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of the valve, in which an operator has opened it by hand now and then; not to be changed."""
    path, world = tmp_path_factory.mktemp("rays") / "valve.study", valve()
    plant = Plant(world, 3)
    with opened(path, world.problem, snapshot_every=20) as study:
        go_on(study, plant, 12)
        for k in range(3):
            study.begin()
            for by_hand in (0.1 * k, None):
                offer = study.ask()
                played = offer.intensity if by_hand is None else by_hand
                after, cost = plant.answer(offer.episode, offer.step, offer.state, "open", played)
                study.tell(offer.ask_id, after, cost, "open", played)
        go_on(study, plant, 30)
    return path


@pytest.fixture
def path(learnt: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(learnt, tmp_path / "valve.study"))


def asks(records: list[Record]) -> list[Record]:
    """Offers of the valve that are neither shut nor open in full."""
    return [each for each in records if each["kind"] == "ask" and 0.0 < each["intensity"] < 1.0]


def test_an_offer_says_how_far_and_why_no_further(tmp_path: Path) -> None:
    with opened(tmp_path / "v.study", declared()) as study:
        study.begin()
        offer = study.ask()
        assert offer.intensity == pytest.approx(0.4, abs=1e-12)  # before any data strain ≤ 0.2 + α
        assert offer.to_dict()["intensity"] == offer.intensity
        found = offer.certificate["opening"]
        assert found["to"] == offer.intensity < found["beyond"] <= offer.intensity + 0.011
        assert found["limit"] == "strain"
        assert found["upper"] == pytest.approx(0.2 + found["beyond"])
        assert offer.certificate["margin"] >= 0.0
        text = as_text({**study.status()})
        assert "offered: 'open' at 0.4 (ask" in text
        assert "it may be opened to 0." in text
        assert "strain may reach 0." in text
        assert study.tell(offer.ask_id, 1, 0.3).repeated is False
    told = records_of(tmp_path / "v.study")[-1]
    assert (told["intensity"], told["override"]) == (offer.intensity, False)


def test_what_an_operator_played_is_what_is_learned(tmp_path: Path) -> None:
    problem = declared()
    with opened(tmp_path / "v.study", problem) as study:
        study.begin()
        offer = study.ask()
        number, between = "an intensity is a number", "between 0 and 1"
        wrong = [
            (1.5, between),
            (float("nan"), between),
            ("x", number),
            ("0.5", number),
            (True, number),
            ([0.5], number),
        ]
        for intensity, message in wrong:
            with pytest.raises(InvalidInput, match=message):
                study.tell(offer.ask_id, 1, 0.3, intensity=intensity)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="has no intensity"):
            study.tell(offer.ask_id, 0, 0.2, "rest", 0.5)
        study.tell(offer.ask_id, 1, 0.3, intensity=0.125)
        assert study.tell(offer.ask_id, 1, 0.3, "open", 0.125).repeated
        with pytest.raises(OutOfOrder, match=r"action 'open' at 0\.125"):
            study.tell(offer.ask_id, 1, 0.3)
        second = study.ask()
        study.tell(second.ask_id, 1, 0.2, "rest")
        records = records_of(tmp_path / "v.study")
        tells = [(each["action"], each["intensity"], each["override"]) for each in records if each["kind"] == "tell"]
        assert tells == [("open", 0.125, True), ("rest", 1.0, True)]
        agent = sf.LsviNew(problem, 0.025)
        agent.begin_episode(0)
        agent.observe(0, 0, "open", 1, 0.3, intensity=0.125)
        agent.observe(1, 1, "rest", 1, 0.2)
        agent.end_episode()
        for name, array in agent._data().items():
            assert np.array_equal(array, study.standing.agent._data()[name]), name


@pytest.mark.parametrize(("played", "certified"), [(None, True), (0.125, True), (0.9, False)])
def test_the_monitor_and_its_alarm_know_the_intensity_that_was_played(
    played: float | None, certified: bool, tmp_path: Path
) -> None:
    """Told or logged: the monitor looks at the features there, and an alarm says whether it was certified."""
    looked: list[Any] = []

    class Looking(nervous({1: "limit"})):  # type: ignore[misc]
        def observe(self, h: int, features: Any, cost: Any) -> Any:
            looked.append([h, *features])
            return super().observe(h, features, cost)

    with opened(tmp_path / "told.study", declared(), monitor_factory=Looking) as study:
        study.begin()
        offer = study.ask()
        study.tell(offer.ask_id, 1, 0.9, intensity=played)
    with opened(tmp_path / "logged.study", declared(), monitor_factory=Looking) as study:
        intensity = offer.intensity if played is None else played
        row = {"step": 0, "state": 0, "action": "open", "next_state": 1, "cost": 0.9, "intensity": intensity}
        study.import_log([row])
    assert looked == [[0, 1.0, intensity]] * 2
    for name in ("told", "logged"):
        (alarm,) = [each for each in records_of(tmp_path / f"{name}.study") if each["kind"] == "alarm"]
        assert alarm["details"]["certified"] is certified


def test_another_ray_than_the_one_offered_must_say_its_intensity(tmp_path: Path) -> None:
    actions = ["rest", "open", "wide"]
    changed: dict[str, Any] = {
        "actions": lambda h, s: actions,
        "cost_features": lambda h, s, a: [1.0, actions.index(a) / 2],
        "successors": lambda h, s, a: [s] if a == "rest" else [min(s + 1, 2)],
    }
    with opened(tmp_path / "v.study", declared(**changed)) as study:
        study.begin()
        offer = study.ask()
        other = "wide" if offer.action == "open" else "open"
        with pytest.raises(InvalidInput, match="at which intensity the other action was applied"):
            study.tell(offer.ask_id, 1, 0.3, other)
        study.tell(offer.ask_id, 1, 0.3, other, 0.5)


def test_from_the_first_record_or_a_snapshot_the_very_same_state_comes_back(path: Path) -> None:
    with opened(path, None) as study:
        assert not study.recovered
        study.begin()
        pending = study.ask()  # and the process dies
        before = fingerprint(study), [row.tobytes() for row in study.standing.agent.plan.intensities or ()]
    shutil.rmtree(path / "snapshots")
    with opened(path, None) as study:
        assert study.ask() == pending
        assert 0.0 < pending.intensity < 1.0
        assert (fingerprint(study), [row.tobytes() for row in study.standing.agent.plan.intensities or ()]) == before


def test_the_audit_follows_every_intensity(path: Path) -> None:
    report = sf.audit(path)
    assert report.clean, str(report)
    assert report.counts["offers opened to a limit"] > 10
    assert report.counts["overrides"] >= 2
    assert "opened as far as a limit allows" in str(report)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda ask, tell: ask.update(intensity=min(1.0, ask["intensity"] + 0.01)), "was not certified"),
        (lambda ask, tell: ask["certificate"]["opening"].update(upper=0.59), "found is an upper bound"),
        (lambda ask, tell: ask["certificate"].update(opening=None), "how far the action may be opened"),
        (lambda ask, tell: ask.update(intensity=1.01), "no intensity"),
        (lambda ask, tell: ask.update(intensity=None), "no intensity"),
        (lambda ask, tell: tell.update(intensity=tell["intensity"] / 2), "override"),
    ],
    ids=["further", "beyond", "silent", "more than all", "none", "told otherwise"],
)
def test_a_forged_intensity_is_not_clean(path: Path, edit: Callable[[Record, Record], Any], said: str) -> None:
    """All numbers that go with it are forged as well as one can: what is said of the certificate, and the tell."""

    def change(records: list[Record]) -> None:
        ask = asks(records)[-1]
        tell = next(each for each in records if each["kind"] == "tell" and each["ask"] == ask["ask"])
        offered = ask["intensity"]
        edit(ask, tell)
        if tell["intensity"] == offered != ask["intensity"] and ask["certificate"]["opening"] is not None:
            tell["intensity"] = ask["certificate"]["opening"]["to"] = ask["intensity"]

    forge(path, change)
    report = sf.audit(path)
    assert not report.clean
    assert any(said in str(each) for each in report.exceptions), str(report)


@pytest.mark.parametrize("kind", ["ask", "tell"])
@pytest.mark.parametrize("intensity", [1.5, None, True])
def test_an_intensity_that_no_action_has_is_not_opened(path: Path, kind: str, intensity: Any) -> None:
    forge(
        path,
        lambda records: (
            asks(records)[0].update(intensity=intensity)
            if kind == "ask"
            else next(each for each in records if each["kind"] == "tell" and each["action"] == "open").update(
                intensity=intensity
            )
        ),
    )
    shutil.rmtree(path / "snapshots")
    with pytest.raises(UnreadableFile, match="intensity"):
        opened(path, None)
    assert not sf.audit(path).clean


def test_a_row_that_was_played_at_another_intensity_shows_in_later_bounds(path: Path) -> None:
    def change(records: list[Record]) -> None:
        ask = asks(records)[0]
        tell = next(each for each in records if each["kind"] == "tell" and each["ask"] == ask["ask"])
        tell["intensity"], tell["override"] = 0.9, True

    forge(path, change)
    assert any("its certificate bounds 'strain'" in str(each) for each in sf.audit(path).exceptions)


def test_stationary_costs_with_other_anchors_at_another_step_are_not_audited(path: Path) -> None:
    """The library refuses to declare them; in a file by another hand they would make the audit share wrong bounds."""
    file = path / "problem.json"
    document = json.loads(file.read_text())
    document["anchors"][1] = {**document["anchors"][1], "cost": [[0.1]]}
    file.write_text(json.dumps(document))
    with pytest.raises(Unreadable, match="anchors of steps 0 and 1 differ although costs are stationary"):
        read_problem(file)
    with pytest.raises(Unreadable):
        sf.audit(path)
    document["stationary_costs"] = False
    file.write_text(json.dumps(document))
    assert read_problem(file).anchors[1][1].tolist() == [[0.1]]  # type: ignore[index]


ROWS = [
    {"step": 0, "state": 0, "action": "open", "next_state": 1, "cost": 0.31, "intensity": 0.25},
    {"step": 1, "state": 1, "action": "rest", "next_state": 1, "cost": 0.19},
    {"step": 0, "state": 0, "action": "open", "next_state": 0, "cost": 0.43, "intensity": 0.5},
]


def test_logged_rows_enter_with_their_intensities(tmp_path: Path) -> None:
    path, problem = tmp_path / "v.study", declared()
    table = tmp_path / "log.csv"
    names = list(ROWS[0])
    table.write_text("\n".join([",".join(names), *(",".join(str(r.get(k, "")) for k in names) for r in ROWS)]))
    with opened(path, problem, ridges=[0.05, 0.5, 5.0]) as study:  # three rows tell little beside any larger one
        with pytest.raises(InvalidInput, match="does not say at which it was played"):
            study.import_log([{k: v for k, v in ROWS[0].items() if k != "intensity"}])
        with pytest.raises(InvalidInput, match=r"an intensity is a number|no such intensity"):
            study.import_log([{**ROWS[0], "intensity": 2.0}])
        assert study.import_log(table).rows == 3
        assert study.problem.graph.cost_dim == 2
        z = np.array([0.25, 0.5])  # beside the anchor only the second feature is learned
        assert study.standing.agent.costs.bank.state.targets[..., 1].sum() == pytest.approx(
            z @ (np.array([0.31, 0.43]) - 0.2)
        )
        with pytest.raises(InvalidInput, match="cannot be told from others"):
            study.import_log([{**ROWS[0], "intensity": 0.2501}])  # a copy whose intensity was rounded
        study.begin()
        study.ask()
    assert records_of(path)[1]["rows"][0] == [0, 0, "open", 1, 0.25, [0.31]]
    assert sf.audit(path).clean
    forge(path, lambda records: records[1]["rows"][0].__setitem__(4, 0.75))
    assert any("its certificate bounds 'strain'" in str(each) for each in sf.audit(path).exceptions)
    forge(path, lambda records: records[1]["rows"][0].pop(4))
    assert any("row 1 is none of the problem" in str(each) for each in sf.audit(path).exceptions)


def test_a_wider_declaration_keeps_both_ends_of_every_ray(path: Path) -> None:
    with opened(path, None) as study:
        study.begin()
        study.tell(study.ask().ask_id, 1, float("inf"))
        study.abort()
        other = declared(
            cost_features=lambda h, s, a: [1.0, 0.05] if a == "rest" else [1.0, 1.0],
            anchor=lambda h: ([1.0, 0.0], 0.2),
        )
        with pytest.raises(InvalidInput, match="other cost_features"):
            study.acknowledge("a better model", problem=other)
        with pytest.raises(InvalidInput, match="other cost_features"):
            study.acknowledge("no rays any more", problem=declared().at(0.5))
        study.acknowledge("a louder sensor", noise=0.12)
        go_on(study, Plant(valve(), 5), study.standing.episodes + 2)
    assert sf.audit(path).clean


def test_by_json_and_in_the_exported_policy(path: Path, tmp_path: Path) -> None:
    with opened(path, None) as study:
        answer(study, {"call": "begin"})
        offer = answer(study, {"call": "ask"})
        assert 0.0 < offer["intensity"] <= 1.0
        told = {"ask_id": offer["ask_id"], "next_state": 1, "cost": 0.31, "intensity": 0.2}
        assert answer(study, {"call": "tell", **told})["repeated"] is False
        answer(study, {"call": "abort"})
        policy = json.loads(study.export_policy(tmp_path / "policy.json").read_text())
    entries = [entry for step in policy["steps"] for entry in step]
    assert any(0.0 < entry["intensity"] < 1.0 for entry in entries)
    assert "intensity" in json.dumps(description()["paths"])


def test_over_http_and_on_the_pages(tmp_path: Path, seed: int) -> None:
    """The journal of a served study is that of the same calls in Python; its page shows what is offered and played."""
    path = tmp_path / "served"
    with served(path, declared()) as server:
        plant = server.caller("plant")
        go_on_over_http(plant, Plant(valve(), seed), 4)
        plant.call("begin")
        offer = plant.call("ask")
        wrong = plant.post("tell", ask_id=offer["ask_id"], next_state=1, cost=0.3, intensity=1.5)
        assert (wrong.status_code, "between 0 and 1" in wrong.text) == (422, True)
        plant.call("tell", ask_id=offer["ask_id"], next_state=1, cost=0.3, intensity=0.125)
        second = plant.call("ask")
        assert 0.0 < second["intensity"] < 1.0
    page = write_study_page(path).read_text("utf-8")
    assert f"take <b class=act>open at {second['intensity']:.6g}</b>" in page
    assert "it may be opened to 0." in page
    assert "Last played: <b>open at 0.125</b>, by an operator, not as offered (step 0)" in page
    assert sf.audit(path).clean
    with opened(tmp_path / "python", declared()) as study:
        go_on(study, Plant(valve(), seed), 4)
    mine, theirs = (
        [each["intensity"] for each in records_of(at) if each["kind"] in ("ask", "tell")]
        for at in (tmp_path / "python", path)
    )
    assert len(mine) == 16
    assert mine == theirs[:16]


@pytest.mark.parametrize("number", range(3))
def test_random_ray_problems_are_audited_clean(number: int, tmp_path: Path, seed: int) -> None:
    """Several limits, forbidden states, traps ahead; the audit agrees with every certificate."""
    tables = ray_tables(number, seed)
    world = sf.World(ray_problem(tables), transition=tables.mu, cost=tables.gamma)
    with opened(tmp_path / "r.study", world.problem, monitor_factory=Calm) as study:
        go_on(study, Plant(world, seed), 12)
    report = sf.audit(tmp_path / "r.study")
    assert report.clean, str(report)


def test_the_audits_largest_root_is_the_last_one(seed: int) -> None:
    """Against a fine grid: never below the last point that keeps the limit, and hardly above it."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0.0, 1.0, 20_001)
    for _ in range(50):
        parts = [tuple(rng.normal(size=(2, 1, *shape))) for shape in ((), (3,), (2,))]
        line, limit = RayBound(*parts), rng.normal(2.0, 2.0, (1, 1))
        f = [(1 - grid)[:, None] * p[0].reshape(1, -1) + grid[:, None] * p[1].reshape(1, -1) for p in parts]
        total = f[0][:, 0] + np.sqrt((f[1] ** 2).sum(axis=1)) + np.abs(f[2]).sum(axis=1)
        kept = np.flatnonzero(total <= limit[0, 0])
        found = float(largest_kept([[line]], limit)[0])
        if len(kept) == 0:
            assert found == -1.0 or total.min() - limit[0, 0] < 1e-3
        else:
            assert grid[kept[-1]] - 1e-12 <= found <= grid[kept[-1]] + 1 / 20_000
