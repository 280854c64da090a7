"""The page about a study says what its journal says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

import pytest
from typer.testing import CliRunner

import surefoot as sf
from surefoot.cli import app
from surefoot.reports import study_page as page
from surefoot.reports.charts import Chart, Curve
from surefoot.reports.pictures.svg import LETTER, line_chart
from surefoot.reports.study_history import History
from surefoot.reports.study_parts import following
from surefoot.reports.wording import Wording
from tests.forgery import Record, forge
from tests.studies import Calm, Plant, Quick, go_on, kettle
from tests.unit.test_plant import tank


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    world = sf.worlds.make("thermal/testing")
    problem, plant = world.problem, world.sampler(seed=0)
    with sf.Study.open(tmp_path / "machine.study", problem) as study:
        for k in range(4):
            with study.episode() as episode:
                while not episode.done:
                    offer = episode.ask()
                    edge = plant.step(offer.step, problem.pair_index(offer.step, offer.state, offer.action))
                    state = problem.states(offer.step + 1)[int(problem.graph.layers[offer.step].successor[edge])]
                    episode.tell(state, float(plant.measure(offer.step, edge)[0]))
                    if k == 2:
                        break
    return tmp_path / "machine.study"


def history_of(folder: Path) -> History:
    return History(sf.Problem.load(folder / "problem.json")).read(folder / "journal.jsonl")


def test_the_history_is_that_of_the_journal(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    history = history_of(folder)
    costs: dict[int, list[float]] = {}
    episode = 0
    for line in journal.read_text("utf-8").splitlines():
        record = json.loads(line)
        episode = record["episode"] if record["kind"] == "begin" else episode
        if record["kind"] == "tell":
            costs.setdefault(episode, []).extend(record["cost"])
    courses = history.courses
    assert [course.number for course in courses] == [1, 2, 3, 4]
    assert [course.highest[0] for course in courses] == [max(costs[k]) for k in (1, 2, 3, 4)]
    assert all(course.promised[0] <= 0.6 + 1e-12 or course.own < course.asks for course in courses)
    assert [course.ended for course in courses] == [True, True, False, True]
    assert [event.kind for event in history.events] == ["abort"]


def test_rewards_are_those_of_what_was_played(folder: Path) -> None:
    problem = sf.worlds.make("thermal/testing").problem
    history = history_of(folder)
    totals: dict[int, float] = {}
    episode = 0
    for line in (folder / "journal.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        episode = record["episode"] if record["kind"] == "begin" else episode
        if record["kind"] == "tell":
            h = record["step"]
            pair = problem.pair_index(h, record["state"], record["action"])
            totals[episode] = totals.get(episode, 0.0) + float(problem.graph.layers[h].reward[pair])
    assert [course.reward for course in history.courses] == pytest.approx([totals[k] for k in (1, 2, 3, 4)])


def test_a_history_reads_on_where_it_left_off(folder: Path, tmp_path: Path) -> None:
    journal, part = folder / "journal.jsonl", tmp_path / "part.jsonl"
    lines, history = journal.read_bytes().splitlines(keepends=True), History(sf.Problem.load(folder / "problem.json"))
    for line in lines:  # each in two writes: a reader may come in between
        for piece in (line[:40], line[40:]):
            with part.open("ab") as file:
                file.write(piece)
            history.read(part)
    assert history.all == history_of(folder).all


def test_the_page_answers_three_questions(folder: Path) -> None:
    text = page.write_study_page(folder).read_text("utf-8")
    for question in ("Is it safe?", "Is it better?", "What next?"):
        assert question in text
    assert "earned" in text
    assert "over</td>" in text  # what is closest to being certified, and by how much it misses
    assert '"truth":false' in text  # the explorer, without a truth that nobody knows


def test_what_exceeds_a_limit_by_rounding_alone_is_said_to_be_on_it() -> None:
    """Prior and bound are the same number; 4.9e−15 over it, printed as 0.9 with a limit of 0.9, would help nobody."""
    tight = sf.Limit("foam", bound=0.9, noise=0.05, prior=[(0.0, 0.9)])
    plan = sf.LsviNew(tank(measures=lambda h, x, u: [float(u > 0.1)], limits=[tight]).problem).plan
    text = following(plan, Wording())
    assert ">on the limit</td>" in text
    assert "foam may be just over 0.9 towards 5; the limit is 0.9" in text
    assert "foam may be just over 0.9, and the limit is 0.9" in str(plan.why(0, 4, 2))


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
    assert "Nothing has been told yet" in page.write_study_page(tmp_path / "empty.study").read_text("utf-8")


def named(path: Path, limit: str, reason: str = "no reason") -> Path:
    """A short study of the kettle whose limit has this name, with an abort for this reason."""
    known = kettle().problem
    limits = (sf.Limit(limit, bound=0.5, noise=0.05, norm=3.0),)
    problem = sf.Problem(known.graph, known.naming, limits, 1.0, False, False)
    with sf.Study.open(path, problem, files=Quick(), monitor_factory=Calm) as study:
        go_on(study, Plant(kettle(), 0), 3)
        study.begin("s")
        study.abort(reason)
    return path


@pytest.mark.parametrize("name", ["cost in $ per $", "$x^", r"\$ and $\frac{", "<b>&amp;", "a\x00b\x1b"])
def test_every_name_has_a_page(tmp_path: Path, name: str) -> None:
    """Dollar signs are no formulas."""
    text = page.write_study_page(named(tmp_path / "s", name)).read_text("utf-8")
    assert f"Limit: {escape(name)}" in text
    drawing = re.sub("<!--.*?-->", "", text[text.index("<svg") : text.index("</svg>")], flags=re.DOTALL)
    assert escape(name if name.isprintable() else repr(name)[1:-1]) in drawing


def test_half_a_character_is_written_as_its_number(tmp_path: Path) -> None:
    text = page.write_study_page(named(tmp_path / "s", "heat", "half \ud800 a character")).read_text("utf-8")
    assert r"half \ud800 a character" in text


def test_a_folder_whose_name_is_no_text_has_a_page(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.study"))
    try:
        folder.mkdir()
    except OSError:
        pytest.fail("the file system of the tests takes UTF-8 alone")
    named(folder, "heat")
    assert r"\udcff.study" in page.write_study_page(folder).read_text("utf-8")
    command = [sys.executable, "-m", "surefoot", "study", "report", str(folder)]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    assert done.returncode == 0, done.stderr
    assert rb"\udcff.study" in done.stdout


def test_a_torn_tail_is_left_out_and_said(folder: Path) -> None:
    journal = folder / "journal.jsonl"
    whole = history_of(folder)
    with journal.open("ab") as stream:
        stream.write(b'{"n":%d,"time":"20' % len(journal.read_bytes().splitlines()))
    size = journal.stat().st_size
    assert history_of(folder).all == whole.all
    done = CliRunner().invoke(app, ["study", "report", str(folder)])
    assert done.exit_code == 0, done.output
    text = (folder / "report.html").read_text("utf-8")
    assert "was not written to its end and never acknowledged" in text
    assert "Clean." in text
    assert journal.stat().st_size == size


def test_numbers_without_end_have_a_page(tmp_path: Path) -> None:
    """An upper bound that is not known is null in a certificate; a cost may be as large as a number can be."""
    with sf.Study.open(tmp_path / "s", kettle().problem, files=Quick()) as study:
        for cost in (1e308, -1e308, 0.1):
            study.begin("s")
            study.tell(study.ask().ask_id, "s", cost)
            study.abort()
    assert "<svg" in page.write_study_page(tmp_path / "s").read_text("utf-8")

    def unknown(records: list[Record]) -> None:
        records[2]["certificate"]["successors"][0]["upper"] = [None]

    forge(tmp_path / "s", unknown)
    assert history_of(tmp_path / "s").courses[0].promised == [float("inf")]


def test_a_clock_that_was_set_back_is_an_event(tmp_path: Path) -> None:
    now = 2_400_000_000.0
    with sf.Study.open(tmp_path / "s", kettle().problem, files=Quick(), clock=lambda: now) as study:
        study.begin("s")
        now = 1_800_000_000.0
        study.abort()
    text = page.write_study_page(tmp_path / "s").read_text("utf-8")
    assert text.count("the clock went back, from 2046-01-19T18:40:00.000000Z") == 2, "in the events and by the audit"


@pytest.mark.parametrize("last", [2, 9, 109, 1_090, 10_900, 109_000])
def test_the_names_of_episodes_on_an_axis_never_touch(last: int) -> None:
    ends = (0.0, 1.0)
    svg = line_chart(Chart("c", "c", "y", "", (Curve("a", "", (1, last), ends, ends, ends),), statistic="value"))
    named = re.findall(r"<text x=([\d.]+) y=\d+ text-anchor=(start|middle|end)>([\d,]+)</text>", svg)
    assert [text for _, _, text in named][:: len(named) - 1] == ["1", f"{last:,}"]
    share = {"start": 0.0, "middle": 0.5, "end": 1.0}
    lefts = [float(x) - share[anchor] * LETTER * len(text) for x, anchor, text in named]
    rights = [left + LETTER * len(text) for left, (_, _, text) in zip(lefts, named, strict=True)]
    assert all(right < left for right, left in zip(rights, lefts[1:], strict=False))
