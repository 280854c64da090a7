"""Sweeps on clusters: the bytes of the local pool, whatever dies on the way."""

from __future__ import annotations

import errno
import gc
import importlib.util
import os
import shutil
import signal
import sys
import threading
import time
import types
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from surefoot import cli, clusters
from surefoot.errors import InvalidInput, SurefootError, UnreadableFile, UnwritableFile
from surefoot.plan.blockwise.team import Team
from surefoot.runs import progress
from surefoot.storage.disk import FileLayer
from surefoot.sweeps import sweep
from surefoot.sweeps import task as play
from surefoot.sweeps.engines import away, engine, local, on_dask
from surefoot.sweeps.sweep import Contender, Spec
from tests import engines as made
from tests.sweeps import WORLD, command, contents, left_over, small, wait_for, wait_until
from tests.unit.test_sweep import LONG, stopping_after

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(scope="module", autouse=True)
def _sockets() -> Iterator[None]:
    """Dask leaves sockets to the dead among its workers unclosed."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with made.cluster() as found:
        yield found


@pytest.fixture(scope="module")
def on(cluster: Any) -> str:
    return str(cluster.scheduler_address)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole") / "sweep"
    sweep.sweep(small(), root, jobs=1)
    return root


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("many") / "sweep"
    sweep.sweep(made.many(), root, jobs=1)
    return root


# ---------------------------------------------------------------- the same bytes


def test_dask_gives_the_same_bytes_and_shows_how_it_goes(
    on: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    outcome = sweep.sweep(small(), tmp_path / "s", on=on, progress=True)
    assert (outcome.finished, outcome.lost) == (6, ())
    assert contents(tmp_path / "s") == contents(whole)
    assert left_over(tmp_path / "s") == []
    assert set(outcome.folder.times()) == {place.key for place in outcome.folder.places()}
    assert "all episodes" in capsys.readouterr().err


def test_a_run_of_many_stints(on: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every go ends after some looks, comes home, and is gone on with by another worker."""
    stints = list[bool]()
    real = away.write_back
    monkeypatch.setattr(away, "write_back", lambda place, files, done: stints.append(done) or real(place, files, done))
    with made.with_plugin(on, made.ShortStints()):
        outcome = sweep.sweep(made.many(1, 300), tmp_path / "s", on=on, checkpoint_seconds=0)
    assert outcome.finished == 1
    assert stints.count(False) > 1
    assert stints.count(True) == 1
    sweep.sweep(made.many(1, 300), tmp_path / "here", jobs=1)
    assert contents(tmp_path / "s") == contents(tmp_path / "here")
    assert left_over(tmp_path / "s") == []
    for times in outcome.folder.times().values():
        assert [mark[0] for mark in times["marks"]] == sorted(mark[0] for mark in times["marks"])


if importlib.util.find_spec("joblib"):  # of the extra "test"; without it there is no such test

    def test_joblib_gives_the_same_bytes(whole: Path, tmp_path: Path) -> None:
        assert sweep.sweep(small(), tmp_path / "s", on="joblib", jobs=2).finished == 6
        assert contents(tmp_path / "s") == contents(whole)
        assert left_over(tmp_path / "s") == []


def test_what_was_begun_here_is_finished_on_a_cluster(
    on: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(play._Watch, "__call__", stopping_after(20))
        assert sweep.sweep(small(), tmp_path / "s", jobs=1, checkpoint_seconds=0).interrupted
    assert sweep.resume_sweep(tmp_path / "s", on=on).finished == 6
    assert contents(tmp_path / "s") == contents(whole)


def test_a_world_of_one_s_own_travels(on: str, tmp_path: Path) -> None:
    spec = Spec(sf.worlds.make(WORLD), [Contender("lsvi-new")], (0, 1), 60)
    sweep.sweep(spec, tmp_path / "here", jobs=1)
    assert sweep.sweep(spec, tmp_path / "there", on=on).finished == 2
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_workers_use_one_thread(cluster: Any) -> None:
    """Dask sets those of BLAS; numba's we set ourselves."""
    import distributed

    def threads() -> tuple[int, int, str]:
        import numba

        from surefoot.threads import usable_threads

        return usable_threads(), numba.config.NUMBA_NUM_THREADS, os.environ["OPENBLAS_NUM_THREADS"]

    with distributed.Client(cluster) as client:
        assert client.submit(threads).result() == (1, 1, "1")


def test_plans_on_a_cluster_change_no_byte(on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One option of the command line, which is written nowhere."""
    asked = list[str]()

    def ask(self: Team, question: str, words: Any) -> list[Any]:
        asked.append(question)
        return asking(self, question, words)

    asking = Team.ask
    monkeypatch.setattr(Team, "ask", ask)
    spec = Spec(WORLD, [Contender("lsvi-new"), Contender("fallback")], [3], 15)
    sweep.sweep(spec, tmp_path / "here", jobs=1)
    assert not asked
    words = ["run", WORLD, "--agent", "lsvi-new", "--agent", "fallback", "--seeds", "3", "--episodes", "15"]
    monkeypatch.setattr(sys, "argv", ["surefoot", *words, "--plan-on", on, "--out", str(tmp_path / "there")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    assert asked.count("look") > 2
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


@pytest.mark.parametrize(
    ("given", "agents", "words"),
    [
        ({"on": "dask"}, ["lsvi-new"], r"played here, one after the other: on='dask'"),
        ({"jobs": 2}, ["lsvi-new"], r"played here, one after the other: jobs=2"),
        ({}, ["fallback"], r"none of the agents makes plans on a cluster: fallback"),
        ({}, ["lsvi-new", "lsvi-new-paper"], r"no such cluster: 'daks'"),
    ],
)
def test_plans_on_a_cluster_that_cannot_be(given: Any, agents: list[str], words: str, tmp_path: Path) -> None:
    spec = Spec(WORLD, [Contender(name) for name in agents], [0], 10)
    with pytest.raises(InvalidInput, match=words):
        sweep.sweep(spec, tmp_path / "out", plan_on="daks", **given)
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- what dies


def test_a_worker_killed_at_random(many: Path, cluster: Any, seed: int, tmp_path: Path) -> None:
    """A small one of ``make soak``: nothing lost, nothing twice, the same bytes."""
    root = tmp_path / "s"
    with made.killing(cluster, seed, most=1, pause=0.5, root=root) as killed:
        outcome = sweep.sweep(
            made.many(), root, on=on_dask.Dask(clusters.of_cluster(cluster, 2)), checkpoint_seconds=0.5
        )
    assert killed
    assert not outcome.interrupted
    assert contents(root) == contents(many)
    assert left_over(root) == []


def test_a_run_that_kills_its_worker_is_given_up_and_the_rest_goes_on(
    many: Path, on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made.with_plugin(on, made.Deadly()):
        outcomes = [sweep.sweep(made.many(), tmp_path / "dask", on=on)]
    with monkeypatch.context() as patch:
        patch.setattr(local.spawned, "work", made.deadly_work)
        patch.setattr(local, "MOST_DEATHS", 2)
        outcomes.append(sweep.sweep(made.many(), tmp_path / "local", jobs=2))
    for outcome, deaths in zip(outcomes, (3, 2), strict=True):
        assert (outcome.finished, outcome.total, outcome.signal) == (4, 5, 0)
        (lost,) = outcome.lost
        assert f"lsvi-new/seed-0003: its worker died {deaths} times" in lost
    assert "exit code 7" in outcomes[1].lost[0]
    for name in ("dask", "local"):
        assert sweep.resume_sweep(tmp_path / name, jobs=1).finished == 5
        assert contents(tmp_path / name) == contents(many)


def test_the_scheduler_is_killed_and_comes_back(many: Path, tmp_path: Path) -> None:
    root, separate = tmp_path / "s", made.Separate(tmp_path)
    separate.start()

    def crash() -> None:
        wait_until(lambda: any(root.glob("runs/*/seed-????")))
        separate.kill()
        time.sleep(1.0)
        separate.start()

    thread = threading.Thread(target=crash)
    thread.start()
    try:
        outcome = sweep.sweep(made.many(), root, on=separate.address, checkpoint_seconds=0.2)
    finally:
        thread.join()
        separate.kill()
    assert (outcome.finished, outcome.lost) == (5, ())
    assert contents(root) == contents(many)


def test_a_scheduler_that_does_not_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CONNECT", 0.3)
    with pytest.raises(SurefootError, match=r"the cluster does not answer.*tcp://127.0.0.1:9.*surefoot resume"):
        sweep.sweep(small(), tmp_path / "s", on="tcp://127.0.0.1:9")
    assert sweep.resume_sweep(tmp_path / "s", jobs=1).finished == 6


@pytest.mark.parametrize("call", ["fsync", "move"])
def test_a_full_disk_at_home(call: str, on: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = getattr(FileLayer, call), [5]

    def fails(self: FileLayer, *words: Any) -> None:
        left[0] -= "runs" in str(words[0]) or call == "fsync"
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, *words)

    with monkeypatch.context() as patch:
        patch.setattr(FileLayer, call, fails)
        with pytest.raises(UnwritableFile, match="the disk is full"):
            sweep.sweep(small(), tmp_path / "s", on=on)
    outcome = sweep.resume_sweep(tmp_path / "s", on=on)
    assert outcome.finished == 6
    assert contents(tmp_path / "s") == contents(whole)
    assert left_over(tmp_path / "s") == []


def test_an_error_in_a_run_comes_home(on: str, copied: Path) -> None:
    shutil.rmtree(copied / "runs/blind/seed-0003")
    (copied / "runs/blind/seed-0003.checkpoint").write_bytes(b"not one")
    with pytest.raises(UnreadableFile, match="Delete it") as error:
        sweep.resume_sweep(copied, on=on)
    assert "In a worker process" in error.value.__notes__[0]


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "copy")
    return tmp_path / "copy"


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    """It reaches the whole group, workers too; what came home is finished here. (Enough runs to be in the middle.)"""
    root = tmp_path / "s"
    words = [
        *("run", LONG.world, "--agent", "lsvi-new", "--option", "replan_growth=0.03"),
        *("--episodes", 1200, "--seeds", "0:3", "--out", root, "--on", "dask", "--jobs", 1),
        *("--checkpoint-seconds", 1),
    ]
    process = command(*words)
    wait_for(process, lambda: any(root.glob("runs/*/*")))
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGINT, (out, err)
    assert "Traceback" not in err
    assert sweep.resume_sweep(root, jobs=1).finished == 3
    sweep.sweep(replace(LONG, agents=LONG.agents[:1], seeds=(0, 1, 2), episodes=1200), tmp_path / "long", jobs=1)
    assert contents(root) == contents(tmp_path / "long")
    assert left_over(root) == []


def test_ctrl_c_reaches_runs_under_way(on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their go would take ten minutes; they bring home what they have when they are told to."""
    shown = dict[str, int]()
    real = progress.Display.advance

    def advance(self: Any, name: str, done: int, headline: str) -> None:
        real(self, name, done, headline)
        if not shown:
            os.kill(os.getpid(), signal.SIGINT)
        shown[name] = done

    monkeypatch.setattr(progress.Display, "advance", advance)
    began = time.monotonic()
    outcome = sweep.sweep(made.many(3, 2_000_000), tmp_path / "s", on=on, checkpoint_seconds=600)
    assert time.monotonic() - began < on_dask.GRACE
    assert (outcome.finished, outcome.signal, outcome.lost) == (0, signal.SIGINT, ())
    begun = [place.key for place in outcome.folder.places() if place.begun]
    assert begun
    assert set(shown) <= set(begun) == set(outcome.folder.times())


# ---------------------------------------------------------------- what is asked for


@pytest.mark.parametrize(
    ("on", "jobs", "words"),
    [
        ("dusk", None, "no such engine: 'dusk'. Did you mean dask"),
        ("tcp://host:1", 3, "decided by the cluster: tcp://host:1: jobs=3"),
        ("nowhere.toml", None, "cannot be read: nowhere.toml"),
        ("dask", 0, "jobs must be a whole number, at least 1: 0"),
    ],
)
def test_an_engine_that_is_none(on: str, jobs: int | None, words: str, tmp_path: Path) -> None:
    with pytest.raises(SurefootError, match=words):
        sweep.sweep(small(), tmp_path / "s", on=on, jobs=jobs)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("package", ["distributed", "joblib"])
def test_a_package_that_is_missing(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidInput, match=r"needs \w+\. Install it with: pip install"):
        engine.engine_of("dask" if package == "distributed" else package, 2)


def test_a_batch_system(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """dask-jobqueue is given what the file says, and one thread for every process; here its place is taken."""
    import distributed

    asked: dict[str, Any] = {}

    class SLURMCluster(distributed.LocalCluster):  # type: ignore[misc, unused-ignore]
        def __init__(self, **options: Any) -> None:
            asked.update(options)
            super().__init__(n_workers=0, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0")

    monkeypatch.setitem(sys.modules, "dask_jobqueue", types.SimpleNamespace(SLURMCluster=SLURMCluster))
    path = tmp_path / "slurm.toml"
    path.write_text('cluster = "slurm"\nworkers = 2\n[options]\nqueue = "short"\ncores = 16\nmemory = "32GB"\n')
    spec = small(seeds=[0], agents=[Contender("lsvi-new"), Contender("ucrl-vtr")])
    assert sweep.sweep(spec, tmp_path / "s", on=str(path)).finished == 2
    assert asked["processes"] == asked["cores"] == 16
    assert "export NUMBA_NUM_THREADS=1" in asked["job_script_prologue"]
    for label in ("lsvi-new", "ucrl-vtr"):
        there, here = (root / f"runs/{label}/seed-0000/manifest.json" for root in (tmp_path / "s", whole))
        assert there.read_bytes() == here.read_bytes()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cluster = 3", "cluster names no batch system: .*: 3"),
        ('cluster = "slurn"\nworkers = 1', "names no batch system.*Did you mean slurm"),
        ('cluster = "slurm"', "workers must be a whole number, at least 1"),
        ('cluster = "slurm"\nworker = 3', "unknown key.*'worker'. Did you mean workers"),
        ('cluster = "slurm"\nworkers = 1\noptions = 3', "options must be a table"),
        ("cluster = ", "not valid TOML"),
    ],
)
def test_a_file_that_describes_no_cluster(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(SurefootError, match=words):
        clusters.read_file(path)


def test_workers_of_another_version_are_refused(whole: Path) -> None:
    manifest = sweep.open_folder(whole).manifest
    assert away.world_of(manifest, None).digest == manifest["world"]["digest"]
    with pytest.raises(InvalidInput, match="another version of surefoot"):
        away.world_of({**manifest, "versions": {"surefoot": "0.0.0"}}, None)
