"""The command line: what each command prints, what it writes, and its exit codes. (Mistakes: test_cli_options.)"""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.cli import entry, run_options, study
from surefoot.errors import InvalidInput
from surefoot.runs import ledger
from surefoot.sweeps import sweep
from surefoot.sweeps.sweep import Contender, Outcome
from tests.commanded import Surefoot, failing, refused
from tests.logged import log, pump
from tests.sweeps import WORLD, contents, small


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three agents, one seed each, finished."""
    root = tmp_path_factory.mktemp("made") / "runs"
    agents = [Contender("lsvi-new"), Contender("fallback"), Contender("ucrl-vtr")]
    sweep.sweep(small(30, seeds=[0, 4], agents=agents), root, jobs=1)
    return root


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "folder")
    return tmp_path / "folder"


def surefoot_report() -> Any:
    return importlib.import_module("surefoot.reports")


# ---------------------------------------------------------------- starting


LIGHT = """
import sys
from surefoot.cli import main
for words in sys.argv[1:]:
    sys.argv = ["surefoot", *words.split()]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, ended.code
heavy = {"numpy", "scipy", "numba", "gymnasium", "matplotlib", "pyarrow"} & set(sys.modules)
assert not heavy, heavy
"""


def test_help_loads_nothing_heavy() -> None:
    words = ["--help", "--version", "run --help", "study --help"]
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: surefoot") == 3


def test_every_command_is_there(surefoot: Surefoot) -> None:
    ended = surefoot("--help")
    assert ended.code == 0
    see, make = ["demo", "worlds", "agents", "show", "check", "theory"], ["run", "resume", "config", "ablate"]
    for name in [*see, *make, "report", "export", "study", "audit"]:
        assert f"│ {name} " in ended.out


def test_help_shows_the_defaults(surefoot: Surefoot) -> None:
    known = run_options.RunOptions(world="WORLD")
    words = surefoot("run", "--help").out
    first, *_, last = known.seeds
    shown = [*(each.name for each in known.agents), known.episodes, known.snapshots, f"{known.checkpoint_seconds:g}"]
    for default in [*shown, f"{first}:{last + 1}", known.folder(), "one per core"]:
        assert f"[default: ({default})]" in words


def test_every_command_shows_an_example(surefoot: Surefoot) -> None:
    examples = [example for _, _, _, example in entry.COMMANDS]
    examples += [str(each.epilog).removeprefix("Example: ") for each in study.study.registered_commands]
    assert len(examples) == len(set(examples)) > 20
    for example in examples:
        words = example.split()[1:]
        name = words[:2] if words[0] == "study" else words[:1]
        assert f"Example: {example}" in " ".join(surefoot(*name, "--help").out.split())


def quick(example: str) -> list[str]:
    """Its words, with fewer episodes and in this process."""
    words = re.sub(r"(--episodes) \d+", r"\1 9", example).partition(" > ")[0].split()[1:]
    words += ["--jobs", "1"] if words[0] in ("demo", "run", "resume", "ablate", "compare") else []
    return words + (["--seeds", "1"] if words[0] in ("demo", "run", "ablate", "compare") else [])


EXAMPLES = {name: quick(example) for name, _, _, example in entry.COMMANDS}


def test_the_examples_run(surefoot: Surefoot, tmp_path: Path) -> None:
    """One after the other in one directory, as a reader would."""
    study_made(tmp_path)
    for name, words in EXAMPLES.items():
        if name not in ("demo", "calibrate", "ablate"):  # which have tests of their own below
            ended = surefoot(*words)
            assert ended.code == 0, (words, ended)
            assert ended.out, words


def study_made(folder: Path) -> None:
    """What the examples take for granted: a study, a problem file and a log."""
    with sf.Study.open(folder / "pump.study", sf.worlds.make(WORLD).problem):
        pass
    pump().save(folder / "pump.json")
    rows = log(pump(), np.random.default_rng(0), 40)
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (folder / "log.csv").write_text("\n".join(lines) + "\n")


def test_calibrate(surefoot: Surefoot, tmp_path: Path) -> None:
    study_made(tmp_path)
    ended = surefoot("calibrate", "pump.json", "log.csv", "--level", "0.9")
    assert (ended.code, ended.out) == (0, f"{sf.calibrate(pump(), tmp_path / 'log.csv', level=0.9)}\n")
    ended = surefoot(*EXAMPLES["calibrate"], "--json", "--dark")
    assert json.loads(ended.out) == sf.calibrate(pump(), tmp_path / "log.csv").to_dict()
    assert (tmp_path / "residuals.png").exists()
    (tmp_path / "log.csv").write_text("step,state,action,next_state,cost\n0,0,slow,7,0.3\n")
    ended = surefoot("calibrate", "pump.json", "log.csv")
    assert ended.code == 1
    assert "leave the declared support" in ended.out
    refused(surefoot("calibrate", "pump.json", "nothing.csv"), "nothing.csv")


def test_version(surefoot: Surefoot) -> None:
    assert surefoot("--version") == (0, f"surefoot {sf.__version__}\n", "")


# ---------------------------------------------------------------- looking


def test_worlds(surefoot: Surefoot) -> None:
    ended = surefoot("worlds")
    assert ended.code == 0
    for name in sf.worlds.names():
        assert f"│ {name} " in ended.out
    assert json.loads(surefoot("worlds", "--json").out) == {n: {"shows": w} for n, w in sf.worlds.names().items()}


def test_sizes_of_worlds(surefoot: Surefoot, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sf.worlds.make

    def only_thermal(name: str) -> sf.World:
        if not name.startswith("thermal/"):
            raise InvalidInput("needs an extra")
        return real(name)

    monkeypatch.setattr("surefoot.worlds.make", only_thermal)
    known = json.loads(surefoot("worlds", "--sizes", "--json").out)
    assert known["thermal/testing"]["triplets"] == 149
    assert known["thermal/testing"]["horizon"] == 6
    assert known["figure1"]["missing"] == "needs an extra"
    assert " 149 " in surefoot("worlds", "--sizes").out


def test_agents(surefoot: Surefoot) -> None:
    ended = surefoot("agents")
    assert ended.code == 0
    for name in sf.agents.names():
        assert f"│ {name} " in ended.out
    assert "with probability p at most" in ended.out
    assert "always; it does not look" in ended.out
    assert "│   │" not in ended.out.replace(" ", "")  # everyone says what it may violate


def test_show(surefoot: Surefoot, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = surefoot("show", WORLD, "--no-draw")
    assert ended.code == 0
    world = sf.worlds.make(WORLD)
    best, known = sf.exact.solve(world).value, sf.exact.fallback_value(world)
    assert f"The fallback earns {known:.4g} per episode, the best safe policy {best:.4g}." in ended.out
    assert str(sf.check(world.problem)) in ended.out


def test_show_draws(surefoot: Surefoot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: list[tuple[Any, Path]] = []

    def draw(world: Any, plan: Any = None, path: Any = None, paper: Any = None) -> Any:
        drawn.append((world, path))
        return path

    monkeypatch.setattr("surefoot.reports.pictures.draw.draw", draw)
    assert surefoot("show", WORLD).code == 0
    assert surefoot("show", WORLD, "--out", "here.svg", "--world-option", "bound=0.62").out.endswith(
        "picture: here.svg\n"
    )
    assert [path for _, path in drawn] == [Path("thermal-testing.png"), Path("here.svg")]
    assert drawn[1][0].problem.limits[0].bound == 0.62


def test_show_without_drawing(surefoot: Surefoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = surefoot("show", WORLD)
    assert ended.code == 0
    assert "no picture" in ended.err


def test_check(surefoot: Surefoot, tmp_path: Path) -> None:
    problem = sf.worlds.make(WORLD).problem
    problem.save(tmp_path / "p.json")
    for what in (WORLD, "p.json"):
        ended = surefoot("check", what, "--strict")
        assert (ended.code, ended.out) == (0, f"{sf.check(problem)}\n")
    assert json.loads(surefoot("check", WORLD, "--json").out) == sf.check(problem).to_dict()
    (tmp_path / "p.json").write_text("{")
    refused(surefoot("check", "p.json"), "p.json")


def test_check_exits_with_errors_and_strictly_with_warnings(surefoot: Surefoot, tmp_path: Path) -> None:
    stuck = sf.Problem.from_functions(
        horizon=3,
        start=0,
        actions=lambda h, s: [0],
        successors=lambda h, s, a: [0],
        reward=lambda h, s, a: 0.5,
        cost_features=lambda h, s, a, s2: [1.0],
        fallback=lambda h, s: 0,
        limits=sf.Limit("load", bound=1.0, noise=0.1, norm=1.0),
    )
    stuck.save(tmp_path / "stuck.json")
    ended = surefoot("check", "stuck.json")
    assert ended.code == 1
    assert "ERROR    Learning can never start" in ended.out
    assert surefoot("check", "power/testing").code == 0  # a warning: it cannot start before any data
    assert surefoot("check", "power/testing", "--strict").code == 1


def test_theory(surefoot: Surefoot, tmp_path: Path) -> None:
    ended = surefoot("theory", "thermal/small", "--episodes", 10_000)
    assert ended.code == 0
    paper = sf.check(sf.worlds.make("thermal/small").problem, episodes=10_000).paper
    assert f"{paper.initial_episodes:,}" in ended.out
    assert f"{paper.beta:.6g}" in ended.out
    assert f"The smallest K with K′ ≤ K: {paper.smallest_usable_episodes:,}." in ended.out
    assert "every weight is defined" in ended.out
    sf.worlds.make("thermal/small").problem.save(tmp_path / "p.npz")
    assert surefoot("theory", "p.npz").out == ended.out
    refused(surefoot("theory", "figure1"), "the paper's constants need an anchor at every step")
    refused(surefoot("theory", WORLD, "--failure-probability", 2), "failure_probability must be below 1")


def test_theory_where_weights_are_not_defined(surefoot: Surefoot) -> None:
    ended = surefoot("theory", WORLD, "--world-option", "bound=0.2")
    assert ended.code == 0
    assert ended.out.count("not defined") == 5  # ε₂, ε₃, ε₄ and both bounds
    assert "At K = 10,000 the weights are not all defined: " in ended.out
    assert " still: " in ended.out


# ---------------------------------------------------------------- running


def test_run_and_strict(surefoot: Surefoot, tmp_path: Path) -> None:
    words = ["run", WORLD, "--episodes", 60, "--seeds", "0", "--jobs", 1]
    ended = surefoot(*words, "--out", "safe", "--strict")
    assert ended.code == 0, ended
    assert "every step safe with probability ≥ 0.95" in ended.out
    assert "1 run of 60 episodes → safe" in ended.err
    assert "runs: safe" in ended.err
    ended = surefoot(*words, "--out", "mixed", "--agent", "lsvi-new", "--agent", "ucrl-vtr", "--strict")
    assert ended.code == 1
    assert "--strict: broke a limit: ucrl-vtr" in ended.err
    assert "--strict: without a guarantee: ucrl-vtr" in ended.err
    ended = surefoot(*words, "--out", "void", "--option", "safety_radius_scale=0.9", "--strict")
    assert ended.code == 1
    assert "without a guarantee: lsvi-new" in ended.err
    assert surefoot("resume", "mixed").code == 0
    assert surefoot("resume", "mixed", "--strict").code == 1
    ended = surefoot(*words, "--out", "mixed")
    refused(ended, "there are runs already: mixed", "surefoot resume mixed", "--force")
    assert "episodes →" not in ended.err  # what is refused is not announced
    assert surefoot(*words, "--out", "mixed", "--force").code == 0
    assert sorted(path.name for path in (tmp_path / "mixed/runs").iterdir()) == ["lsvi-new"]


def test_a_file_that_is_no_world_is_refused_before_runs_are_announced(surefoot: Surefoot, tmp_path: Path) -> None:
    sf.worlds.make(WORLD).problem.save(tmp_path / "problem.json")
    ended = surefoot("run", "problem.json")
    refused(ended, "a problem, not a world: problem.json")
    assert len(ended.err.splitlines()) == 1


def test_the_default_directory_is_named_after_the_world(surefoot: Surefoot, tmp_path: Path) -> None:
    assert surefoot("run", WORLD, "--episodes", 5, "--seeds", 0, "--jobs", 1).code == 0
    assert (tmp_path / "runs/thermal-testing/sweep.json").exists()


def test_an_interrupted_run_says_what_is_kept(
    surefoot: Surefoot, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sweep.open_folder(folder)
    (folder / "runs/lsvi-new/seed-0000").rename(folder / "gone")
    (folder / "runs/lsvi-new/seed-0000.checkpoint").write_bytes(b"")
    monkeypatch.setattr(sweep, "resume_sweep", lambda *words, **options: Outcome(found, 5, 6, 15, ("a note",)))
    ended = surefoot("resume", folder)
    assert ended.code == 143
    assert "note: a note" in ended.err
    assert f"5 of 6 runs are finished, 1 saved part way. Resume with: surefoot resume {folder}" in ended.err
    monkeypatch.setattr(sweep, "resume_sweep", failing(KeyboardInterrupt()))
    ended = surefoot("resume", folder)
    assert ended.code == 130
    assert "stopped immediately; resume from the last checkpoints" in ended.err


def test_a_directory_that_is_not_a_run(surefoot: Surefoot, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "other").mkdir()
    for command in ("resume", "report", "export"):
        for name, why in (("nowhere", "no such directory"), ("file", ""), ("other", "it has no sweep.json")):
            refused(surefoot(command, name), "not a directory of runs", name, why)
    refused(surefoot("run", WORLD, "--out", "file"), "a file is where the directory should be: file")
    (tmp_path / "other/thing").write_text("mine")
    refused(surefoot("run", WORLD, "--out", "other", "--force"), "is not empty and holds no runs: other")


def test_a_corrupted_ledger(surefoot: Surefoot, folder: Path) -> None:
    path = folder / "runs/fallback/seed-0004/episodes.parquet"
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    refused(surefoot("resume", folder), str(path), "Remove", "to play this run anew")
    path.write_bytes(data)
    assert surefoot("resume", folder).code == 0


def test_a_full_disk(surefoot: Surefoot, made: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(folder / "runs/lsvi-new/seed-0004")
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_write_parquet", failing(OSError(errno.ENOSPC, "No space left on device")))
        refused(surefoot("resume", folder, "--jobs", 1), "the disk is full")
    assert surefoot("resume", folder, "--jobs", 1).code == 0
    assert contents(folder) == contents(made)


def test_a_read_only_directory(surefoot: Surefoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "mkdir", failing(OSError(errno.EROFS, "Read-only file system", "out")))
    refused(surefoot("run", WORLD, "--out", "out", "--episodes", 5), "the disk is read-only: out")


def test_ablate(surefoot: Surefoot, tmp_path: Path) -> None:
    words = [*EXAMPLES["ablate"], "--episodes", 40]
    ended = surefoot(*words)
    assert ended.code == 0, ended
    rows = {line.split()[1]: line for line in ended.out.splitlines() if line.startswith("│")}
    assert {"all-four", "without-I", "without-II", "without-III", "without-IV"} <= set(rows)
    assert "no safety guarantee" in rows["without-I"]
    assert rows["all-four"].split("│")[5].strip() == "0"
    assert float(rows["without-I"].split("│")[5]) > 0
    assert list(tmp_path.iterdir()) == []
    assert surefoot(*words, "--episodes", 3, "--out", "kept").code == 0
    assert len(list((tmp_path / "kept/runs").iterdir())) == 5


def test_demo_twice_runs_once(surefoot: Surefoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*EXAMPLES["demo"], "--out", "demo"]
    ended = surefoot(*words)
    assert ended.code == 0, ended
    assert (tmp_path / "demo/demo-light.png").exists()
    before = contents(tmp_path / "demo")
    stamp = (tmp_path / "demo/sweep.json").stat().st_mtime_ns
    assert surefoot(*words).code == 0
    assert (tmp_path / "demo/sweep.json").stat().st_mtime_ns == stamp
    assert contents(tmp_path / "demo") == before
    refused(surefoot(*words, "--episodes", 10), "there are runs already")


# ---------------------------------------------------------------- results


def test_export(surefoot: Surefoot, folder: Path, tmp_path: Path) -> None:
    ended = surefoot("export", folder, "--out", "p.json")
    assert ended.code == 0, ended
    assert "lsvi-new, seed 0" in ended.out
    original = folder / "runs/lsvi-new/seed-0000/policy.json"
    assert (tmp_path / "p.json").read_bytes() == original.read_bytes()
    refused(surefoot("export", folder, "--out", "p.json"), "the file exists: p.json")
    ended = surefoot("export", folder, "--out", "p.json", "--agent", "ucrl-vtr", "--seed", 4, "--force")
    assert "ucrl-vtr, seed 4" in ended.out
    assert "no safety guarantee" in ended.out
    ended = surefoot("export", folder / "runs/fallback/seed-0004", "--out", "q.json")
    assert "fallback, seed 4" in ended.out


def test_export_refuses(surefoot: Surefoot, folder: Path, tmp_path: Path) -> None:
    refused(surefoot("export", folder, "--agent", "lsvi"), "no such agent in these runs: 'lsvi'", "lsvi-new")
    refused(surefoot("export", folder, "--seed", 5), "no run with this seed: 5. There are 0, 4.")
    refused(surefoot("export", folder, "--out", "no/where/p.json"), "No such file or directory")
    path = folder / "runs/lsvi-new/seed-0000/policy.json"
    path.write_text("{")
    refused(surefoot("export", folder, "--agent", "lsvi-new"), "not complete, valid JSON", str(path))
    shutil.rmtree(path.parent)
    refused(
        surefoot("export", folder, "--agent", "lsvi-new", "--seed", 0), "the run is not finished", "surefoot resume"
    )
    shutil.rmtree(folder / "runs/lsvi-new")
    refused(surefoot("export", folder), "which agent's policy?", "--agent")
    assert not (tmp_path / "policy.json").exists()


def test_report(surefoot: Surefoot, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(write_page=lambda root: Path(root) / "report.html")
    monkeypatch.setitem(sys.modules, "surefoot.reports.page", fake)
    monkeypatch.setattr(surefoot_report(), "page", fake, raising=False)
    assert surefoot("report", folder) == (0, f"report: {folder}/report.html\n", "")
    shutil.rmtree(folder / "runs")
    refused(surefoot("report", folder), "no run is finished")
