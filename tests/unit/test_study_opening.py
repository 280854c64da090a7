"""A study on disk: reopening, who may write, snapshots, a full disk, a journal that someone has edited."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.audits.audit import Unreadable
from surefoot.errors import (
    InvalidInput,
    OutOfOrder,
    SurefootError,
    UnreadableFile,
    UnwritableFile,
)
from surefoot.study import journal as journals
from surefoot.study import records, snapshots
from tests.drawn_worlds import paper_world
from tests.studies import (
    Calm,
    FullDisk,
    Plant,
    Quick,
    fingerprint,
    go_on,
    kettle,
    lines_of,
    nervous,
    records_of,
    rewritten,
)

# --- reopening ------------------------------------------------------------------------------------------


def test_reopening_anywhere_gives_the_same_state_to_the_bit(opened: Any, world: sf.World, seed: int) -> None:
    study, plant = opened(), Plant(world, seed)
    go_on(study, plant, 6)
    for steps in range(12):
        before = fingerprint(study)
        study.close()
        study = opened()
        assert study.recovered == ()
        assert fingerprint(study) == before
        due = study.next_call
        if due == "begin":
            study.begin("cold")
        elif due == "ask":
            study.ask()
        elif due == "tell":
            offer = study.ask()
            study.tell(offer.ask_id, *plant.answer(steps, offer.step, offer.state, offer.action))
        else:
            study.tell_terminal(0.2)


def test_an_episode_goes_on_after_reopening(opened: Any) -> None:
    study = opened()
    study.begin("s")
    study.tell(study.ask().ask_id, "s", 0.1)
    study.close()
    study = opened()
    with study.resume() as ep:
        assert (ep.number, ep.step, ep.state) == (1, 1, "s")
        ep.ask()
        ep.tell("s", 0.1)
        assert ep.done


def test_the_problem_may_be_left_out_and_must_not_be_another(opened: Any, path: Path, world: sf.World) -> None:
    opened().close()
    assert sf.Study.open(path, files=Quick(), monitor_factory=Calm).problem.digest == world.problem.digest
    other = kettle().problem
    limits = (sf.Limit("limit 0", bound=0.7, noise=0.05, norm=3.0),)
    changed = sf.Problem(other.graph, other.naming, limits, 1.0, False, False)
    with pytest.raises(InvalidInput, match=r"another problem.*limits\[0\].bound: 0\.5 there, 0\.7 here"):
        sf.Study.open(path, changed, files=Quick(), read_only=True)


def test_a_problem_file_that_was_changed_is_refused(opened: Any, path: Path) -> None:
    opened().close()
    text = json.loads((path / "problem.json").read_text())
    text["limits"][0]["bound"] = 0.9
    del text["digest"]
    (path / "problem.json").write_text(json.dumps(text))
    with pytest.raises(UnreadableFile, match="not the one that the study was begun with"):
        opened()


def test_a_problem_file_that_cannot_be_read_is_named(opened: Any, path: Path) -> None:
    opened().close()
    (path / "problem.json").unlink()
    with pytest.raises(UnreadableFile, match=r"the study's problem cannot be read: .*problem\.json"):
        sf.Study.open(path)


def test_changed_options_are_refused_with_the_difference(opened: Any) -> None:
    opened(optimism=0.5, explore=(0.1, 0.2, 0.3)).close()
    opened().close()  # left out: as before
    opened(explore=[0.1, 0.2, 0.3], optimism=0.5).close()
    for options, difference in (
        ({"optimism": 0.75, "explore": (0.1, 0.2, 0.3)}, r"optimism: 0\.5 there, 0\.75 here"),
        ({"optimism": 0.5}, r"explore: \[0\.1, 0\.2, 0\.3\] there, not given here"),
        ({"failure_probability": 0.1}, r"failure_probability: 0\.05 there, 0\.1 here"),
        ({"false_alarm": 0.1}, r"false_alarm: 0\.01 there, 0\.1 here"),
        ({"agent": "lsvi-new-paper"}, r"agent: 'lsvi-new' there, 'lsvi-new-paper' here"),
    ):
        with pytest.raises(InvalidInput, match=f"other options.*{difference}"):
            opened(**options)


def test_bad_options_make_no_study(path: Path, world: sf.World) -> None:
    with pytest.raises(InvalidInput):
        sf.Study.open(path, world.problem, files=Quick(), optimism=-1.0)
    with pytest.raises(InvalidInput, match=r"lsvi-new has no option 'optimizm'\. Did you mean optimism"):
        sf.Study.open(path, world.problem, files=Quick(), optimizm=1.0)
    with pytest.raises(InvalidInput, match=r"path comes first: Problem.*Study\.open\(path, problem\)"):
        sf.Study.open(world.problem, path)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="plain JSON"):
        sf.Study.open(path, world.problem, files=Quick(), slack=object())
    with pytest.raises(InvalidInput, match="no study here"):
        sf.Study.open(path, files=Quick(), read_only=True)
    with pytest.raises(InvalidInput, match="no study here yet"):
        sf.Study.open(path, files=Quick())
    with pytest.raises(InvalidInput, match="needs a Problem"):
        sf.Study.open(path, world)  # type: ignore[arg-type]
    sf.Study.open(path, world.problem, files=Quick(), monitor_factory=Calm)


def test_a_study_takes_either_learner_and_no_other(tmp_path: Path, seed: int) -> None:
    """It is named in the journal, and gone on with under that name."""
    world, options = paper_world(seed)
    path, how = tmp_path / "plant.study", {"files": Quick(), "monitor_factory": Calm}
    for agent in ("ucrl-vtr", "fallback", type("Mine", (sf.LsviNew,), {})):
        with pytest.raises(InvalidInput, match="a study needs a learner that plays certified actions"):
            sf.Study.open(path, world.problem, agent=agent, **how)
    with pytest.raises(InvalidInput, match=r"no such agent: 'lsvi-newer'.*Did you mean lsvi-new"):
        sf.Study.open(path, world.problem, agent="lsvi-newer", **how)
    with pytest.raises(InvalidInput, match=r"not options of the agent.*episodes.*lsvi-new-paper"):
        sf.Study.open(path, world.problem, agent="lsvi-new-paper", **how)
    study = sf.Study.open(path, world.problem, agent=sf.LsviNewPaper, initial_episodes=1, **options, **how)
    go_on(study, Plant(world, seed), 2)
    study.close()
    assert records_of(path)[0]["agent"] == "lsvi-new-paper"
    again = sf.Study.open(path, agent="lsvi-new-paper", **how)
    assert isinstance(again.standing.agent, sf.LsviNewPaper)
    assert again.status()["agent"] == "lsvi-new-paper"
    with pytest.raises(InvalidInput, match="lsvi-new has no option 'episodes'"):
        sf.Study.open(tmp_path / "other", world.problem, episodes=10, **how)


def test_a_new_study_builds_its_agent_once(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, plan = [], sf.LsviNew._make_plan
    monkeypatch.setattr(sf.LsviNew, "_make_plan", lambda self: made.append(self) or plan(self))
    opened()
    assert len(made) == 1


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, world: sf.World) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InvalidInput, match=r"other things.*thesis\.tex"):
        sf.Study.open(tmp_path, world.problem)
    with pytest.raises(InvalidInput, match="a study is a folder"):
        sf.Study.open(tmp_path / "thesis.tex", world.problem)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_folder_in_which_a_study_was_begun_and_no_more_is_taken(path: Path, world: sf.World) -> None:
    """What a crash before the first record leaves, and what systems put into folders."""
    path.mkdir()
    for name in ("problem.json", "problem.npz", "lock", ".DS_Store"):
        (path / name).touch()
    (path / "snapshots").mkdir()
    sf.Study.open(path, world.problem, files=Quick(), monitor_factory=Calm).close()
    assert not (path / "problem.npz").exists()  # of that attempt
    assert [record["kind"] for record in records_of(path)] == ["open"]


def test_other_constants_than_those_of_the_study_are_refused(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from surefoot.plan import confidence

    opened().close()
    monkeypatch.setattr(confidence, "default_ridge", lambda problem: 2.0)
    with pytest.raises(InvalidInput, match=r"other constants.*ridges"):
        opened()


# --- one writer -----------------------------------------------------------------------------------------


def test_a_misspelt_option_is_recognised_also_where_it_is_the_studys_own(path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no option 'failure_probabilty'\. Did you mean failure_probability\?"):
        sf.Study.open(path, kettle().problem, failure_probabilty=0.01)


def test_a_second_writer_is_refused_and_a_reader_is_not(opened: Any, path: Path) -> None:
    study = opened()
    study.begin("s")
    with pytest.raises(OutOfOrder, match=f"open already.*: this process {os.getpid()}"):
        opened()
    reader = opened(read_only=True)
    assert reader.status()["next"] == "ask"
    for call in (reader.ask, reader.begin, reader.abort, lambda: reader.acknowledge("x")):
        with pytest.raises(OutOfOrder, match="reading only"):
            call()
    study.ask()
    assert opened(read_only=True).status()["next"] == "tell"
    study.close()
    with pytest.raises(OutOfOrder, match="closed"):
        study.begin("s")
    opened().close()


def test_a_reader_leaves_an_incomplete_line_alone(opened: Any, path: Path) -> None:
    study = opened()
    study.begin("s")
    with (path / journals.NAME).open("ab") as stream:
        stream.write(b'{"n":2,"ti')
    size = (path / journals.NAME).stat().st_size
    assert opened(read_only=True).status()["records"] == 2
    assert (path / journals.NAME).stat().st_size == size


def test_a_lock_of_a_dead_process_is_taken_over_and_said(opened: Any, path: Path) -> None:
    opened().close()
    study = opened()
    assert study.recovered == ()
    study.close()
    (path / "lock").write_text('{"pid": 4194000, "host": "elsewhere"}')
    (said,) = opened().recovered
    assert said == "the lock was left by process 4194000 on elsewhere, which is gone; it was taken over"


def test_a_study_is_not_used_by_a_forked_process(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = opened()
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with pytest.raises(OutOfOrder, match="opened by another process"):
        study.begin("s")


# --- snapshots ------------------------------------------------------------------------------------------


def test_from_a_snapshot_and_from_the_beginning_the_same_state_comes_to_the_bit(
    opened: Any, path: Path, world: sf.World, seed: int
) -> None:
    options: dict[str, Any] = {"monitor_factory": nervous({70: "limit", 150: "residual"}), "snapshot_every": 20}
    study, plant = opened(**options), Plant(world, seed)
    for upto in (60, 110, 130):
        go_on(study, plant, upto)
        if study.safe_mode:
            study.acknowledge("seen", discard_data=True)
    study.begin("s")
    study.ask()
    before = fingerprint(study)
    assert study.standing.epoch + study.standing.monitor_number >= 1
    study.close()
    assert len(os.listdir(path / "snapshots")) == 3
    study = opened(**options)
    assert fingerprint(study) == before
    study.close()
    shutil.rmtree(path / "snapshots")
    study = opened(**options)
    assert len(study.recovered) == 3
    assert "cannot be read" in study.recovered[0]
    assert fingerprint(study) == before


@pytest.mark.parametrize("damage", ["flipped", "cut", "another", "empty"])
def test_a_damaged_snapshot_is_passed_over_and_said(
    opened: Any, path: Path, world: sf.World, damage: str, seed: int
) -> None:
    study = opened(snapshot_every=20)
    go_on(study, Plant(world, seed), 60)
    before = fingerprint(study)
    study.close()
    *_, older, newest = sorted((path / "snapshots").iterdir())
    data = newest.read_bytes()
    middle = len(data) // 2
    newest.write_bytes(
        {
            "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "cut": data[:middle],
            "another": older.read_bytes(),
            "empty": b"",
        }[damage]
    )
    study = opened()
    (said,) = study.recovered
    assert said == f"snapshot {newest.name} was passed over: it is not what was written"
    assert fingerprint(study) == before


def test_a_snapshot_of_another_problem_is_not_taken(opened: Any, tmp_path: Path) -> None:
    """Not even when the journal names it with the right hash."""
    standing, file = opened().standing, tmp_path / snapshots.name(1)
    file.write_bytes(snapshots.pack(standing, "0" * 64))
    with pytest.raises(UnreadableFile, match="a snapshot of another problem"):
        snapshots.resume_from(file, standing.opened_with, standing)
    file.write_bytes(snapshots.pack(standing, standing.opened_with))
    snapshots.resume_from(file, standing.opened_with, standing)


@pytest.mark.parametrize("file", [snapshots.name(4), "../000000000005.npz", "000000000005.npz ", "lock", 5, None])
def test_a_snapshot_is_looked_for_under_the_name_of_its_record_alone(tmp_path: Path, file: Any) -> None:
    for name in (snapshots.name(4), snapshots.name(5)):
        (tmp_path / name).write_bytes(b"x")
    digest = hashlib.sha256(b"x").hexdigest()
    named = {"n": 5, "file": file, "sha256": digest}
    assert snapshots.matches(tmp_path, named, Quick()) == "its name is not that of its record"
    right = {**named, "file": snapshots.name(5)}
    assert snapshots.matches(tmp_path, right, Quick()) == ""
    assert snapshots.matches(tmp_path, {**right, "sha256": "0" * 64}, Quick()) == "it is not what was written"
    (tmp_path / snapshots.name(5)).unlink()
    assert "it cannot be read" in snapshots.matches(tmp_path, right, Quick())


def test_snapshots_are_so_many_rows_apart(opened: Any, path: Path, world: sf.World) -> None:
    """Of an episode's end, the first at which 20 rows were told since the last one."""
    study = opened(snapshot_every=20)
    go_on(study, Plant(world, 0), 60)
    rows, since = 0, 0
    for record in records_of(path):
        rows += record["kind"] == "tell"
        if record["kind"] == "snapshot":
            assert 20 <= rows - since <= 21  # two rows are an episode
            since = rows
    assert rows - since < 20
    assert study.standing.rows == rows == 120


def test_processes_that_come_and_go_leave_snapshots_too(opened: Any, path: Path, world: sf.World) -> None:
    plant = Plant(world, 0)
    for episode in range(1, 13):
        study = opened(snapshot_every=5)
        go_on(study, plant, episode)
        study.close()
    assert 2 <= len(os.listdir(path / "snapshots")) <= 3
    assert sum(record["kind"] == "snapshot" for record in records_of(path)) >= 3


def test_a_large_import_is_not_replayed_for_ever(opened: Any, path: Path) -> None:
    study = opened(snapshot_every=100)
    waits = [{"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": i / 1e4} for i in range(150)]
    study.import_log(waits)
    assert len(os.listdir(path / "snapshots")) == 1
    before = fingerprint(study)
    study.close()
    assert fingerprint(opened()) == before


def test_a_reader_is_not_confused_by_a_writer(opened: Any, path: Path, world: sf.World) -> None:
    """A snapshot that appears while the reader is at work is no sign of lost records."""
    study = opened(snapshot_every=5)
    go_on(study, Plant(world, 0), 4)

    class Meanwhile(Quick):
        def read(self, path: Path) -> Any:
            data = super().read(path)
            go_on(study, Plant(world, 0), study.standing.episodes + 6)
            return data

    assert opened(read_only=True, files=Meanwhile()).status()["episodes"] >= 4


def test_numbers_too_large_to_reckon_with_are_an_alarm_and_the_study_lives_on(path: Path, world: sf.World) -> None:
    study = sf.Study.open(path, world.problem, files=Quick())
    with np.errstate(all="ignore"):
        for k in range(8):
            with study.episode("s") as ep:
                while not ep.done:
                    ep.ask()
                    ep.tell("s", 1e308 if k < 4 else 0.1)
            if study.safe_mode and k in (2, 5):
                study.acknowledge("seen", discard_data=True)
        study.close()
        study = sf.Study.open(path, files=Quick())
    if study.safe_mode:
        study.acknowledge("wrong units", discard_data=True)
    with study.episode("s") as ep:
        assert ep.ask().certificate["safe_mode"] is False


def test_a_journal_shorter_than_its_snapshots_has_lost_what_was_acknowledged(
    opened: Any, path: Path, world: sf.World
) -> None:
    study = opened(snapshot_every=10)
    go_on(study, Plant(world, 0), 30)
    study.close()
    lines, newest = lines_of(path), max(int(file.stem) for file in (path / "snapshots").iterdir())
    (path / journals.NAME).write_bytes(b"".join(lines[:newest]))  # a crash between a snapshot and its record
    with opened() as cut:
        assert cut.status()["records"] == newest
    (path / journals.NAME).write_bytes(b"".join(lines[: newest - 1]))
    with pytest.raises(UnreadableFile, match=f"there is a snapshot of {newest}"):
        opened()
    (path / journals.NAME).write_bytes(b"".join(lines[:20]))
    with pytest.raises(UnreadableFile, match=r"records that were acknowledged are gone.*20 records"):
        opened()
    shutil.rmtree(path / "snapshots")
    assert opened().status()["records"] == 20


def test_a_full_disk_costs_a_snapshot_and_nothing_else(opened: Any, path: Path, world: sf.World) -> None:
    class NoRoom(Quick):
        def replace(self, path: Path, content: Any) -> None:
            if path.parent.name == "snapshots":
                raise OSError(28, "No space left on device")
            super().replace(path, content)

    study = opened(snapshot_every=10, files=NoRoom())
    go_on(study, Plant(world, 0), 30)
    before = fingerprint(study)
    study.close()
    assert list((path / "snapshots").iterdir()) == []
    assert fingerprint(opened()) == before


# --- a full disk ----------------------------------------------------------------------------------------


def test_a_full_disk_refuses_the_call_and_loses_nothing(path: Path, world: sf.World, seed: int) -> None:
    """Room for a few bytes at a time: every call fails now and then, and the study ends where it would have ended."""
    plant, rng = Plant(world, seed), np.random.default_rng(seed)
    sf.Study.open(path, world.problem, files=Quick(), monitor_factory=Calm).close()
    disk = FullDisk(0)
    study = sf.Study.open(path, files=disk, monitor_factory=Calm)
    failed = 0
    for _ in range(1000):
        try:
            go_on(study, plant, 12)
            break
        except UnwritableFile as error:
            failed += "No space left" in str(error)
            disk.room += int(rng.integers(1, 2000))
            if failed % 5 == 0:
                before = fingerprint(study)
                study.close()
                study = sf.Study.open(path, files=disk, monitor_factory=Calm)
                assert fingerprint(study) == before
    assert failed > 10
    quiet = sf.Study.open(path.parent / "quiet", world.problem, files=Quick(), monitor_factory=Calm)
    go_on(quiet, plant, 12)
    assert fingerprint(quiet) == fingerprint(study)


def test_an_alarm_is_written_when_there_is_room_again(path: Path, world: sf.World) -> None:
    sf.Study.open(path, world.problem, files=Quick(), monitor_factory=Calm).close()
    disk = FullDisk(100_000)
    study = sf.Study.open(path, files=disk, monitor_factory=Calm)
    study.begin("s")
    offer = study.ask()
    disk.room = 500  # enough for the tell, not for the alarm
    assert study.tell(offer.ask_id, "s", float("nan")).safe_mode
    assert records_of(path)[-1]["kind"] == "tell"
    with pytest.raises(UnwritableFile):
        study.ask()
    disk.room = 100_000
    assert study.ask().certificate["safe_mode"]
    assert [r["kind"] for r in records_of(path)][-2:] == ["alarm", "ask"]


# --- a journal that someone has edited ------------------------------------------------------------------


def test_a_forged_record_that_does_not_fit_is_refused_with_its_place(opened: Any, path: Path) -> None:
    study = opened()
    with study.episode("s") as ep:
        ep.ask()
        ep.tell("s", 0.1)
        ep.abort()
    study.close()
    true = records_of(path)
    for n, change in (
        (1, {"start": "nowhere"}),
        (1, {"episode": 2}),
        (2, {"step": 1}),
        (3, {"ask": "2-00000000"}),
        (3, {"next_state": "melt"}),
        (3, {"cost": [1, 2]}),
        (3, {"ends": True}),
        (4, {"episode": "one"}),
    ):
        forged = [dict(record) for record in true]
        forged[n].update(change)
        rewritten(path, forged)
        with pytest.raises(UnreadableFile, match=f"line {n + 1}, byte"):
            opened()
    rewritten(path, [*true[:3], *true[4:]])  # a tell is dropped: the abort still fits, the audit must see it
    assert opened().status()["tells"] == 0


def test_an_answer_or_an_import_that_does_not_fit_is_refused_with_its_place(opened: Any, path: Path) -> None:
    factory = nervous({1: "residual"})
    study = opened(monitor_factory=factory)
    with study.episode("s") as ep:
        ep.ask()
        ep.tell("s", 0.1)
        ep.abort()
    study.acknowledge("another plant", discard_data=True)
    row = {"step": 0, "state": "s", "action": "wait", "next_state": "s", "cost": 0.11}
    study.import_log([{**row, "time": time.time() + 9}])
    study.close()
    true = records_of(path)
    kinds = ["open", "begin", "ask", "tell", "alarm", "abort", "acknowledge", "import", "alarm"]
    assert [record["kind"] for record in true] == kinds
    started, asked, told, abort, answer, log = (true[n] for n in (1, 2, 3, 5, 6, 7))
    wrong: list[tuple[int, dict[str, Any]]] = [
        *((6, {"epoch": epoch}) for epoch in (0, 2)),
        *((6, {"monitor": monitor}) for monitor in (0, 2)),
        *((6, {"changes": changes}) for changes in ([], ["larger noise"])),
        (6, {"discard": False}),
        (6, {"problem": "0" * 64}),
        *((7, {"since": since}) for since in (None, answer["time"])),
        (7, {"repeated": 1}),
    ]
    forgeries = [(n, [*true[:n], {**true[n], **change}, *true[n + 1 :]]) for n, change in wrong]
    forgeries += [
        (2, [*true[:2], started]),  # an episode inside another
        (3, [*true[:3], asked]),  # two offers at once
        (4, [*true[:4], told]),  # the same tell again
        (5, [*true[:5], answer]),  # inside an episode
        (6, [*true[:6], abort]),  # of an episode that is over
        (6, [*true[:6], log]),  # with an alarm that nobody has answered
        (7, [*true[:7], answer]),  # to no alarm
    ]
    for n, forged in forgeries:
        rewritten(path, forged)
        with pytest.raises(UnreadableFile, match=f"line {n + 1}, byte"):
            opened(monitor_factory=factory)
    rewritten(path, true)
    assert opened(monitor_factory=factory).status()["records"] == len(true)


def test_a_problem_is_kept_as_text_while_it_is_small(
    tmp_path: Path, world: sf.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = world.problem.graph.layers
    entries = sum(y.cost_features.size + y.transition_features.size + 2 * y.n_edges for y in layers)
    for room, kind, other in ((entries, "json", "npz"), (entries - 1, "npz", "json")):
        monkeypatch.setattr("surefoot.model.files._JSON_ENTRIES", room)
        sf.Study.open(tmp_path / kind, world.problem, files=Quick(), monitor_factory=Calm).close()
        assert (tmp_path / kind / f"problem.{kind}").exists()
        assert not (tmp_path / kind / f"problem.{other}").exists()
        sf.Study.open(tmp_path / kind, files=Quick(), monitor_factory=Calm).close()


def test_the_first_record_is_the_opening(opened: Any, path: Path) -> None:
    opened().close()
    (record,) = records_of(path)
    for version in (records.VERSION - 1, records.VERSION + 1):
        rewritten(path, [{**record, "version": version}])
        with pytest.raises(UnreadableFile, match="another version"):
            opened()
    rewritten(path, [{**record, "version": "1"}])
    with pytest.raises(UnreadableFile, match="another version"):
        opened()
    rewritten(path, [{**record, "problem_file": "../secret.json"}])
    with pytest.raises(SurefootError, match="not the name of a problem's file"):
        opened()


def test_a_misspelt_name_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no study here yet: '.*pumpp\.study'\. Give the problem"):
        sf.Study.open(tmp_path / "pumpp.study")
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_study_to_audit(tmp_path: Path) -> None:
    (tmp_path / "month.csv").write_text("step,state\n")
    with pytest.raises(Unreadable, match=r"there is no study here: .*month\.csv is a file"):
        sf.audit(tmp_path / "month.csv")
