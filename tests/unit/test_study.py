"""A study's loop: the order of calls, what is offered and why, repetitions, overrides, missing costs, aborts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import (
    AssumptionBroken,
    InvalidInput,
    OutOfOrder,
    UnknownLabel,
)
from tests.studies import (
    WARM,
    Calm,
    Plant,
    Quick,
    fingerprint,
    kettle,
    learnt,
    lines_of,
    off_the_fallback,
    records_of,
)

# --- the loop -------------------------------------------------------------------------------------------


def test_an_episode_from_its_beginning_to_its_end(opened: Any) -> None:
    study = opened()
    with study.episode("s") as ep:
        offer = ep.ask()
        assert (offer.step, offer.state, offer.episode) == (0, "s", 1)
        assert offer.action in study.problem.actions(0, "s")
        assert not ep.tell("s", 0.1).done
        ep.ask()
        receipt = ep.tell("s", 0.1)
        assert receipt.done
        assert ep.done
    assert [r["kind"] for r in records_of(study.path)] == ["open", "begin", "ask", "tell", "ask", "tell"]
    assert study.status()["cost_rows"] == [1, 1, 0]


def test_the_cost_of_a_last_state_is_awaited(opened: Any) -> None:
    study = opened()
    with study.episode("cold") as ep:
        ep.ask()
        ep.tell(WARM, 0.2, action_applied="heat")
        ep.ask()
        receipt = ep.tell(WARM, 0.3, action_applied="heat")
        assert (receipt.done, receipt.at_terminal, ep.done, ep.at_terminal) == (False, True, False, True)
        with pytest.raises(OutOfOrder, match="cost of the last state is awaited"):
            ep.ask()
        assert study.status()["next"] == "tell_terminal"
        assert ep.tell_terminal(0.2).done
        assert ep.done
    assert study.status()["cost_rows"] == [1, 1, 1]
    assert study.tell_terminal(0.2, episode=1).repeated
    with pytest.raises(OutOfOrder, match="another last cost"):
        study.tell_terminal(0.3, episode=1)
    with pytest.raises(OutOfOrder, match="no last state's cost is awaited"):
        study.tell_terminal(0.2)


def test_labels_come_back_as_they_were_declared(opened: Any) -> None:
    study = opened()
    study.begin("cold")
    offer = study.ask()
    study.tell(offer.ask_id, ["warm", 1], 0.2, action_applied="heat")  # JSON knows no tuples
    assert study.ask().state == WARM
    assert [s["state"] for s in study.ask().certificate["successors"]] == ["s"]


def test_calls_that_do_not_fit_the_moment_are_refused_and_change_nothing(opened: Any) -> None:
    study = opened()
    for call in (study.ask, study.abort, study.resume, lambda: study.tell_terminal(0.1)):
        with pytest.raises(OutOfOrder):
            call()
    with pytest.raises(OutOfOrder, match="no such ask was ever made"):
        study.tell("0-12345678", "s", 0.1)
    with pytest.raises(InvalidInput, match=r"name the start state: the problem has \d of them\. They are '"):
        study.begin()
    with pytest.raises(UnknownLabel, match="no such state"):
        study.begin("melt")
    study.begin("s")
    assert study.begin("s") == 1  # a caller that died may say it again
    with pytest.raises(OutOfOrder, match=r"already under way.*step 0, state 's'.*abort"):
        study.begin("cold")
    study.ask()
    with pytest.raises(OutOfOrder, match="already under way"):
        study.begin("s")
    with pytest.raises(OutOfOrder, match="between episodes"):
        study.import_log([])
    assert len(lines_of(study.path)) == 3


@pytest.mark.parametrize("cost", ["high", [0.1, 0.2], True, [[0.1]], [None], {"a": 1}, 10**400])
def test_a_cost_that_is_no_measurement_is_refused(opened: Any, cost: Any) -> None:
    study = opened()
    study.begin("s")
    offer = study.ask()
    with pytest.raises(InvalidInput, match="cost"):
        study.tell(offer.ask_id, "s", cost)
    assert study.ask() == offer
    study.tell(offer.ask_id, "s", np.array([0.1]))


@pytest.mark.parametrize("name", ["", "2", "2-", "x-12345678", 2, None, "2-1234567g"])
def test_an_ask_id_that_is_none(opened: Any, name: Any) -> None:
    study = opened()
    study.begin("s")
    study.ask()
    with pytest.raises(InvalidInput, match="not an ask id"):
        study.tell(name, "s", 0.1)


# --- the certificate ------------------------------------------------------------------------------------


def test_a_certificate_says_what_the_plan_says(opened: Any, world: sf.World) -> None:
    study = learnt(opened(), world)
    plan, problem = study.standing.agent.plan, world.problem
    seen = set()
    for start in ("s", "cold"):
        with study.episode(start) as ep:
            offer = ep.ask()
            proof = offer.certificate
            assert json.loads(json.dumps(proof)) == proof
            assert (proof["failure_probability"], proof["share"]) == (0.05, 0.025)
            assert (proof["limits"], proof["bounds"]) == (["limit 0"], [0.5])
            assert proof["plan"] == plan.number
            assert proof["fallback"] == (offer.action == problem.fallback_action(0, start))
            found = {json.dumps(item["state"]): item for item in proof["successors"]}
            assert len(found) == len(problem.successors(0, start, offer.action))
            for after in problem.successors(0, start, offer.action):
                item = found[json.dumps(after)]
                upper = plan.upper(0, start, offer.action, after)
                assert item["upper"] == upper.tolist()
                assert item["margin"] == (0.5 - upper).tolist()
                assert item["certified"] is plan.safe(1, after) is True
                assert item["next_action"] == plan.action(1, after)
            assert proof["margin"] == min(m for item in proof["successors"] for m in item["margin"])
            assert proof["safe_by"] == ("estimate" if proof["margin"] >= 0 else "assumption")
            seen.add((proof["safe_by"], proof["fallback"]))
    assert ("estimate", False) in seen


def test_the_fallback_is_safe_by_assumption_before_anything_is_known(opened: Any) -> None:
    study = opened(safety_radius_scale=1.0)
    with study.episode("s") as ep:
        proof = ep.ask().certificate
        assert (proof["fallback"], proof["safe_by"]) == (True, "assumption") or proof["safe_by"] == "estimate"
        assert proof["promise"] == "every step of the study safe with probability ≥ 0.95"


def test_a_last_state_has_its_own_bounds_in_the_certificate(opened: Any, world: sf.World) -> None:
    study = learnt(opened(), world)
    with study.episode("cold") as ep:
        ep.ask()
        ep.tell(WARM, 0.2, action_applied="heat")
        offer = ep.ask()
        assert offer.action == "wait"  # heating may melt it
        (item,) = offer.certificate["successors"]
        assert (item["next_action"], item["last_upper"]) == (None, None)
    with study.episode("s") as ep:
        ep.ask()
        ep.tell("s", 0.2)
        offer = ep.ask()
        assert offer.action == "heat"
        last = {json.dumps(i["state"]): i for i in offer.certificate["successors"]}[json.dumps(list(WARM))]
        upper = study.standing.agent.plan.terminal_upper(WARM)
        assert last["last_upper"] == upper.tolist()
        assert last["last_margin"] == (0.5 - upper).tolist()


def test_options_that_give_up_the_guarantee_are_stamped_on_every_offer(opened: Any) -> None:
    study = opened(safety_radius_scale=0.5)
    with study.episode("s") as ep:
        proof = ep.ask().certificate
        assert proof["promise"] == "no safety guarantee"
        assert proof["safe_by"] == "nothing"


# --- asking and telling twice ---------------------------------------------------------------------------


def test_a_pending_ask_is_offered_again_until_it_is_told(opened: Any, path: Path) -> None:
    study = opened()
    study.begin("s")
    offer = study.ask()
    assert study.ask() == offer
    study.close()
    study = opened()
    assert study.status()["next"] == "tell"
    assert study.ask() == offer
    assert study.status()["pending"] == offer.to_dict()
    study.tell(offer.ask_id, "s", 0.1)
    assert study.ask() != offer


def test_a_tell_is_accepted_twice_and_counted_once(opened: Any) -> None:
    study = opened()
    with study.episode("s") as ep:
        first = ep.ask()
        ep.tell("s", 0.125)
        assert study.tell(first.ask_id, "s", 0.125).repeated
        assert study.tell(first.ask_id, "s", [0.125], action_applied=first.action).repeated
        ep.ask()
        ep.tell("s", 0.1)
    count = len(lines_of(study.path))
    assert study.tell(first.ask_id, "s", 0.125).repeated  # an old one, looked up
    for told in (("s", 0.25, ...), (WARM, 0.125, ...), ("s", None, ...), ("s", 0.125, "heat"), ("s", 0.125, "dance")):
        with pytest.raises(OutOfOrder, match=r"another tell of this ask is on record.*0\.125"):
            study.tell(first.ask_id, *told)
    study.close()
    study = opened()
    assert study.tell(first.ask_id, "s", 0.125).repeated
    assert len(lines_of(study.path)) == count
    assert study.status()["cost_rows"] == [1, 1, 0]


def test_the_last_tell_is_repeated_without_reading_the_journal(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that lost an answer sends it again; a journal of years would keep it waiting."""
    study = opened()
    study.begin("s")
    offer = study.ask()
    study.tell(offer.ask_id, "s", 0.125)
    study.close()
    study = opened()
    monkeypatch.delattr("surefoot.study.telling.journals.read_lines")
    assert study.tell(offer.ask_id, "s", 0.125).repeated
    with pytest.raises(OutOfOrder, match=r"another tell of this ask is on record.*0\.125"):
        study.tell(offer.ask_id, "s", 0.25)


def test_an_ask_of_an_aborted_episode_is_void(opened: Any) -> None:
    study = opened()
    study.begin("s")
    offer = study.ask()
    study.abort("the pump stopped")
    with pytest.raises(OutOfOrder, match="aborted"):
        study.tell(offer.ask_id, "s", 0.1)
    study.begin("s")
    assert study.ask().ask_id != offer.ask_id
    with pytest.raises(OutOfOrder, match="aborted"):
        study.tell(offer.ask_id, "s", 0.1)


def test_an_ask_of_another_study_is_not_taken_for_ones_own(opened: Any, world: sf.World, tmp_path: Path) -> None:
    study = opened()
    other = sf.Study.open(
        tmp_path / "other", world.problem, files=Quick(), monitor_factory=Calm, failure_probability=0.1
    )
    for each in (study, other):
        each.begin("s")
    mine, theirs = study.ask(), other.ask()
    assert mine.ask_id.split("-")[0] == theirs.ask_id.split("-")[0]
    with pytest.raises(OutOfOrder, match="no such ask"):
        study.tell(theirs.ask_id, "s", 0.1)


# --- overrides, missing costs, aborts -------------------------------------------------------------------


def test_an_override_by_a_known_action_is_used_with_that_action(opened: Any) -> None:
    study = opened()
    twin = sf.LsviNew(study.problem, 0.025)
    with study.episode("s") as ep:
        assert ep.ask().action == "wait"
        ep.tell(WARM, 0.25, action_applied="heat")
        ep.ask()
        ep.tell("s", 0.1)
    twin.begin_episode("s")
    twin.observe(0, "s", "heat", WARM, 0.25)
    twin.observe(1, WARM, "wait", "s", 0.1)
    twin.end_episode()
    for name, array in twin.checkpoint().items():
        assert np.array_equal(array, study.standing.agent.checkpoint()[name]), name
    tell = records_of(study.path)[3]
    assert (tell["action"], tell["override"], tell["unused"]) == ("heat", True, None)


def test_an_override_by_an_unknown_action_is_kept_not_used_and_the_episode_must_be_aborted(opened: Any) -> None:
    study = opened()
    study.begin("s")
    offer = study.ask()
    study.tell(offer.ask_id, "s", 0.1, action_applied="kick")
    assert study.status()["next"] == "abort"
    with pytest.raises(OutOfOrder, match=r"action that the problem does not know.*Abort"):
        study.ask()
    tell = records_of(study.path)[3]
    assert (tell["action"], tell["override"], tell["unused"], tell["cost"]) == ("kick", True, "action", [0.1])
    assert study.tell(offer.ask_id, "s", 0.1, action_applied="kick").repeated
    study.close()
    study = opened()
    assert study.status()["next"] == "abort"
    study.abort("kicked")
    assert study.status()["cost_rows"] == [0, 0, 0]
    assert not study.safe_mode


def test_an_override_that_leads_where_nothing_is_certified(path: Path) -> None:
    study = sf.Study.open(path, off_the_fallback(norm=10.0).problem, files=Quick(), monitor_factory=Calm)
    study.begin("s")
    offer = study.ask()
    assert offer.action == "stay"
    study.tell(offer.ask_id, "b", None, action_applied="go")
    for _ in range(2):
        with pytest.raises(AssumptionBroken, match=r"no certified action here.*step 1, state 'b'.*abort"):
            study.ask()
    study.abort("brought back by hand")
    assert [r["kind"] for r in records_of(path)] == ["open", "begin", "ask", "tell", "abort"]


def test_none_is_as_offered_unless_it_is_the_name_of_an_action(tmp_path: Path) -> None:
    problem = sf.Problem.from_functions(
        horizon=2,
        start="s",
        actions=lambda h, s: ["stay", None],
        successors=lambda h, s, a: ["s"],
        reward=lambda h, s, a: 0.5,
        cost_features=lambda h, s, a, t: [1.0, float(a is None)],
        fallback=lambda h, s: "stay",
        limits=sf.Limit("level", bound=0.5, noise=0.1, norm=10.0),
    )
    study = sf.Study.open(tmp_path / "a", problem, files=Quick(), monitor_factory=Calm)
    with study.episode() as ep:
        assert ep.ask().action == "stay"
        ep.tell("s", 0.1)
    with study.episode() as ep:
        ep.ask()
        ep.tell("s", 0.1, action_applied=None)
    assert [r["action"] for r in records_of(study.path) if r["kind"] == "tell"] == ["stay", None]
    plain = sf.Study.open(tmp_path / "b", kettle().problem, files=Quick(), monitor_factory=Calm)
    with plain.episode("s") as ep:
        offer = ep.ask()
        ep.tell("s", 0.1, action_applied=None)
        assert records_of(plain.path)[-1]["action"] == offer.action
        ep.abort()


def test_a_missing_cost_counts_for_transitions_only(opened: Any) -> None:
    study = opened()
    with study.episode("s") as ep:
        ep.ask()
        ep.tell("s", None)
        ep.ask()
        ep.tell("s", 0.1)
    assert study.status()["cost_rows"] == [0, 1, 0]
    assert study.status()["transition_rows"] == [1, 1]
    assert study.standing.monitor.seen == 1


def test_an_episode_can_be_aborted_anywhere_and_what_was_told_counts(opened: Any, world: sf.World) -> None:
    study, plant = opened(), Plant(world, 0)
    for steps in range(5):
        study.begin("cold")
        for k in range(steps):
            if k % 2 == 0:
                study.ask()
            else:
                offer = study.ask()
                study.tell(offer.ask_id, *plant.answer(1, offer.step, offer.state, offer.action))
            if study.next_call not in ("ask", "tell"):
                break
        if study.standing.place is not None:
            study.abort(f"after {steps}")
        assert study.next_call == "begin"
    tells = [r for r in records_of(study.path) if r["kind"] == "tell"]
    assert sum(study.status()["cost_rows"]) == len(tells)
    assert study.standing.agent.episodes == 5
    before = fingerprint(study)
    study.close()
    assert fingerprint(opened()) == before


def test_an_episode_that_has_not_begun_says_how_it_begins(opened: Any) -> None:
    study = opened()
    waiting = study.episode("cold")
    for call in (waiting.ask, waiting.abort, lambda: waiting.tell("s", 0.1), lambda: waiting.step):
        with pytest.raises(OutOfOrder, match=r"the episode has not begun\. .*with study\.episode\(\) as episode"):
            call()
    assert repr(study).endswith("normal, 0 episodes begun, due: begin>")
    with waiting as episode:
        assert episode.step == 0


def test_leaving_the_block_early_aborts(opened: Any) -> None:
    study = opened()
    with pytest.raises(ZeroDivisionError), study.episode("s") as ep:
        ep.tell("s", 1.0 / ep.ask().step)
    assert records_of(study.path)[-1]["reason"] == "ZeroDivisionError: float division by zero"
    with study.episode("s") as ep:
        ep.ask()
    assert "left before" in records_of(study.path)[-1]["reason"]
    with study.episode("s") as ep:
        ep.abort("enough")
        assert ep.done
    with pytest.raises(OutOfOrder, match="the episode is over"):
        ep.ask()
    assert study.next_call == "begin"
