"""Alarms: what raises them, what the safe mode offers, what an acknowledgement does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import (
    InvalidInput,
    OutOfOrder,
)
from surefoot.study import journal as journals
from surefoot.study.records import share
from tests.studies import (
    WARM,
    Calm,
    Plant,
    Quick,
    fingerprint,
    go_on,
    learnt,
    lines_of,
    nervous,
    off_the_fallback,
    records_of,
)

# --- alarms and the safe mode ---------------------------------------------------------------------------


def test_an_undeclared_successor_ends_the_episode_and_puts_the_study_in_safe_mode(opened: Any) -> None:
    study = opened()
    for after in ("cold", WARM, "elsewhere", 7):
        study.begin("s")
        offer = study.ask()
        receipt = study.tell(offer.ask_id, after, 0.1, action_applied="wait")
        assert (receipt.done, receipt.safe_mode) == (True, True)
        assert "outside the declared support" in str(receipt.alarm)
        assert study.tell(offer.ask_id, after, 0.1, action_applied="wait").alarm == receipt.alarm
    assert study.status()["cost_rows"] == [0, 0, 0]
    kinds = [r["kind"] for r in records_of(study.path)]
    assert kinds == ["open", *["begin", "ask", "tell", "alarm"] * 4]
    assert len(study.status()["alarms"]) == 4
    with pytest.raises(InvalidInput, match=r"disproved.*'elsewhere' may follow, or discard_data=True"):
        study.acknowledge("a typing error")
    study.acknowledge("typing errors", discard_data=True)
    assert not study.safe_mode


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), [-np.inf]])
def test_a_cost_that_is_not_finite_is_an_alarm_and_no_data(opened: Any, cost: Any) -> None:
    study = opened()
    with study.episode("s") as ep:
        ep.ask()
        receipt = ep.tell("s", cost)
        assert not receipt.done
        assert "not finite" in str(receipt.alarm)
        proof = ep.ask().certificate
        assert proof["safe_mode"]
        assert "not finite" in proof["why"]
        ep.tell("s", 0.1)
    assert study.status()["cost_rows"] == [0, 1, 0]
    assert study.status()["transition_rows"] == [1, 1]
    assert json.loads(lines_of(study.path)[3])["raw_cost"] == [repr(float(np.atleast_1d(cost)[0]))]


def test_in_safe_mode_only_the_fallback_is_offered_until_someone_acknowledges(opened: Any, world: sf.World) -> None:
    study = learnt(opened(), world)
    with study.episode("s") as ep:
        assert ep.ask().action == "heat"
        ep.tell("s", float("nan"))
        offer = ep.ask()
        assert offer.action == world.problem.fallback_action(1, "s") == "wait"
        assert (offer.certificate["fallback"], offer.certificate["safe_by"]) == (True, "assumption")
        assert "fallback's own safety" in offer.certificate["promise"]
        with pytest.raises(OutOfOrder, match="between episodes"):
            study.acknowledge("now")
        ep.tell("s", 0.1)
    for _ in range(3):
        with study.episode("s") as ep:
            while not ep.done:
                assert ep.ask().action == "wait"
                ep.tell("s", 0.1)
    study.close()
    study = opened()
    assert study.safe_mode
    with pytest.raises(InvalidInput, match="give the reason"):
        study.acknowledge("  ")
    study.acknowledge("the sensor was unplugged")
    assert records_of(study.path)[-1]["reason"] == "the sensor was unplugged"
    with pytest.raises(OutOfOrder, match="no alarm"):
        study.acknowledge("again")
    with study.episode("s") as ep:
        assert ep.ask().action == "heat"


def test_in_safe_mode_off_the_fallback_the_plan_from_before_the_alarm_goes_on(path: Path) -> None:
    world = off_the_fallback()
    study = sf.Study.open(path, world.problem, files=Quick(), monitor_factory=Calm, despite="a small case")
    learnt(study, world, 60)
    plan = study.standing.agent.plan
    study.begin("s")
    offer = study.ask()
    assert offer.action == "go"
    study.tell(offer.ask_id, "b", float("inf"))
    offer = study.ask()
    assert offer.action == plan.action(1, "b")
    assert offer.certificate["safe_by"] == "estimate before the alarm"
    assert offer.certificate["fallback"] is False
    study.tell(offer.ask_id, "b", 0.1)
    for _ in range(40):  # data are counted, but no plan is made from them
        with study.episode() as ep:
            assert ep.ask().action == "stay"
            ep.tell("b", 0.1, action_applied="go")
            assert ep.ask().action == plan.action(1, "b")
            ep.tell("b", 0.1)
    assert study.standing.agent.plan is plan
    rows = study.status()["cost_rows"]
    study.acknowledge("fixed")
    assert study.standing.agent.plan.number == plan.number + 1
    assert study.standing.made_after == len(lines_of(path)) - 1
    assert study.status()["cost_rows"] == rows


@pytest.mark.parametrize("kind", ["residual", "limit"])
def test_a_drift_discards_the_data_and_takes_a_fresh_share(opened: Any, world: sf.World, kind: str) -> None:
    factory = nervous({30: kind})
    study = learnt(opened(monitor_factory=factory), world, 40)
    assert study.safe_mode
    assert study.status()["must_discard"]  # also of a limit: this alarm says no noise that would explain it
    assert study.standing.monitor.seen == 30  # it has said what it had to say
    assert study.status()["answers"] == ["discard_data=True"]
    with pytest.raises(InvalidInput, match=rf"in doubt.*a {kind} alarm.*discard_data=True"):
        study.acknowledge("we looked")
    study.acknowledge("a new bearing", discard_data=True)
    assert study.status()["cost_rows"] == [0, 0, 0]
    assert (study.standing.epoch, study.standing.share) == (1, 0.0125)
    assert study.standing.agent.options.failure_probability == 0.0125
    assert study.standing.agent.replans == 1
    assert study.standing.monitor.false_alarm == pytest.approx(0.01 / 4)
    last = records_of(study.path)[-1]
    assert last["share"] == study.standing.share
    assert last["constants"]["failure_probability"] == study.standing.share
    assert [records_of(study.path)[n]["kind"] for n in last["alarms"]] == ["alarm"]
    go_on(study, Plant(world, 5), 60)
    before = fingerprint(study)
    study.close()
    assert fingerprint(opened(monitor_factory=factory)) == before


def test_all_shares_together_are_the_whole() -> None:
    assert sum(share(0.05, k) for k in range(60)) <= 0.05
    assert share(0.05, 0) == 0.025
    assert share(0.05, 3) == 0.05 / 16


def test_an_alarm_that_a_crash_swallowed_is_found_again(opened: Any, world: sf.World, path: Path) -> None:
    factory = nervous({30: "limit"})
    study = opened(monitor_factory=factory)
    plant = Plant(world, 0)
    while not study.safe_mode:
        go_on(study, plant, study.standing.episodes + 1)
    study.close()
    lines = lines_of(path)
    at = next(i for i, line in enumerate(lines) if b'"kind":"alarm"' in line)
    (path / journals.NAME).write_bytes(b"".join(lines[:at]))  # the tell is there, the alarm is not
    shutil.rmtree(path / "snapshots", ignore_errors=True)
    reader = opened(monitor_factory=factory, read_only=True)
    assert reader.safe_mode
    study = opened(monitor_factory=factory)
    assert study.safe_mode
    found = records_of(path)[-1]
    assert (found["kind"], found["alarm"], found["record"]) == ("alarm", "limit", at - 1)


def test_measurements_that_contradict_the_model_are_an_alarm(path: Path) -> None:
    problem = sf.Problem.from_functions(
        horizon=2,
        start="s",
        actions=lambda h, s: ["a"],
        successors=lambda h, s, a: ["s"],
        reward=lambda h, s, a: 0.5,
        cost_features=lambda h, s, a, t: [1.0],
        fallback=lambda h, s: "a",
        limits=sf.Limit("level", bound=0.5, noise=0.01, norm=1.0),
    )
    study = sf.Study.open(path, problem, files=Quick(), monitor_factory=Calm, despite="one action")
    for _ in range(30):
        with study.episode() as ep:
            ep.ask()
            ep.tell("s", 7.0)
        if study.safe_mode:
            break
    (alarm,) = study.status()["alarms"]
    assert alarm["alarm"] == "contradiction"
    assert study.status()["must_discard"]
    study.acknowledge("wrong units", discard_data=True)
    assert not study.safe_mode


def test_the_real_monitor_is_there_by_default(path: Path, world: sf.World) -> None:
    from surefoot.monitor.monitor import Monitor

    study = sf.Study.open(path, world.problem, files=Quick())
    assert isinstance(study.standing.monitor, Monitor)
    assert study.standing.monitor.false_alarm == 0.005
    with study.episode("s") as ep:
        ep.ask()
        receipt = ep.tell("s", 9.0)
        assert receipt.safe_mode
        assert "limit 0" in str(receipt.alarm)
        assert ep.ask().action == "wait"
        ep.tell("s", 0.1)
    before = fingerprint(study)
    study.close()
    assert fingerprint(sf.Study.open(path, files=Quick())) == before
