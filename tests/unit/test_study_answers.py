"""After an alarm: the promise returns only with a changed declaration, journalled, certified and audited."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from surefoot.audits.audit import audit
from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.monitor.monitor import Alarm
from tests.answered import anchored, left_support, promise_of_the_next_offer, waits
from tests.audited import clean
from tests.forgery import forge
from tests.studies import (
    Calm,
    Plant,
    Quick,
    fingerprint,
    go_on,
    kettle,
    learnt,
    lines_of,
    nervous,
    off_the_fallback,
    records_of,
)

STAMP = "every step"


def raised_limit(opened: Any, world: sf.World, cost: float = 0.9) -> sf.Study:
    """A study that has learnt, and whose fallback then measures far above the limit of 0.5."""
    study = learnt(opened(monitor_factory=None), world, 25)
    assert not study.safe_mode
    waits(study, cost)
    assert [alarm["alarm"] for alarm in study.status()["alarms"]] == ["limit"]
    return study


def needed(study: sf.Study) -> float:
    return max(alarm["details"]["noise_needed"]["limit 0"] for alarm in study.status()["alarms"])


# --- the attack -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["limit", "successor"])
def test_seven_rounds_of_alarm_and_acknowledgement_end_without_a_promise(opened: Any, path: Path, kind: str) -> None:
    study = opened(monitor_factory=None)
    for k in range(7):
        waits(study, 1.0 + k if kind == "limit" else 0.1, "s" if kind == "limit" else f"elsewhere {k}")
        with contextlib.suppress(InvalidInput):
            study.acknowledge("we have seen it")
        assert not promise_of_the_next_offer(study)["promise"].startswith(STAMP)
    assert not study.status()["promise"].startswith(STAMP)
    study.close()
    assert not opened(monitor_factory=None).status()["promise"].startswith(STAMP)
    assert clean(path).promise.startswith("none")


@pytest.mark.parametrize("kind", ["limit", "successor", "residual"])
def test_a_journal_that_goes_on_with_what_was_disproved_is_refused(
    opened: Any, path: Path, world: sf.World, kind: str
) -> None:
    """Kept data in doubt, on replay: what ``acknowledge`` refuses cannot be written by hand either."""
    factory = nervous({5: kind})
    study = opened(monitor_factory=factory)
    go_on(study, Plant(world, 0), 1)
    if kind == "successor":
        waits(study, 0.1, "elsewhere")
    else:
        go_on(study, Plant(world, 0), 5)
    study.acknowledge("it goes on", discard_data=True)
    share, constants = records_of(path)[0]["share"], records_of(path)[0]["constants"]
    study.close()

    def keep(found: list[Any]) -> None:
        found[-1].update(discard=False, epoch=0, share=share, constants=constants, changes=[])

    forge(path, keep)
    with pytest.raises(UnreadableFile, match="disproved what is declared, or the data are in doubt"):
        opened(monitor_factory=factory)
    assert any("as before" in str(e) or "in doubt" in str(e) for e in audit(path).exceptions)


# --- larger noise ---------------------------------------------------------------------------------------


def test_noise_that_explains_the_measurement_brings_the_promise_back(opened: Any, path: Path, world: sf.World) -> None:
    study = raised_limit(opened, world)
    before, rows = study.standing.agent.plan.bounds, study.status()["cost_rows"]
    ridges, upto = study.standing.constants["ridges"], study.standing.made_after
    scale = needed(study)
    assert 0.05 < scale < 0.4
    for refused in (scale * 0.99, 0.05):
        with pytest.raises(InvalidInput, match=r"noise of at least {'limit 0': 0\.\d+}, or discard_data=True"):
            study.acknowledge("a worse sensor", noise=refused)
    with pytest.raises(InvalidInput, match="no such limit"):
        study.acknowledge("a worse sensor", noise={"heat": 1.0})
    records = len(lines_of(path))
    study.acknowledge("a worse sensor", noise={"limit 0": scale})
    record = records_of(path)[-1]
    assert (record["changes"], record["discard"], record["problem_file"]) == (
        ["larger noise"],
        False,
        f"problem-{records}.json",
    )
    assert study.problem.limits[0].noise == scale
    assert study.status()["cost_rows"] == rows
    assert (study.standing.epoch, study.standing.share) == (0, 0.025)  # nothing of p is spent,
    assert study.standing.constants["ridges"] == ridges  # because the ridges stay
    assert study.standing.made_after == records > upto
    for old, new in zip(before.upper, study.standing.agent.plan.bounds.upper, strict=True):
        assert (new >= old - 1e-12).all()
        assert (new > old).any()
    certificate = promise_of_the_next_offer(study)
    assert certificate["restored"] == {"record": records, "by": ["larger noise"]}
    assert certificate["promise"] == f"every step since record {records} safe with probability ≥ 0.95 (larger noise)"
    go_on(study, Plant(world, 4), study.standing.episodes + 10)
    study.close()
    assert clean(path).promise == f"every step since record {records} (larger noise)"


def test_a_study_declared_anew_opens_with_either_problem_and_from_a_snapshot(
    opened: Any, path: Path, world: sf.World
) -> None:
    study = opened(monitor_factory=None, snapshot_every=10)
    go_on(study, Plant(world, 0), 30)
    waits(study, 0.9)
    study.acknowledge("a worse sensor", noise=0.4)
    go_on(study, Plant(world, 1), 42)
    state, current = fingerprint(study), study.problem
    study.close()
    for problem in (world.problem, current, None):
        again = sf.Study.open(path, problem, files=Quick())
        assert fingerprint(again) == state
        assert again.problem.limits[0].noise == 0.4
        again.close()
    for snapshot in (path / "snapshots").iterdir():
        snapshot.unlink()
    again = sf.Study.open(path, files=Quick())
    assert fingerprint(again) == state
    again.close()
    with pytest.raises(InvalidInput, match="begun with another problem"):
        sf.Study.open(path, kettle(wider=True).problem, files=Quick())
    clean(path)


def test_what_is_measured_in_safe_mode_must_be_explained_too(opened: Any, path: Path, world: sf.World) -> None:
    study = raised_limit(opened, world, 0.9)
    first = needed(study)
    waits(study, 1.4)
    assert len(study.status()["alarms"]) == 2
    with pytest.raises(InvalidInput, match="noise of at least"):
        study.acknowledge("a worse sensor", noise=first * 1.01)
    study.acknowledge("a worse sensor", noise=needed(study))
    clean(path)


def test_an_import_must_be_explained_row_by_row(opened: Any, path: Path) -> None:
    study = opened(monitor_factory=None)
    rows = [
        {"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": cost} for cost in (0.1, 0.9, 0.2, 1.3)
    ]
    study.import_log(rows)
    (alarm,) = study.status()["alarms"]
    assert "row 2" in alarm["message"]
    assert alarm["details"]["noise_needed"]["limit 0"] == pytest.approx(
        0.8 / study.standing.monitor.quantile(4), rel=1e-12
    )
    study.acknowledge("a worse sensor", noise=needed(study))
    clean(path)


def test_data_that_contradict_the_new_declaration_too_are_not_kept(opened: Any, path: Path) -> None:
    study = opened(monitor_factory=None)
    for _ in range(60):
        waits(study, 30.0)
    before = lines_of(path)
    with pytest.raises(InvalidInput, match=r"contradict the new declaration too.*discard_data=True"):
        study.acknowledge("a worse sensor", noise=needed(study), despite="units unknown")
    assert lines_of(path) == before
    study.acknowledge("wrong units", discard_data=True, noise=0.2)
    assert records_of(path)[-1]["changes"] == ["data discarded", "larger noise"]
    clean(path)


FORGED: dict[str, tuple[Callable[[list[Any], int], Any], str]] = {
    "no new declaration": (
        lambda found, n: found[n].update({key: found[0][key] for key in ("problem", "problem_file")}),
        "declared as before",
    ),
    "other changes": (lambda found, n: found[n].update(changes=[]), "its changes are"),
    "another digest": (lambda found, n: found[n].update(problem="0" * 64), "is another problem"),
    "other ridges": (lambda found, n: found[n]["constants"]["ridges"].__setitem__(0, 1e-3), "ridges"),
    "the whole study": (
        lambda found, n: found[n + 2]["certificate"].update(promise=found[2]["certificate"]["promise"]),
        "its certificate promises",
    ),
    "nothing restored": (lambda found, n: found[n + 2]["certificate"].update(restored=None), "says restored"),
    "a promise in safe mode": (
        lambda found, n: next(r for r in found if r["kind"] == "ask" and r["certificate"]["safe_mode"])[
            "certificate"
        ].update(promise=found[2]["certificate"]["promise"]),
        "its certificate promises",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_answer_is_found(opened: Any, path: Path, world: sf.World, name: str) -> None:
    study = raised_limit(opened, world)
    waits(study, 0.1)
    study.acknowledge("a worse sensor", noise=needed(study))
    go_on(study, Plant(world, 4), study.standing.episodes + 3)
    study.close()
    clean(path)
    edit, words = FORGED[name]
    n = next(record["n"] for record in records_of(path) if record["kind"] == "acknowledge")
    forge(path, lambda found: edit(found, n))
    assert any(words in finding.what for finding in audit(path).exceptions), str(audit(path))


def test_noise_in_the_file_that_explains_nothing_is_found(opened: Any, path: Path, world: sf.World) -> None:
    """A forger who changes the declaration and all that names it, too."""
    study = raised_limit(opened, world)
    study.acknowledge("a worse sensor", noise=needed(study))
    study.close()
    n = len(lines_of(path)) - 1
    limit = replace(world.problem.limits[0], noise=0.06)
    small = replace(world.problem, limits=(limit,))
    small.save(path / f"problem-{n}.json")
    forge(path, lambda found: found[n].update(problem=small.digest))
    assert any("declared as before" in finding.what for finding in audit(path).exceptions)
    with pytest.raises(UnreadableFile, match="disproved what is declared"):
        sf.Study.open(path, files=Quick())


# --- what disproves nothing -----------------------------------------------------------------------------


def test_an_operator_who_exceeds_a_limit_disproves_nothing(opened: Any, path: Path) -> None:
    study = opened(monitor_factory=None)
    with study.episode("cold") as ep:
        ep.ask()
        ep.tell(("warm", 1), 0.2, action_applied="heat")
        ep.ask()
        ep.tell("melt", 0.9, action_applied="heat")  # truly unsafe, and never certified
        ep.tell_terminal(0.95)
    assert {alarm["details"]["certified"] for alarm in study.status()["alarms"]} == {False}
    study.acknowledge("he wanted to see it melt")
    assert study.status()["promise"].startswith("every step of the study")
    study.close()
    assert clean(path).promise == "every step of the study"
    forge(path, lambda found: [r["details"].update(certified=True) for r in found if r["kind"] == "alarm"])
    assert any("declared as before" in finding.what for finding in audit(path).exceptions)


def test_an_operator_who_exceeds_a_limit_with_a_certified_action_disproves_it(
    opened: Any, path: Path, world: sf.World
) -> None:
    """Certified by the plan in force, though it was not what was offered: a forger who denies it is found."""
    study = learnt(opened(monitor_factory=None), world, 8)  # enough, and not long before
    waits(study, float("nan"))
    with study.episode("s") as ep:
        assert ep.ask().action == "wait"  # in safe mode
        ep.tell("s", 0.9, action_applied="heat")
        ep.abort("enough")
    limit = study.status()["alarms"][1]
    assert (limit["alarm"], limit["details"]["certified"]) == ("limit", True)
    study.acknowledge("a worse sensor", noise=limit["details"]["noise_needed"]["limit 0"])
    study.close()
    clean(path)
    n = len(lines_of(path)) - 1

    def edit(found: list[Any]) -> None:
        FORGED["no new declaration"][0](found, n)
        next(r for r in found if r["kind"] == "alarm" and r["alarm"] == "limit")["details"]["certified"] = False

    forge(path, edit)
    assert any("declared as before" in finding.what for finding in audit(path).exceptions), str(audit(path))


# --- after a discard ------------------------------------------------------------------------------------


@pytest.mark.parametrize("trusted", [False, True])
def test_anchors_go_with_the_data_unless_a_person_trusts_them(path: Path, world: sf.World, trusted: bool) -> None:
    study = sf.Study.open(path, anchored(world.problem), files=Quick(), monitor_factory=nervous({9: "residual"}))
    assert promise_of_the_next_offer(study)["successors"][0]["upper"] == pytest.approx([0.2])  # exactly known
    go_on(study, Plant(world, 0), 12)
    assert study.safe_mode
    n = len(lines_of(path))
    study.acknowledge("a new sensor", discard_data=True, trust_anchors=trusted)
    changes = records_of(path)[-1]["changes"]
    assert changes == ["data discarded", "anchors trusted" if trusted else "anchors dropped"]
    offer = promise_of_the_next_offer(study)
    assert offer["restored"] == {"record": n, "by": changes}
    assert offer["fallback"] is not trusted
    assert (study.standing.problem.graph.anchors[0] is not None) is trusted
    go_on(study, Plant(world, 1), study.standing.episodes + 10)
    state = fingerprint(study)
    study.close()
    assert fingerprint(sf.Study.open(path, files=Quick(), monitor_factory=Calm)) == state
    clean(path)
    forge(path, lambda found: found[n].update(changes=["data discarded"]))
    assert any("its changes are" in finding.what for finding in audit(path).exceptions)


def test_trust_in_anchors_is_a_matter_of_discards(opened: Any, world: sf.World) -> None:
    study = left_support(opened, world)
    with pytest.raises(InvalidInput, match="only when data are discarded"):
        study.acknowledge("fine", problem=kettle(wider=True).problem, trust_anchors=True)


def test_logs_from_before_a_discard_are_refused(opened: Any, path: Path, world: sf.World) -> None:
    study = left_support(opened, world)
    study.acknowledge("a new plant", discard_data=True)
    now = time.time()
    row = {"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": 0.123}
    for moment in (None, now - 60, "2020-01-01T00:00:00Z", "2999-01-01T00:00:00", "soon", True, float("nan"), [1]):
        before = lines_of(path)
        with pytest.raises(InvalidInput, match="rows from before are of another plant"):
            study.import_log([{**row, "cost": 0.2, "time": now + 60}, {**row, "time": moment}])
        assert lines_of(path) == before
    study.import_log([{**row, "time": "2999-01-01T00:00:00+01:00"}, {**row, "cost": 0.2, "time": now + 60}])
    record = records_of(path)[-1]
    assert record["since"].startswith("20")
    go_on(study, Plant(world, 2), study.standing.episodes + 3)
    study.close()
    clean(path)
    for since in (None, "2020-01-01T00:00:00.000000Z"):
        forge(path, lambda found: found[record["n"]].update(since=since))  # noqa: B023
        assert any("before data were discarded" in finding.what for finding in audit(path).exceptions)
        with pytest.raises(UnreadableFile, match="rows from before the discard"):
            opened()


# --- no plan is made from data in doubt -----------------------------------------------------------------


def test_no_plan_is_made_by_the_record_that_raises_an_alarm(opened: Any, world: sf.World) -> None:
    study = opened(replan_growth=0.0)
    go_on(study, Plant(world, 0), 5)
    replans = study.standing.agent.replans
    study.begin("s")
    study.tell(study.ask().ask_id, "s", 0.1, action_applied="wait")  # new data,
    study.tell(study.ask().ask_id, "elsewhere", 0.1)  # and the episode ends with an alarm
    assert study.standing.agent.replans == replans


class Early(Calm):
    """Raises an alarm at the beginning of an episode."""

    def observe(self, h: int, features: Any, cost: Any) -> Any:
        self.seen += 1
        return Alarm("residual", "a residual alarm", {}) if h == 0 and self.seen >= 20 else None


@pytest.mark.parametrize("snapshots", [True, False])
def test_no_plan_is_made_in_safe_mode_after_reopening(
    opened: Any, path: Path, world: sf.World, snapshots: bool
) -> None:
    """From a snapshot in safe mode, and from an alarm that is on record though this monitor would not raise it."""
    study = opened(replan_growth=0.0, snapshot_every=5 if snapshots else None, monitor_factory=Early)
    go_on(study, Plant(world, 0), 30)
    assert study.safe_mode
    study.close()
    if snapshots:
        last = [record["kind"] for record in records_of(path)]
        assert last.index("alarm") < len(last) - 1 - last[::-1].index("snapshot")
    study = opened()  # a calm monitor
    assert study.safe_mode
    replans = study.standing.agent.replans
    go_on(study, Plant(world, 0), 35)
    assert study.standing.agent.replans == replans
    study.close()
    clean(path)


def test_no_plan_is_made_from_an_import_that_raises_an_alarm(opened: Any, path: Path) -> None:
    study = opened(monitor_factory=nervous({2: "residual"}), replan_growth=0.0)
    plan = study.standing.agent.plan
    rows = [{"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": 0.1 + i / 99} for i in range(5)]
    study.import_log(rows)
    assert study.safe_mode
    assert study.standing.agent.plan is plan
    waits(study, 0.1)
    assert (study.standing.agent.plan, study.standing.made_after) == (plan, 0)
    clean(path)


def test_after_a_contradiction_the_plan_before_it_stays(path: Path) -> None:
    """Away from the fallback's states, what the last undoubted plan certified is offered, and said to be no promise."""
    world = off_the_fallback()
    study = sf.Study.open(path, world.problem, files=Quick(), monitor_factory=Calm, despite="small", replan_growth=0.0)
    learnt(study, world, 60)
    upto = study.standing.made_after
    for _ in range(200):
        if study.safe_mode:
            break
        upto, plan = study.standing.made_after, study.standing.agent.plan
        with study.episode() as ep:
            ep.ask()
            ep.tell("a", -9.0, action_applied="stay")
            ep.abort("on")
    assert study.status()["alarms"][0]["alarm"] == "contradiction"
    assert (study.standing.agent.plan, study.standing.made_after) == (plan, upto)
    with study.episode() as ep:
        assert ep.ask().action == "stay"
        ep.tell("b", 0.1, action_applied="go")
        offer = ep.ask()
        assert offer.action == plan.action(1, "b")
        assert offer.certificate["safe_by"] == "estimate before the alarm"
        assert "no promise" in offer.certificate["promise"]
        assert f"plan {plan.number}" in offer.certificate["promise"]
        ep.tell("b", 0.1)
    state = fingerprint(study)
    study.close()
    assert fingerprint(sf.Study.open(path, files=Quick(), monitor_factory=Calm)) == state
    clean(path)
