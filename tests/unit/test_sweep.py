"""Sweeps: the same bytes whatever the number of processes and however often it was stopped; nothing is ever lost."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, OutOfOrder, SurefootError, UnreadableFile, UnwritableFile
from surefoot.runs import ledger, progress
from surefoot.runs import plans_kept as snapshots
from surefoot.runs.ledger import Ledger
from surefoot.runs.run import Run
from surefoot.storage import archive
from surefoot.storage.disk import FileLayer
from surefoot.sweeps import folder, sweep
from surefoot.sweeps import task as play
from surefoot.sweeps.sweep import Contender, Spec
from tests.alike import AGENTS
from tests.sweeps import WORLD, command, contents, left_over, small, wait_for, wait_until


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small sweep, uninterrupted, in one process."""
    root = tmp_path_factory.mktemp("whole") / "sweep"
    outcome = sweep.sweep(small(), root, jobs=1)
    assert (outcome.finished, outcome.total, outcome.interrupted, outcome.signal) == (6, 6, False, 0)
    return root


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "copy")
    return tmp_path / "copy"


# ---------------------------------------------------------------- what it writes


def test_the_directory(whole: Path) -> None:
    manifest = json.loads((whole / "sweep.json").read_text(encoding="utf-8"))
    world = sf.worlds.make(WORLD)
    assert manifest["format"] == "surefoot-sweep"
    assert manifest["world"] == {
        "name": WORLD,
        "options": {},
        "file": None,
        "digest": world.digest,
        "problem": world.problem.digest,
    }
    assert [each["label"] for each in manifest["agents"]] == ["lsvi-new", "blind", "ucrl-vtr"]
    assert manifest["agents"][1] == {"label": "blind", "agent": "lsvi-new", "options": {"ideas": ["II", "III", "IV"]}}
    assert (manifest["seeds"], manifest["episodes"]) == ([0, 3], 60)
    assert manifest["snapshots"] == {"seeds": [0], "note": ""}
    assert sorted(path.name for path in (whole / "runs" / "lsvi-new").iterdir()) == ["seed-0000", "seed-0003"]
    names = ["episodes.parquet", "manifest.json", "plans.parquet", "policy-exploit.json", "policy.json"]
    assert sorted(path.name for path in (whole / "runs/lsvi-new/seed-0003").iterdir()) == names
    assert sorted(path.name for path in (whole / "runs/lsvi-new/seed-0000").iterdir()) == [*names, "snapshots"]
    assert left_over(whole) == []


def test_each_run_is_the_run_by_itself(whole: Path) -> None:
    world = sf.worlds.make(WORLD)
    for label, agent in (("lsvi-new", "lsvi-new"), ("blind", "no look-ahead"), ("ucrl-vtr", "ucrl-vtr")):
        for seed in (0, 3):
            run = sf.run(AGENTS[agent](world.problem), world, 60, seed)
            found = Ledger.load(whole / "runs" / label / f"seed-{seed:04d}")
            assert np.array_equal(found.regret, run.regret)
            assert np.array_equal(found.violations, run.violations)
            assert {**run.manifest}.items() <= found.manifest.items()


def test_snapshots_are_plans_of_the_run(whole: Path) -> None:
    world = sf.worlds.make(WORLD)
    plans: dict[int, Any] = {}
    run = sf.run(sf.LsviNew(world.problem), world, 60, 0, on_plan=lambda plan, first: plans.update({plan.number: plan}))
    assert run.plan is not None
    plans[run.plan.number] = run.plan
    kept = snapshots.load_all(whole / "runs/lsvi-new/seed-0000/snapshots", world.problem)
    assert len(kept) == min(len(plans), snapshots.MOST)
    assert (kept[0].number, kept[-1].number) == (1, run.plan.number)
    for each in kept:
        plan = plans[each.number]
        assert all(np.array_equal(a, b) for a, b in zip(each.upper, plan.bounds.upper, strict=True))
        assert all(np.array_equal(a, b) for a, b in zip(each.certified_pairs, plan.certified_sets.pairs, strict=True))


def test_the_policy_is_that_of_the_last_plan(whole: Path) -> None:
    world = sf.worlds.make(WORLD)
    problem = world.problem
    run = sf.run(sf.LsviNew(problem), world, 60, 3)
    plan = run.plan
    assert plan is not None
    document = json.loads((whole / "runs/lsvi-new/seed-0003/policy.json").read_text(encoding="utf-8"))
    assert document["plan"] == plan.number
    assert document["source"] == {"kind": "run", "world": world.digest, "seed": 3, "episodes": 60}
    assert document["guaranteed"] is True
    count = 0
    for h, entries in enumerate(document["steps"]):
        for entry in entries:
            s, a = entry["state"], entry["action"]
            assert a == plan.action(h, s)
            assert entry["value_low"] <= entry["value"] <= entry["value_high"]  # exact, since the truth is known
            assert entry["certified"] is plan.certified(h, s, a) is True
            assert entry["fallback"] == (a == problem.fallback_action(h, s))
            worst = max(plan.upper(h, s, a, s2)[0] for s2 in problem.successors(h, s, a))
            assert entry["margin"] == [problem.limits[0].bound - worst]
            count += 1
    assert count == sum(int(mask.sum()) for mask in plan.certified_sets.states[:-1])
    assert document["steps"][0][0]["value"] == run.value[-1]


def test_the_policy_of_an_agent_without_plans(tmp_path: Path) -> None:
    sweep.sweep(small(agents=[Contender("fallback")], seeds=[1]), tmp_path / "s", jobs=1)
    document = json.loads((tmp_path / "s/runs/fallback/seed-0001/policy.json").read_text(encoding="utf-8"))
    assert document["plan"] is None
    entry = document["steps"][0][0]
    assert entry == {**entry, "margin": None, "certified": True, "fallback": True}


def test_a_large_policy_holds_only_what_it_reaches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from surefoot.plan import policy_document

    monkeypatch.setattr(policy_document, "MOST_STATES", 3)
    sweep.sweep(small(agents=[Contender("lsvi-new")], seeds=[1]), tmp_path / "s", jobs=1)
    document = json.loads((tmp_path / "s/runs/lsvi-new/seed-0001/policy.json").read_text(encoding="utf-8"))
    problem = sf.worlds.make(WORLD).problem
    assert document["states"] == "reached"
    reached = set(problem.starts)
    for h, entries in enumerate(document["steps"]):
        assert {entry["state"] for entry in entries} == reached
        reached = {s2 for entry in entries for s2 in problem.successors(h, entry["state"], entry["action"])}


def test_wall_times_are_kept_apart(whole: Path) -> None:
    times = folder.open_folder(whole).times()
    assert set(times) == {f"{label}/seed-{s:04d}" for label in ("lsvi-new", "blind", "ucrl-vtr") for s in (0, 3)}
    for entry in times.values():
        marks = np.array(entry["marks"])
        assert entry["seconds"] >= marks[-1, 1] > 0
        assert (np.diff(marks, axis=0) >= 0).all()
        assert marks[-1, 0] == 60
    for path in (whole / "runs").rglob("manifest.json"):
        assert "seconds" not in path.read_text(encoding="utf-8")


def test_a_damaged_file_of_times_is_no_matter(copy: Path) -> None:
    for text in ("", "{", "[]", '{"runs": 3}', '{"runs": {"lsvi-new/seed-0000": 1}}'):
        (copy / "times.json").write_text(text)
        assert folder.open_folder(copy).times() == {}
    shutil.rmtree(copy / "runs/lsvi-new/seed-0000")
    assert sweep.resume_sweep(copy, jobs=1).finished == 6
    assert list(folder.open_folder(copy).times()) == ["lsvi-new/seed-0000"]


# ---------------------------------------------------------------- the same bytes


def test_two_processes_give_the_same_bytes_and_show_how_it_goes(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown_at_once(monkeypatch)
    outcome = sweep.sweep(small(), tmp_path / "two", jobs=2, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "all episodes" in err
    assert outcome.finished == 6
    assert contents(tmp_path / "two") == contents(whole)
    assert left_over(tmp_path / "two") == []
    assert len(outcome.folder.times()) == 6


def test_a_worker_refuses_a_world_that_is_not_the_sweep_s(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every worker makes the world itself; one that came out otherwise must not be played."""
    manifest = json.loads((copy / "sweep.json").read_text(encoding="utf-8"))
    manifest["world"]["options"] = {"bound": 0.61}
    (copy / "sweep.json").write_text(json.dumps(manifest), encoding="utf-8")
    shutil.rmtree(copy / "runs/blind")
    monkeypatch.setattr(folder.Folder, "world", lambda self: sf.worlds.make(WORLD))  # here all seems well
    with pytest.raises(UnreadableFile, match="no longer the one of these runs"):
        sweep.resume_sweep(copy, jobs=2)
    assert not list((copy / "runs").rglob("blind/*/manifest.json"))


def test_a_worker_can_compile_in_a_script_that_imports_numba() -> None:
    """Spawned processes run the script's imports first: numba is loaded before the worker asks for one thread."""
    script = """
import numba
from surefoot.threads import one_thread
before = numba.config.NUMBA_NUM_THREADS
one_thread()
numba.set_num_threads(1)
assert numba.njit(lambda x: x + 1)(1) == 2
assert numba.config.NUMBA_NUM_THREADS == before
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def stopping_after(calls: int) -> Callable[..., Any]:
    """A run that is told to stop at the given look."""
    real = play._Watch.__call__
    left = [calls]

    def call(self: Any) -> bool:
        left[0] -= 1
        return real(self) or left[0] == 0

    return call


@pytest.mark.parametrize("pause", [0.0, 1e9])
def test_stopped_often_and_resumed(
    pause: float, whole: Path, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a checkpoint at every look, and with none but the one that a stop makes."""
    rng, root, stops = np.random.default_rng(seed), tmp_path / "s", 0
    real = play._Watch.__call__
    monkeypatch.setattr(play._Watch, "__call__", stopping_after(int(rng.integers(1, 30))))
    outcome = sweep.sweep(small(), root, jobs=1, checkpoint_seconds=pause)
    while outcome.interrupted:
        stops += 1
        monkeypatch.setattr(play._Watch, "__call__", stopping_after(int(rng.integers(1, 30))) if stops < 12 else real)
        outcome = sweep.resume_sweep(root, jobs=1, checkpoint_seconds=pause)
    assert stops > 3
    assert contents(root) == contents(whole)
    assert left_over(root) == []


class Killed(BaseException):
    """What no handler of errors catches."""


def test_killed_at_every_touch_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends at the n-th rename, for every n: what follows ends with the same bytes."""
    spec = small(8, seeds=[0], agents=[Contender("lsvi-new")])
    sweep.sweep(spec, tmp_path / "whole", jobs=1)
    expected = contents(tmp_path / "whole")
    real = {name: getattr(os, name) for name in ("replace", "rename")}
    n, done = 0, False
    while not done:
        n, calls, root = n + 1, [0], tmp_path / str(n)

        def counted(name: str, *words: Any, calls: list[int] = calls, n: int = n) -> None:
            calls[0] += 1
            if calls[0] == 2 * n:
                raise Killed
            real[name](*words)
            if calls[0] == 2 * n - 1 and n % 2:
                raise Killed  # right after it

        with monkeypatch.context() as patch:
            for name in real:
                patch.setattr(os, name, lambda *words, name=name: counted(name, *words))
            try:
                sweep.sweep(spec, root, jobs=1, checkpoint_seconds=0)
                done = True
            except Killed:
                pass
        if (root / "sweep.json").exists():
            sweep.resume_sweep(root, jobs=1)
        else:
            sweep.sweep(spec, root, jobs=1)
        assert contents(root) == expected
        assert left_over(root) == []
    assert n > 5


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep that takes a while, uninterrupted."""
    root = tmp_path_factory.mktemp("long") / "sweep"
    sweep.sweep(LONG, root, jobs=1)
    return root


LONG = Spec(WORLD, [Contender("lsvi-new", {"replan_growth": 0.03}), Contender("slucb-qvi")], (0,), 2_500)


@pytest.mark.parametrize(
    ("number", "jobs", "group"), [(signal.SIGINT, 2, True), (signal.SIGTERM, 1, False), (signal.SIGKILL, 2, False)]
)
def test_signals(number: signal.Signals, jobs: int, group: bool, long: Path, seed: int, tmp_path: Path) -> None:
    """Ctrl-C goes to the whole group, kill to one; either way the rest is as if nothing had happened."""
    rng, root = np.random.default_rng([seed, number, jobs]), tmp_path / "s"
    words = [
        *("run", WORLD, "--agent", "lsvi-new", "--agent", "slucb-qvi", "--option", "lsvi-new.replan_growth=0.03"),
        *("--episodes", 2500, "--seeds", "0:1", "--out", root, "--jobs", jobs, "--checkpoint-seconds", 0.05),
    ]
    process = command(*words)
    wait_for(process, lambda: any(root.glob("runs/*/*.checkpoint")))
    time.sleep(0.1 * rng.random())
    if group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=120)
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 128 + number, (out, err)
        assert "Traceback" not in err
        assert f"Resume with: surefoot resume {root}" in err
    assert sweep.resume_sweep(root, jobs=1).finished == 2
    assert contents(root) == contents(long)
    assert left_over(root) == []


def test_a_worker_that_is_killed_is_replaced(long: Path, tmp_path: Path) -> None:
    root, killed = tmp_path / "s", list[int]()

    def kill() -> None:
        wait_until(lambda: any(root.glob("runs/*/*.checkpoint")))
        killed.extend(child.pid for child in multiprocessing.active_children() if child.pid)
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    outcome = sweep.sweep(LONG, root, jobs=2, checkpoint_seconds=0.05)
    killer.join()
    assert killed
    assert (outcome.finished, outcome.lost) == (2, ())
    assert contents(root) == contents(long)
    assert left_over(root) == []


# ---------------------------------------------------------------- refusals


def test_two_processes_in_one_directory_are_refused(copy: Path) -> None:
    shutil.rmtree(copy / "runs/blind")
    before = contents(copy)
    with folder.alone(copy):
        for attempt in (
            lambda: sweep.resume_sweep(copy, jobs=1),
            lambda: sweep.sweep(small(), copy, force=True, jobs=1),
        ):
            with pytest.raises(OutOfOrder, match=f"another process works in this directory: .*process {os.getpid()}"):
                attempt()
    assert contents(copy) == before
    assert sweep.resume_sweep(copy, jobs=1).finished == 6


def test_workers_of_a_killed_process_are_waited_for(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "PATIENCE", 0.2)
    with folder.working(copy), pytest.raises(OutOfOrder, match="still running"):
        sweep.resume_sweep(copy, jobs=1)
    assert sweep.resume_sweep(copy, jobs=1).finished == 6


def test_nothing_is_overwritten_unasked(copy: Path) -> None:
    before = contents(copy)
    with pytest.raises(InvalidInput, match=r"there are runs already.*6 of 6.*surefoot resume .*--force"):
        sweep.sweep(small(), copy, jobs=1)
    assert contents(copy) == before
    spec = small(20, seeds=[0], agents=[Contender("fallback")])
    assert sweep.sweep(spec, copy, force=True, jobs=1).finished == 1
    assert {name.split("/")[1] for name in contents(copy) if "/" in name} == {"fallback"}
    assert left_over(copy) == []


def test_what_is_not_a_sweep_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    (tmp_path / "file").write_text("mine")
    for name in ("mine", "file"):
        for force in (False, True):
            with pytest.raises(InvalidInput, match="Choose"):
                sweep.sweep(small(), tmp_path / name, force=force, jobs=1)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years"
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["thesis.txt"]
    (tmp_path / "empty").mkdir()
    assert sweep.sweep(small(5, seeds=[0]), tmp_path / "empty", jobs=1).finished == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not complete, valid JSON"),
        ("{", "not complete, valid JSON"),
        ("[]", "not a sweep of surefoot"),
        ("{}", "not a sweep of surefoot"),
        ("[" * 100_000, "nested too deeply"),
        ('{"format": "other"}', "not a sweep of surefoot"),
        ('{"format": "surefoot-sweep", "version": 3}', "written by a newer version"),
        ('{"format": "surefoot-sweep", "version": 2}', "an entry is missing"),
    ],
)
def test_a_bad_manifest_is_named(text: str, words: str, copy: Path) -> None:
    (copy / "sweep.json").write_text(text)
    with pytest.raises(UnreadableFile, match=rf"{words}.*sweep\.json"):
        sweep.resume_sweep(copy, jobs=1)


def test_a_manifest_that_asks_for_nonsense_is_refused(copy: Path) -> None:
    manifest = json.loads((copy / "sweep.json").read_text(encoding="utf-8"))
    for key, value in {
        "episodes": 0,
        "seeds": [],
        "agents": [{"label": "..", "agent": "fallback", "options": {}}],
    }.items():
        (copy / "sweep.json").write_text(json.dumps({**manifest, key: value}))
        with pytest.raises(UnreadableFile, match="the manifest is damaged"):
            sweep.resume_sweep(copy, jobs=1)
    (copy / "sweep.json").write_text(json.dumps({**manifest, "world": {**manifest["world"], "digest": "0" * 64}}))
    with pytest.raises(UnreadableFile, match="the world is no longer the one of these runs"):
        sweep.resume_sweep(copy, jobs=1)


def test_a_directory_that_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"not a directory of runs: .*no such directory"):
        sweep.resume_sweep(tmp_path / "nowhere")
    with pytest.raises(UnreadableFile, match=r"not a directory of runs: .*it has no sweep.json"):
        sweep.resume_sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_ledger_is_named_and_can_be_played_anew(copy: Path, whole: Path) -> None:
    shutil.rmtree(copy / "runs/ucrl-vtr")
    path = copy / "runs/blind/seed-0003/episodes.parquet"
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    with pytest.raises(UnreadableFile, match=rf"{path}.*Remove {path.parent} to play this run anew"):
        sweep.resume_sweep(copy, jobs=1)
    shutil.rmtree(path.parent)
    sweep.resume_sweep(copy, jobs=1)
    assert contents(copy) == contents(whole)


def test_a_damaged_checkpoint_is_named(copy: Path, whole: Path) -> None:
    shutil.rmtree(copy / "runs/blind/seed-0003")
    path = copy / "runs/blind/seed-0003.checkpoint"
    path.write_bytes(b"not one")
    with pytest.raises(UnreadableFile, match=rf"{path}.*Delete it to play this run anew"):
        sweep.resume_sweep(copy, jobs=1)
    path.unlink()
    sweep.resume_sweep(copy, jobs=1)
    assert contents(copy) == contents(whole)


TINY = small(30, seeds=[0], agents=[Contender("lsvi-new")])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tiny") / "sweep"
    sweep.sweep(TINY, root, jobs=1)
    return root


def full_disk(*words: Any, **options: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (ledger, "_write_parquet"),
        (archive, "write_archive"),
        (snapshots, "save_snapshot"),
        (Run, "export"),
        (folder, "write_text"),
        (FileLayer, "fsync"),
        (FileLayer, "move"),
    ],
)
def test_a_full_disk(module: Any, name: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever cannot be written: a clear error, and later the same end."""
    root = tmp_path / "s"
    with monkeypatch.context() as patch:
        patch.setattr(play._Watch, "__call__", stopping_after(5))
        assert sweep.sweep(TINY, root, jobs=1, checkpoint_seconds=0).interrupted
    with monkeypatch.context() as patch:
        patch.setattr(module, name, full_disk)
        with pytest.raises(UnwritableFile, match=r"the disk is full: .*No space left on device"):
            sweep.resume_sweep(root, jobs=1, checkpoint_seconds=0)
    assert sweep.resume_sweep(root, jobs=1).finished == 1
    assert contents(root) == contents(tiny)
    assert left_over(root) == []


def test_an_error_in_a_worker(tmp_path: Path) -> None:
    root = tmp_path / "b"
    sweep.sweep(small(20, seeds=[0], agents=[Contender("fallback")]), root, jobs=1)
    manifest = json.loads((root / "sweep.json").read_text(encoding="utf-8"))
    (root / "sweep.json").write_text(json.dumps({**manifest, "seeds": [0, 1, 2]}))
    (root / "runs/fallback/seed-0001.checkpoint").write_bytes(b"not one")
    with pytest.raises(UnreadableFile, match=r"seed-0001.checkpoint.*Delete it") as error:
        sweep.resume_sweep(root, jobs=2)
    assert "In a worker process" in error.value.__notes__[0]
    assert left_over(root) == ["runs/fallback/seed-0001.checkpoint"]
    (root / "runs/fallback/seed-0001.checkpoint").unlink()
    assert sweep.resume_sweep(root, jobs=1).finished == 3


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_directory_that_may_not_be_written(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *words: Any, **options: Any) -> None:
        raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(UnwritableFile, match=f"(read-only|permission).*{tmp_path}/out"):
        sweep.sweep(small(), tmp_path / "out", jobs=1)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UnwritableFile, match="a file is in the way of a directory"):
        sweep.sweep(small(), tmp_path / "file" / "out", jobs=1)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"world": "thermal/smal"}, "no such world: 'thermal/smal'. Did you mean thermal/small"),
        ({"world_options": {"bond": 0.5}}, "thermal/testing has no option 'bond'. Did you mean bound"),
        ({"world_options": {"bound": "high"}}, "bound of thermal/testing must be a number: 'high'"),
        ({"world_options": {"size": "small"}}, "no option 'size'"),
        ({"agents": []}, "needs an agent"),
        ({"agents": ["lsvi-new"]}, r"a sweep compares Contenders: a str\. Give Contender\(agent, options\)"),
        ({"seeds": 3}, r"the seeds of a sweep are a list: a int\. Give \[0, 1, 2\]"),
        ({"agents": [Contender("lsvi")]}, "no such agent: 'lsvi'. Did you mean .*lsvi-new"),
        ({"agents": [Contender("lsvi-new", {"ridge": [1]})]}, "lsvi-new has no option 'ridge'. Did you mean ridges"),
        ({"agents": [Contender("lsvi-new", {"ridges": 1})]}, "ridges of lsvi-new must be a list of numbers: 1"),
        ({"agents": [Contender("lsvi-new", {"literal_future": 1})]}, "must be true or false: 1"),
        ({"agents": [Contender("lsvi-new", {"initial_episodes": 1.5})]}, "must be a whole number: 1.5"),
        ({"agents": [Contender("lsvi-new", {"problem": 1})]}, "no option 'problem'"),
        ({"agents": [Contender("fallback"), Contender("fallback")]}, "a label is given twice: fallback.*LABEL=AGENT"),
        ({"agents": [Contender("fallback", {}, "../up")]}, "a label cannot name a folder: '../up'"),
        ({"seeds": []}, "needs a seed"),
        ({"seeds": [1, 1]}, "a seed is given twice: 1"),
        ({"seeds": [-1]}, "seed must be a whole number, at least 0: -1"),
        ({"episodes": 0}, "episodes must be a whole number, at least 1: 0"),
    ],
)
def test_a_spec_that_makes_no_sense(change: dict[str, Any], words: str) -> None:
    parts = {"world": WORLD, "agents": [Contender("lsvi-new")], "seeds": [0], "episodes": 5, "world_options": {}}
    with pytest.raises(InvalidInput, match=words):
        Spec(**{**parts, **change})


def test_a_world_is_no_spec(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"a sweep needs a Spec: a str\. Give Spec\(world, "):
        sweep.sweep("thermal/testing", tmp_path / "out")  # type: ignore[arg-type]


def test_what_an_agent_refuses_is_said_before_anything_is_written(tmp_path: Path) -> None:
    for contender, words in (
        (Contender("lsvi-new", {"failure_probability": 2.0}), "failure_probability must be below 1"),
        (
            Contender("lsvi-new-paper", {"episodes": 10, "initial_episodes": 0}),
            "for fewer episodes: lsvi-new-paper: 60 to play, 10",
        ),
    ):
        with pytest.raises(InvalidInput, match=words):
            sweep.sweep(small(agents=[contender]), tmp_path / "out", jobs=1)
    with pytest.raises(InvalidInput, match="jobs must be a whole number"):
        sweep.sweep(small(), tmp_path / "out", jobs=0)
    assert not (tmp_path / "out").exists()


def test_the_papers_constants_are_for_the_run_s_own_episodes_and_warns_once(tmp_path: Path) -> None:
    spec = small(30, agents=[Contender("lsvi-new-paper")])
    outcome = sweep.sweep(spec, tmp_path / "s", jobs=1)
    assert len(outcome.notes) == 1
    assert "nothing but the fallback will be played" in outcome.notes[0]
    assert Ledger.load(tmp_path / "s/runs/lsvi-new-paper/seed-0000").manifest["constants"]["episodes"] == 30


def test_a_large_world_keeps_no_snapshots_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MOST_TRIPLETS", 100)
    outcome = sweep.sweep(small(20), tmp_path / "s", jobs=1)
    assert outcome.notes == ("the report's explorer takes up to 100 triplets, and there are 149",)
    assert outcome.folder.manifest["snapshots"] == {"seeds": [], "note": outcome.notes[0]}
    assert not any((tmp_path / "s").rglob("snapshots"))
    outcome = sweep.sweep(small(20, snapshot_seeds=0), tmp_path / "t", jobs=1)
    assert outcome.notes == ()
    assert outcome.folder.manifest["snapshots"] == {"seeds": [], "note": "not asked for"}


def test_an_error_of_the_world_s_own_is_one_of_surefoot(tmp_path: Path) -> None:
    with pytest.raises(SurefootError):
        sweep.sweep(small(world_options={"bound": -1.0}), tmp_path / "s", jobs=1)
    assert not (tmp_path / "s").exists()


def shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a terminal, of rich."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(play, "TELL_SECONDS", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


def test_the_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, when asked for or on a terminal, and only when it takes a while."""
    spec = small(20, seeds=[0, 1], agents=[Contender("fallback")])
    monkeypatch.setattr(progress, "PATIENCE", 60.0)  # quick, also on a machine that does much else
    sweep.sweep(spec, tmp_path / "quick", jobs=1, progress=True)
    assert capsys.readouterr() == ("", "")
    shown_at_once(monkeypatch)
    sweep.sweep(spec, tmp_path / "slow", jobs=1, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "all episodes" in err
    sweep.sweep(spec, tmp_path / "no terminal", jobs=1)
    assert capsys.readouterr() == ("", "")
