"""Saving and loading a problem: exact, atomic, one schema. (Damage: test_files_damage.)"""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, UnreadableFile, UnwritableFile
from surefoot.model import files
from surefoot.model.labels import same_label
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.storage import archive as npz
from surefoot.storage import documents
from tests.saved_problems import (
    KINDS,
    PROBLEMS,
    Edit,
    assert_same,
    document_of,
    edited,
    labelled,
    refused,
    template,
)

FORMATS = ("json", "npz")
SCHEMA = json.loads(resources.files("surefoot.model").joinpath("problem.schema.json").read_text())

# --- exact ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_round_trip_is_exact(tmp_path: Path, name: str, suffix: str) -> None:
    problem = PROBLEMS[name]()
    path = tmp_path / f"{name}.{suffix}"
    assert problem.save(path) == path
    again = Problem.load(str(path))
    assert_same(problem, again)
    assert again.save(tmp_path / f"again.{suffix}").read_bytes() == path.read_bytes()
    assert len(os.listdir(tmp_path)) == 2  # nothing temporary stays behind


@pytest.mark.parametrize("suffix", FORMATS)
def test_shared_arrays_are_stored_once_and_come_back_shared(tmp_path: Path, suffix: str) -> None:
    layers = Problem.load(template().save(tmp_path / f"p.{suffix}")).graph.layers
    assert layers[0].cost_features is layers[1].cost_features is layers[2].transition_features
    assert layers[0].successor is layers[2].successor
    assert layers[0].successor.dtype == np.int32


@pytest.mark.parametrize("suffix", FORMATS)
def test_labels_keep_their_kind(tmp_path: Path, suffix: str) -> None:
    again = Problem.load(labelled().save(tmp_path / f"p.{suffix}"))
    seen = {repr(again.states(4)[i]) for i in range(len(again.states(4)))}
    assert seen == set(map(repr, KINDS))
    assert same_label(again.starts, (KINDS[0], KINDS[6]))
    assert again.actions(0, "cold") == ("stay", ("go", 1), None)


def test_an_upper_case_suffix_is_the_same_format(tmp_path: Path) -> None:
    assert_same(template(), Problem.load(template().save(tmp_path / "P.JSON")))


def test_the_archive_is_one_that_numpy_reads(tmp_path: Path) -> None:
    with np.load(template().save(tmp_path / "p.npz"), allow_pickle=False) as archive:
        name = json.loads(archive["header.json"])["layers"][0]["reward"]["array"]
        assert np.array_equal(archive[name], np.linspace(0, 1, 12))


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_document_keeps_its_schema(tmp_path: Path, name: str, suffix: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    path = PROBLEMS[name]().save(tmp_path / f"p.{suffix}")
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.validate(document_of(path))


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d.update(version=5),
        lambda d: d.update(extra=1),
        lambda d: d.pop("starts"),
        lambda d: d["layers"][0].pop("fallback"),
        lambda d: d["layers"][0].update(successor_dtype="float64"),
        lambda d: d["layers"][0].update(reward={"array": "../a"}),
        lambda d: d["layers"][0].update(reward=[1.5]),
        lambda d: d["limits"][0].update(noise=-1),
        lambda d: d["labels"]["states"].append({}),
    ],
)
def test_the_schema_refuses_what_load_refuses(tmp_path: Path, edit: Edit) -> None:
    path = template().save(tmp_path / "p.json")
    edited(path, edit)
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(document_of(path))
    with pytest.raises(UnreadableFile):
        Problem.load(path)


def test_a_document_by_hand_needs_no_digest(tmp_path: Path) -> None:
    path = template().save(tmp_path / "p.json")
    edited(path, lambda d: d["limits"][0].update(bound=1))
    assert Problem.load(path).limits[0].bound == 1.0


@pytest.mark.parametrize(
    ("has_cost", "features", "words"),
    [
        (np.ones(6, bool), None, r"terminal_has_cost has the wrong shape.*\(0\)"),
        (np.ones(5, bool), np.ones((6, 2)), r"terminal_has_cost has the wrong shape: \(5,\).*\(6\)"),
        (np.ones(6), np.ones((6, 2)), "terminal_has_cost has the wrong dtype"),
        (np.arange(6) > 3, np.ones((6, 2)), "without a cost has cost features: .*number 0"),
    ],
)
def test_which_last_states_have_a_cost_is_checked(has_cost: Any, features: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        template(terminal_has_cost=has_cost, terminal_cost_features=features)


# --- the digest -----------------------------------------------------------------------------------------


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    problem = template()
    layer = problem.graph.layers[0]
    assert problem.digest == template().digest == files.digest(problem)
    assert len(problem.digest) == 64
    assert template(transition_features=layer.cost_features.copy()).digest == problem.digest
    assert template(reward=[layer.reward, layer.reward.copy(), layer.reward]).digest == problem.digest


def test_the_digest_sees_every_part() -> None:
    rewards, features = np.linspace(0, 1, 12), np.linspace(-1, 1, 24).reshape(12, 2)
    rewards[3] = np.nextafter(rewards[3], 1)
    features[-1, -1] = np.nextafter(1, 0)
    numbers = [list(range(6))] * 4
    changes: list[dict[str, Any]] = [
        {},
        {"start": 3},
        {"start": [2, 3]},
        {"start": [3, 2]},
        {"horizon": 5},
        {"reward": rewards},
        {"cost_features": features},
        {"transition_features": features},
        {"successors": template().graph.layers[0].successor.astype(np.int64)},
        {"fallback": np.ones(6, np.int64)},
        {"limits": Limit("other", bound=0.5, noise=0.1, norm=1.0)},
        {"limits": Limit("level", bound=0.51, noise=0.1, norm=1.0)},
        {"limits": Limit("level", bound=0.5, noise=0.11, norm=1.0)},
        {"limits": Limit("level", bound=0.5, noise=0.1, norm=1.1)},
        {"limits": Limit("level", bound=0.5, noise=0.1, norm=1.0, misspecification=0.1)},
        {"transition_norm": 2.0},
        {"stationary_costs": True},
        {"stationary_transitions": True},
        {"terminal_reward": np.full(6, 0.5)},
        {"terminal_cost_features": np.zeros((6, 2))},
        {"terminal_cost_features": np.zeros((6, 2)), "terminal_has_cost": np.zeros(6, bool)},
        {"anchor": lambda h: ([1.0, 0.0], 0.25)},
        {"anchor": lambda h: ([1.0, 0.0], 0.25) if h else None},
        {"anchor": lambda h: ([1.0, 0.0], -0.25)},
        {"state_labels": [[str(i) for i in row] for row in numbers]},
        {"state_labels": [[float(i) for i in row] for row in numbers]},
        {"action_labels": [["a", "b"] * 6] * 3},
    ]
    digests = [template(**change).digest for change in changes]
    assert len(set(digests)) == len(changes)


# --- writing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["p", "p.txt", "p.npy", "p.json.gz"])
def test_another_suffix_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"\.json, \.npz or \.problem"):
        template().save(tmp_path / name)
    with pytest.raises(InvalidInput, match=r"\.json, \.npz or \.problem"):
        Problem.load(tmp_path / name)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, suffix: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = template().save(tmp_path / f"p.{suffix}")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="No space"):
            labelled().save(path)
    assert os.listdir(tmp_path) == [path.name]
    assert_same(template(), Problem.load(path))


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = template().save(tmp_path / "p.npz")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format, "write_array", interrupted)
        with pytest.raises(KeyboardInterrupt):
            labelled().save(path)
    assert os.listdir(tmp_path) == [path.name]
    assert_same(template(), Problem.load(path))


def test_saving_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(template().save(tmp_path / "p.json"))
    labelled().save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert_same(labelled(), Problem.load(tmp_path / "p.json"))


def test_a_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    path = template().save(tmp_path / "p.json")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"p.{suffix}"
    halves = template(state_labels=[[*"abcde", "\ud83d"]] * 4)
    with pytest.raises(InvalidInput, match="half a character"):
        halves.save(path)
    for limit in ("MAX_BYTES", "MAX_BRACKETS"):
        with monkeypatch.context() as patch:
            patch.setattr(documents, limit, 5)
            with pytest.raises(InvalidInput, match="too large"):
                template().save(path)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(("limit", "value"), [("MAX_BYTES", 3000), ("MAX_MEMBERS", 4)])
def test_archives_have_limits_too(tmp_path: Path, limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = template().save(tmp_path / "p.npz")
    monkeypatch.setattr(npz, limit, value)
    with pytest.raises(InvalidInput, match=r"too large for a \.npz"):
        template().save(tmp_path / "q.npz")
    refused(path, "too large|too many members")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnwritableFile, match=r"cannot be written: .*/nowhere/pump\.json: No such file"):
        sf.worlds.make("thermal/testing").problem.save(tmp_path / "nowhere" / "pump.json")
