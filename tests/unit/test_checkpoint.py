"""Checkpoints: a run in pieces is the run in one piece, to the bit; nothing half written is ever read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import InvalidInput, UnreadableFile
from surefoot.runs import checkpoint as checkpoints
from surefoot.runs.run import Run
from surefoot.runs.runner import resume
from surefoot.storage import archive as npz
from tests.alike import AGENTS, assert_same_run, differences
from tests.drawn_worlds import certified_world, paper_world

EPISODES = 60


def in_pieces(path: Path, make: Any, world: sf.World, stops: list[int], seed: int) -> tuple[Any, Run]:
    """A run that ends at each stop and goes on with a new agent, now compiled, now step by step."""
    agent = make(world.problem)
    run = sf.run(agent, world, stops[0], seed, checkpoint=path, compiled=bool(stops[0] % 2))
    for stop in stops[1:]:
        agent = make(world.problem)
        run = resume(path, agent, world, episodes=stop, compiled=bool(stop % 2))
    return agent, run


@pytest.mark.parametrize("name", AGENTS)
def test_pieces_make_the_whole(name: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([seed, len(name)])
    noises = ("gaussian", "uniform", "rademacher")
    turn = list(AGENTS).index(name)
    for number in (turn % 3, (turn + 1) % 3)[: 1 + (name == "lsvi-new")]:
        tables = 1000 * seed + 50 * turn + number
        world = certified_world(tables, noises[number % 3], starts=1 + number % 2, misspecified=number == 2)
        # The first and the last episode, the end of those that play the fallback, and anywhere.
        stops = sorted({1, 9, EPISODES - 1, EPISODES, *rng.integers(2, EPISODES, 3).tolist()})
        whole = AGENTS[name](world.problem)
        one = sf.run(whole, world, EPISODES, seed)
        agent, two = in_pieces(tmp_path / f"{number}", AGENTS[name], world, stops, seed)
        assert_same_run(one, two)
        assert one.manifest == two.manifest
        assert set(differences(whole.checkpoint(), agent.checkpoint())) <= {"/start"}


def test_so_they_do_with_the_papers_constants(seed: int, tmp_path: Path) -> None:
    for number in range(2):
        world, options = paper_world(5000 + 100 * seed + number, starts=1 + number)
        options["initial_episodes"] = 10 * number

        def make(problem: sf.Problem, options: Any = options) -> sf.LsviNewPaper:
            return sf.LsviNewPaper(problem, **options)

        one = sf.run(make(world.problem), world, EPISODES, seed)
        _, two = in_pieces(tmp_path / f"{number}", make, world, [4, 10, 31, EPISODES], seed)
        assert_same_run(one, two)


def test_every_point_of_a_short_run(seed: int, tmp_path: Path) -> None:
    world = sf.worlds.make("thermal/testing")
    one = sf.run(sf.LsviNew(world.problem), world, 12, seed)
    for stop in range(1, 12):
        _, two = in_pieces(tmp_path / "c", sf.LsviNew, world, [stop, 12], seed)
        assert_same_run(one, two)


def test_a_finished_run_may_go_on(seed: int, tmp_path: Path) -> None:
    """Starts are drawn ahead for all episodes: more of them must not change the first ones."""
    world, path = certified_world(3000 + seed, starts=2), tmp_path / "c"
    sf.run(sf.LsviNew(world.problem), world, 30, seed, checkpoint=path)
    again = resume(path, sf.LsviNew(world.problem), world)
    assert again.episodes == 30
    assert not again.interrupted
    longer = resume(path, sf.LsviNew(world.problem), world, episodes=90)
    assert_same_run(longer, sf.run(sf.LsviNew(world.problem), world, 90, seed))
    with pytest.raises(InvalidInput, match="more episodes: 90 are played, 40 were asked for"):
        resume(path, sf.LsviNew(world.problem), world, episodes=40)
    with pytest.raises(InvalidInput, match="episodes must be a whole number"):
        resume(path, sf.LsviNew(world.problem), world, episodes=0)


@pytest.mark.parametrize("compiled", [True, False])
def test_checkpoints_on_the_way(compiled: bool, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, path = sf.worlds.make("thermal/testing"), tmp_path / "c"
    kept: list[int] = []
    real = checkpoints.save_checkpoint

    def save(where: Path, session: Any) -> None:
        real(where, session)
        kept.append(session.done)

    monkeypatch.setattr(checkpoints, "save_checkpoint", save)
    one = sf.run(sf.LsviNew(world.problem), world, 100, seed, checkpoint=path, checkpoint_every=33, compiled=compiled)
    assert kept == [33, 66, 99, 100]
    assert_same_run(one, sf.run(sf.LsviNew(world.problem), world, 100, seed))


def test_the_same_state_gives_the_same_bytes(seed: int, tmp_path: Path) -> None:
    world = certified_world(seed)
    for name in ("a", "b"):
        sf.run(sf.LsviNew(world.problem), world, 40, seed, checkpoint=tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "b"]


# ---------------------------------------------------------------- refusals


def thermal(**options: Any) -> sf.World:
    return sf.worlds.make("thermal/testing", **options)


@pytest.fixture
def saved(seed: int, tmp_path: Path) -> Path:
    world, path = thermal(), tmp_path / "checkpoint"
    sf.run(sf.LsviNew(world.problem), world, 20, seed, checkpoint=path)
    return path


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (AGENTS["ucrl-vtr"], ["another agent", '"lsvi-new" there, "ucrl-vtr" here']),
        (AGENTS["fallback"], ["another agent", '"fallback" here']),
        (lambda p: sf.LsviNew(p, 0.1), ["constants", '{"failure_probability": 0.05} there']),
        (lambda p: sf.LsviNew(p, replan_growth=0.2), ["constants", '{"replan_growth": 0.2} here']),
        (lambda p: sf.LsviNew(p, safety_radius_scale=0.5), ["constants", '{"safety_radius_scale": 1.0} there']),
        (lambda p: sf.LsviNew(p, initial_episodes=3), ["constants", "initial_episodes"]),
        (lambda p: sf.LsviNew(p, ideas="I II"), ["constants", "ideas"]),
        (lambda p: sf.LsviNew(p, slack=0.3), ["constants", "slack"]),
        (lambda p: sf.LsviNew(p, literal_future=True), ["constants", "literal_future"]),
    ],
)
def test_another_agent_is_refused(agent: Any, words: list[str], saved: Path) -> None:
    world = thermal()
    before = saved.read_bytes()
    with pytest.raises(InvalidInput, match="the checkpoint was made with another") as error:
        resume(saved, agent(world.problem), world, episodes=60)
    for word in words:
        assert word in str(error.value)
    assert saved.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"bound": 0.61}, "problem"),
        ({"horizon": 7}, "problem"),
        ({"noise_scale": 0.11}, "problem"),
        ({"noise": "uniform"}, "world"),
        ({"climate": (0.4, 0.3, 0.3)}, "world"),  # the same problem; only the truth differs
    ],
)
def test_another_world_is_refused(options: dict[str, Any], word: str, saved: Path) -> None:
    world = thermal(**options)
    with pytest.raises(InvalidInput, match=f"the checkpoint was made with another {word}"):
        resume(saved, sf.LsviNew(world.problem), world, episodes=60)


def test_a_world_that_deviates_is_another(saved: Path) -> None:
    world = thermal()
    off = [np.full((layer.n_edges, 1), 1e-6) for layer in world.problem.graph.layers]
    other = sf.World(world.problem, world.transition, world.cost_parameters, deviation=off)
    with pytest.raises(InvalidInput, match="another world"):
        resume(saved, sf.LsviNew(world.problem), other, episodes=60)


def test_truncation_is_refused(saved: Path) -> None:
    world, whole = thermal(), saved.read_bytes()
    for kept in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:kept])
        with pytest.raises(UnreadableFile) as error:
            resume(saved, sf.LsviNew(world.problem), world, episodes=60)
        assert str(saved) in str(error.value)
    saved.unlink()
    with pytest.raises(UnreadableFile, match="No such file"):
        resume(saved, sf.LsviNew(world.problem), world, episodes=60)


def test_a_changed_byte_is_refused_or_changes_nothing(saved: Path, seed: int) -> None:
    world, whole = thermal(), saved.read_bytes()
    good = checkpoints.load_checkpoint(saved, sf.LsviNew(world.problem), world)
    places = np.random.default_rng(seed).integers(len(whole), size=60).tolist()
    refused = 0
    for place in places:
        saved.write_bytes(whole[:place] + bytes([whole[place] ^ 32]) + whole[place + 1 :])
        try:
            found = checkpoints.load_checkpoint(saved, sf.LsviNew(world.problem), world)
        except UnreadableFile:
            refused += 1
        else:  # a date, an attribute: bytes of the archive that say nothing
            assert not differences(vars(found), vars(good))
    assert refused > 40


def rewrite(path: Path, change: Any) -> None:
    """The same archive with a changed header, its checksums right."""
    with npz.opened(path) as (header, members):
        arrays = dict(members())
    change(header, arrays)
    with path.open("wb") as stream:
        npz.write_archive(stream, json.dumps(header).encode(), arrays)


def edit_draws(header: Any, arrays: Any, change: Any) -> None:
    """Change the record of what was drawn, which an agent's checkpoint keeps as text."""
    name = f"agent_{list(header['shapes']['agent']).index('draws')}"
    drawn = json.loads(bytes(arrays[name].tolist()))
    change(drawn)
    arrays[name] = np.frombuffer(json.dumps(drawn).encode(), np.uint8).astype(np.int32)
    header["shapes"]["agent"]["draws"] = list(arrays[name].shape)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.update(format="surefoot-problem"),
        lambda header, arrays: header.update(version=99),
        lambda header, arrays: header.pop("manifest"),
        lambda header, arrays: header["manifest"].pop("world"),
        lambda header, arrays: header["manifest"].update(done="many"),
        lambda header, arrays: header["shapes"].pop("agent"),
        lambda header, arrays: header["shapes"].update(table=3),
        lambda header, arrays: header["shapes"]["table"].update(start=[7, 7]),
        lambda header, arrays: arrays.pop("agent_0"),
        lambda header, arrays: header["manifest"].update(done=19),
        lambda header, arrays: header["manifest"].update(seed=header["manifest"]["seed"] + 1),
        lambda header, arrays: edit_draws(header, arrays, lambda drawn: drawn.update(played=19)),
        lambda header, arrays: edit_draws(header, arrays, lambda drawn: drawn.update(seeds=[])),
        lambda header, arrays: edit_draws(header, arrays, lambda drawn: drawn.pop("world")),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(change: Any, saved: Path) -> None:
    world = thermal()
    rewrite(saved, change)
    with pytest.raises(UnreadableFile, match=str(saved)):
        resume(saved, sf.LsviNew(world.problem), world, episodes=60)


def test_a_hostile_sampler_state_is_refused(saved: Path) -> None:
    world = thermal()
    hostile = {"noise": "__import__('os')"}
    rewrite(saved, lambda header, arrays: edit_draws(header, arrays, lambda drawn: drawn.update(state=hostile)))
    with pytest.raises(InvalidInput, match="sampler state cannot be restored"):
        resume(saved, sf.LsviNew(world.problem), world, episodes=60)


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_one(
    step: str, saved: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, before = thermal(), saved.read_bytes()
    real = npz.write_archive

    def fail(*arguments: Any, **options: Any) -> None:
        if step == "write":  # half of it is already on disk
            real(*arguments, **options)
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        if step == "write":
            patch.setattr(npz, "write_archive", fail)
        else:
            patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="no space left"):
            resume(saved, sf.LsviNew(world.problem), world, episodes=60)
    assert saved.read_bytes() == before
    assert [file.name for file in saved.parent.iterdir()] == [saved.name]  # no debris
    again = resume(saved, sf.LsviNew(world.problem), world, episodes=60)
    assert_same_run(again, sf.run(sf.LsviNew(world.problem), world, 60, seed))


# ---------------------------------------------------------------- Ctrl-C


def python(code: str, *arguments: Any) -> subprocess.Popen[str]:
    """A process of its own, since a signal goes to all of it; it listens to SIGINT even in the background."""
    return subprocess.Popen(
        [sys.executable, "-c", f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{code}"]
        + [str(argument) for argument in arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


ENDLESS = """
import json, sys
import surefoot as sf
path, seed = sys.argv[1], int(sys.argv[2])
world = sf.worlds.make("thermal/testing")
run = sf.run(sf.LsviNew(world.problem), world, 10**6, seed, checkpoint=path, checkpoint_every=500)
print(json.dumps([run.interrupted, run.episodes, run.manifest["done"]]))
"""


@pytest.mark.parametrize("compiled", [True, False])
def test_ctrl_c_ends_a_run_after_the_episode(compiled: bool, seed: int, tmp_path: Path) -> None:
    world, path = thermal(), tmp_path / "checkpoint"

    def ctrl_c(plan: sf.Plan, first: int) -> None:
        if first > 9:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(UserWarning, match="interrupted after"):
        run = sf.run(sf.LsviNew(world.problem), world, 300, seed, checkpoint=path, compiled=compiled, on_plan=ctrl_c)
    assert run.interrupted
    assert 9 < run.episodes < 300
    again = resume(path, sf.LsviNew(world.problem), world, episodes=300)
    assert_same_run(again, sf.run(sf.LsviNew(world.problem), world, 300, seed))


def test_a_process_that_is_told_to_end_keeps_what_is_done(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    process = python(ENDLESS, path, seed)
    try:
        deadline = time.monotonic() + 300
        while not path.exists():  # written by checkpoint_every: the run is under way
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    interrupted, episodes, done = json.loads(out)
    assert interrupted is True
    assert episodes == done > 0
    assert f"interrupted after {done:,} of 1,000,000 episodes" in err  # nobody takes it for a whole run
    world = thermal()
    more = done + 500
    two = resume(path, sf.LsviNew(world.problem), world, episodes=more)
    assert two.interrupted is False
    assert_same_run(two, sf.run(sf.LsviNew(world.problem), world, more, seed))


IMPATIENT = """
import os, signal, sys
import surefoot as sf
from tests.shielded import Fixed

class Impatient(Fixed):
    def _choose(self, h, state):
        if self.episodes >= 25:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):  # signals are handled between two steps of the interpreter
                pass
        return super()._choose(h, state)

world = sf.worlds.make("thermal/testing")
waits = {(h, heat): 0 for h in range(world.problem.horizon - 1) for heat in world.problem.naming.states[h]}
try:
    sf.run(Impatient(world.problem, waits), world, 1000, checkpoint=sys.argv[1], checkpoint_every=10, compiled=False)
except KeyboardInterrupt:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print("stopped at once")
"""


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    process = python(IMPATIENT, path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out == "stopped at once\n"
    with npz.opened(path) as (header, _):
        assert header["manifest"]["done"] == 20  # the last regular one, whole
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]


HANDLERS = """
import os, signal
from surefoot.runs.progress import Interrupt

signal.signal(signal.SIGTERM, signal.SIG_IGN)
with Interrupt() as stop:
    assert not stop.requested
    os.kill(os.getpid(), signal.SIGINT)
    assert stop.requested
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000): pass
    except KeyboardInterrupt:
        print("second")
assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_handlers_are_put_back() -> None:
    process = python(HANDLERS)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "second\n"), err
