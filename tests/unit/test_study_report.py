"""The page about a study says what its journal says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import surefoot as sf
from surefoot.cli import app
from surefoot.report import study as page


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    world = sf.worlds.make("thermal/testing")
    problem, plant = world.problem, world.sampler(seed=0)
    with sf.Study.open(tmp_path / "machine.study", problem) as study:
        for k in range(4):
            with study.episode() as episode:
                while not episode.done:
                    offer = episode.ask()
                    edge = plant.step(offer.layer, problem.pair_index(offer.layer, offer.state, offer.action))
                    state = problem.states(offer.layer + 1)[int(problem.graph.layers[offer.layer].successor[edge])]
                    episode.tell(state, float(plant.measure(offer.layer, edge)[0]))
                    if k == 2:
                        break
    return tmp_path / "machine.study"


def test_the_history_is_that_of_the_journal(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    history = page.read(journal, 1)
    costs: dict[int, list[float]] = {}
    episode = 0
    for line in journal.read_text("utf-8").splitlines():
        record = json.loads(line)
        episode = record["episode"] if record["kind"] == "begin" else episode
        if record["kind"] == "tell":
            costs.setdefault(episode, []).extend(record["cost"])
    assert history.episodes == [1, 2, 3, 4]
    assert [row[0] for row in history.highest] == [max(costs[k]) for k in (1, 2, 3, 4)]
    assert all(row[0] <= 0.6 + 1e-12 or share < 1 for row, share in zip(history.promised, history.learned, strict=True))
    assert [kind for _, kind, _ in history.events] == ["abort"]


def test_the_command_writes_a_page_that_stands_alone(folder: Path) -> None:
    done = CliRunner().invoke(app, ["study", "report", str(folder)])
    assert done.exit_code == 0, done.output
    text = (folder / "report.html").read_text("utf-8")
    assert "Clean." in text
    assert "the block was left before the episode" in text
    assert "<svg" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "src=" not in text


def test_a_tampered_journal_is_told(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    lines = journal.read_text("utf-8").splitlines()
    number = next(i for i, line in enumerate(lines) if '"kind":"tell"' in line)
    lines[number] = lines[number].replace('"cost":[', '"cost":[1')
    journal.write_text("\n".join(lines) + "\n", "utf-8")
    done = CliRunner().invoke(app, ["study", "report", str(folder)])
    assert done.exit_code != 0 or "exceptions" in (folder / "report.html").read_text("utf-8")


def test_a_study_without_a_word_has_a_page_too(tmp_path: Path) -> None:
    with sf.Study.open(tmp_path / "empty.study", sf.worlds.make("figure1").problem):
        pass
    assert "Nothing was told yet" in page.write(tmp_path / "empty.study").read_text("utf-8")
