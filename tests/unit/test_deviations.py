"""The paper's learner without its deviations from the letter: what is refused, played, promised and audited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from surefoot.agents.lsvi_new_paper import DEVIATIONS
from surefoot.audits.audit import audit
from surefoot.errors import InvalidInput
from tests.forgery import forge

LIMIT = sf.Limit("heat", bound=1.0, noise=0.5, norm=1.0)


def slope(**changes: Any) -> sf.Problem:
    """Two steps on a slope; the fallback walks a little beside the anchor, so that its own bound is not known."""
    options: dict[str, Any] = {
        "horizon": 3,
        "start": "here",
        "actions": lambda h, s: ["flat", "steep"],
        "successors": lambda h, s, a: ["here"],
        "reward": lambda h, s, a: float(a == "steep"),
        "cost_features": lambda h, s, a, s2: [1.0, 0.5 if a == "steep" else 0.1],
        "fallback": lambda h, s: "flat",
        "limits": LIMIT,
        "anchor": lambda h: ([1.0, 0.0], [0.25]),
    }
    return sf.Problem.from_functions(**{**options, **changes})


def learner(problem: sf.Problem | None = None, **options: Any) -> sf.LsviNewPaper:
    return sf.LsviNewPaper(problem or slope(), **{"episodes": 100, "initial_episodes": 0, **options})


def without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in DEVIATIONS if name not in names)


def test_verbatim_leaves_out_all_of_them() -> None:
    agent = learner(deviations=())
    assert agent.options.deviations == ()
    assert agent.options.replan_growth == 0.0
    assert not agent.value_confidence.clip
    assert agent.cost_confidence.radius(1e9, 2.0, LIMIT, 1.0) == agent.options.beta  # whatever the data
    assert learner(deviations="guard, clip").options.deviations == ("clip", "guard")
    assert learner().options.deviations == DEVIATIONS
    assert learner().options.replan_growth == 0.1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"deviations": ["clop"]}, r"no such deviation: 'clop'.*The deviations are clip, lazy"),
        ({"deviations": without("lazy"), "replan_growth": 0.2}, r"plans before every episode: replan_growth=0.2"),
        ({"deviations": without("fallback"), "ideas": ("II",)}, r"without idea I .* Keep the deviation 'fallback'"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        learner(**options)


def test_verbatim_needs_one_feature_map() -> None:
    apart = slope(transition_features=lambda h, s, a, s2: [1.0])
    with pytest.raises(InvalidInput, match=r"one feature map.*joined features"):
        learner(apart, deviations=())
    assert learner(apart, deviations=("features",)).options.deviations == ("features",)


def test_where_nothing_is_certified_the_fallback_is_played() -> None:
    agent = learner(deviations=without("fallback"))
    assert agent.plan.n_certified() == 0
    assert not agent.plan.certified(0, "here", "flat")
    assert agent.plan.value(0, "here") == 0.0
    for _ in range(3):
        agent.begin_episode()
        for h in range(2):
            assert agent.act(h, "here") == "flat"
            agent.observe(h, "here", "flat", "here", [0.3])
        agent.end_episode()
    assert learner().plan.certified(0, "here", "flat")


def test_what_is_not_certified_is_explained_without_the_assumption() -> None:
    plan = learner(deviations=without("fallback")).plan
    for h in range(2):
        for action in ("flat", "steep"):
            why = plan.why(h, "here", action)
            assert not why.certified
            assert "safe by assumption" not in str(why)
            assert "is not certified: heat may be" in str(why)


def test_a_certified_action_before_an_uncertified_fallback_is_not_certified() -> None:
    """Step 0 is known to be safe for all actions; what follows is the fallback, which its bounds do not certify."""
    flat = slope(cost_features=lambda h, s, a, s2: [1.0, 0.0] if h == 0 else [1.0, 0.1])
    plan = learner(flat, deviations=without("fallback")).plan
    assert plan.condition_1(0).all()
    assert not plan.certified(0, "here", "steep")
    assert plan.why(0, "here", "steep").cause.step == 1
    assert learner(flat).plan.certified(0, "here", "steep")


def test_the_promise_is_given_only_where_it_is_proved() -> None:
    assert learner(deviations=without("clip", "lazy", "fallback", "features")).guaranteed
    assert not learner(deviations=without("guard")).guaranteed
    assert not learner(deviations=()).guaranteed
    # the second term of β is large enough for all steps at once; β₁ with p in place of p/(mH) is not
    assert learner(deviations=without("radius")).guaranteed
    printed = learner(deviations=without("radius"), value_radius_scale=0.0)
    assert not printed.guaranteed
    assert printed.promise == "no safety guarantee"
    proved = learner(value_radius_scale=0.0)
    assert proved.guaranteed
    assert printed.options.beta < proved.options.beta


@pytest.mark.parametrize("name", ["fallback", "radius", "guard"])
def test_studies_and_audits_refuse_bounds_that_the_audit_does_not_have(name: str, tmp_path: Path) -> None:
    options = {"agent": "lsvi-new-paper", "episodes": 100, "initial_episodes": 0, "despite": "a small case"}
    with pytest.raises(InvalidInput, match=f"cannot be audited .*: left out: {name}"):
        sf.Study.open(tmp_path / "refused", slope(), deviations=without(name), **options)
    with sf.Study.open(tmp_path / "s", slope(), deviations=without("clip", "lazy"), **options):
        pass
    assert audit(tmp_path / "s").clean
    forge(tmp_path / "s", lambda records: records[0]["constants"].update(deviations=without(name)))
    report = audit(tmp_path / "s")
    assert any(f"leaves out ['{name}']" in item.what for item in report.exceptions), str(report)
