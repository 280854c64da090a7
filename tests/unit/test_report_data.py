"""What a report says agrees with the ledgers and plans that it was made from."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot as sf
from surefoot.errors import SurefootError, UnreadableFile
from surefoot.plan.why import reasons
from surefoot.reports import charts, data
from surefoot.reports import page as html
from surefoot.reports.charts import Chart, Curve, paper_bound
from surefoot.reports.explorer import explorer, known_of, thinned
from surefoot.reports.html import figure
from surefoot.reports.pictures.curves import axis_number
from surefoot.reports.wording import label_text
from surefoot.runs import plans_kept as snapshots
from surefoot.runs.ledger import Ledger
from tests.sweeps import EPISODES, SEEDS, make_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("report") / "runs", agents=("lsvi-new", "fallback", "slucb-qvi"))


@pytest.fixture(scope="module")
def page(runs: Path) -> Path:
    return html.write_page(runs)


def ledgers(runs: Path, label: str) -> list[Ledger]:
    return [Ledger.load(runs / "runs" / label / f"seed-{seed:04d}") for seed in SEEDS]


def chart_of(report: data.Report, name: str) -> Chart:
    return next(chart for chart in report.charts if chart.name == name)


def test_the_price_of_safety_is_a_row_of_every_report(page: Path, tmp_path: Path) -> None:
    row = "<tr class=price><td>price of safety</td>"
    text = page.read_text(encoding="utf-8")
    assert text.count(row) == 1
    assert "lsvi-new: not measured; add the agent oracle-shield to the comparison" in text
    priced = make_runs(tmp_path / "runs", "driving/testing", ("lsvi-new", "oracle-shield"))
    (price,) = data.read_sweep(priced).prices
    totals = [sum(each.manifest["summary"]["total_regret"] for each in ledgers(priced, name)) for name in
              ("lsvi-new", "oracle-shield")]  # fmt: skip
    assert price.ratio == pytest.approx(totals[0] / totals[1])
    assert str(price) in html.write_page(priced).read_text(encoding="utf-8")


def test_headlines_are_those_of_the_ledgers(runs: Path) -> None:
    report = data.read_sweep(runs)
    assert [each.label for each in report.headlines] == ["lsvi-new", "fallback", "slucb-qvi"]
    for each in report.headlines:
        ends = [ledger.manifest["summary"] for ledger in ledgers(runs, each.label)]
        assert each.runs == len(SEEDS)
        columns = {
            "value": "last_value",
            "violations": "violations",
            "gap_closed": "gap_closed",
            "regret": "total_regret",
        }
        for name, entry in columns.items():  # one statistic for the whole row, and over the same runs
            numbers, shown = [end[entry] for end in ends], getattr(each, name)
            assert shown.runs == len(SEEDS)
            assert shown.mean == pytest.approx(np.mean(numbers), abs=1e-9)
            assert min(numbers) - 1e-9 <= shown.low <= shown.mean <= shown.high <= max(numbers) + 1e-9
    learner, seed, _ = report.headlines
    assert (learner.guaranteed, learner.cost_event) == (True, 2)
    assert seed.cost_event is None
    assert seed.slope == pytest.approx(1.0, abs=1e-6)


def test_curves_are_those_of_the_ledgers(runs: Path) -> None:
    report = data.read_sweep(runs)
    for line in chart_of(report, "regret").lines:
        totals = np.cumsum([ledger.episodes["regret"] for ledger in ledgers(runs, line.label)], axis=1)
        at = np.array(line.episodes) - 1
        np.testing.assert_allclose(line.middle, totals.mean(axis=0)[at])
        each = next(each for each in report.headlines if each.label == line.label)  # chart and table: one statistic
        assert (line.low[-1], line.middle[-1], line.high[-1]) == pytest.approx(
            (each.regret.low, each.regret.mean, each.regret.high)
        )
        assert line.episodes[-1] == EPISODES
    (certified, *_) = chart_of(report, "certified").lines
    ends = [ledger.episodes["certified"][-1] for ledger in ledgers(runs, "lsvi-new")]
    assert certified.middle[-1] == pytest.approx(np.mean(ends))
    assert min(ends) <= certified.low[-1] <= certified.high[-1] <= max(ends)
    for line in chart_of(report, "margin-temperature").lines:
        least = min(ledger.episodes["margin_temperature"].min() for ledger in ledgers(runs, line.label))
        assert min(line.low) == pytest.approx(least, abs=1e-15)  # no episode falls between two points


def test_csv_holds_what_the_chart_shows(runs: Path) -> None:
    chart = chart_of(data.read_sweep(runs), "violations")
    rows = list(csv.DictReader(io.StringIO(chart.csv())))
    assert len(rows) == sum(len(line.episodes) for line in chart.lines)
    assert {row["line"] for row in rows} == {"lsvi-new", "fallback", "slucb-qvi"}
    last = next(line for line in chart.lines if line.label == "slucb-qvi")
    assert float([row for row in rows if row["line"] == "slucb-qvi"][-1]["mean"]) == last.middle[-1]


def test_slopes_are_fitted_over_the_last_decade() -> None:
    at = tuple(range(1, 2001))
    for power in (0.5, 1.0):
        total = tuple(3.0 * k**power for k in at)
        assert charts.fitted_slope(Curve("x", "x", at, total, total, total)) == pytest.approx(power)
    flat = (0.0,) * 2000
    assert charts.fitted_slope(Curve("x", "x", at, flat, flat, flat)) is None


def test_the_papers_bound_is_drawn_or_the_reason_is_given() -> None:
    drawn, _ = paper_bound(sf.worlds.make("thermal/small").problem, 0.05, 1000)
    assert drawn is not None
    assert list(drawn.middle) == sorted(drawn.middle)
    nothing, reason = paper_bound(sf.worlds.make("figure1").problem, 0.05, 1000)
    assert nothing is None
    assert "anchor" in reason


def test_times_are_a_service(runs: Path, tmp_path: Path) -> None:
    """Without them the report lacks one chart, and nothing else."""
    copy = tmp_path / "copy"
    shutil.copytree(runs, copy)
    (copy / "times.json").unlink()
    names = {chart.name for chart in data.read_sweep(runs).charts}
    assert {chart.name for chart in data.read_sweep(copy).charts} == names - {"time"}
    assert data.read_sweep(copy).headlines[0].seconds is None


def test_unfinished_runs_are_left_out_and_said_so(runs: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(runs, copy)
    shutil.rmtree(copy / "runs/fallback/seed-0001")
    assert data.read_sweep(copy).notes == ("1 of 6 runs are not finished and are left out.",)
    shutil.rmtree(copy / "runs")
    with pytest.raises(SurefootError, match="no run is finished"):
        data.read_sweep(copy)
    with pytest.raises(UnreadableFile, match="not a directory of runs"):
        data.read_sweep(tmp_path / "nothing")


# --- the explorer ---------------------------------------------------------------------------------------


def numbers(packed: str, kind: str) -> Any:
    return np.frombuffer(base64.b64decode(packed), kind)


@pytest.mark.parametrize("world", ["thermal/testing", "power/testing"])
def test_the_explorer_holds_the_plans(world: str, tmp_path: Path) -> None:
    place = sf.worlds.make(world)
    make_runs(tmp_path / "runs", world, ("lsvi-new",))
    kept = snapshots.load_all(tmp_path / "runs/runs/lsvi-new/seed-0000/snapshots", place.problem)
    found = json.loads(json.dumps(explorer(place, kept)))
    m, row = len(place.problem.limits), numbers(found["row"], "<u4")
    np.testing.assert_array_equal(
        numbers(found["cost"], "<f4").reshape(-1, m)[row], np.float32(np.concatenate(place.costs))
    )
    assert len(found["plans"]) == len(kept)
    for plan, snapshot in zip(found["plans"], kept, strict=True):
        for name in ("upper", "lower"):
            table = np.float32(np.concatenate(getattr(snapshot, name)))
            np.testing.assert_array_equal(numbers(plan[name], "<f4").reshape(-1, m)[row], table)
        np.testing.assert_array_equal(numbers(plan["pairs"], "u1"), np.concatenate(snapshot.certified_pairs))
        kinds = np.concatenate(reasons(place.problem, *known_of(snapshot)).kinds)
        np.testing.assert_array_equal(numbers(plan["kind"], "u1"), kinds)
    assert len(set(row.tolist())) < len(row)  # equal rows are kept once


def test_plans_that_do_not_fit_are_thinned(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = sf.worlds.make("thermal/testing")
    kept = snapshots.load_all(runs / "runs/lsvi-new/seed-0000/snapshots", place.problem)
    monkeypatch.setattr("surefoot.reports.explorer.BUDGET", 6000)
    found = explorer(place, kept)
    numbers_of = [plan["number"] for plan in found["plans"]]
    assert 2 <= len(numbers_of) < len(kept)
    assert (numbers_of[0], numbers_of[-1]) == (kept[0].number, kept[-1].number)
    assert found["left_out"] == len(kept) - len(numbers_of)
    assert thinned(24, 5) == [0, 6, 12, 17, 23]
    assert thinned(1, 5) == [0]


def test_labels_are_shown_as_people_write_them() -> None:
    assert label_text(("east", 0.5)) == "(east, 0.5)"
    assert label_text(3) == "3"


# --- the page -------------------------------------------------------------------------------------------


def test_the_page_is_one_small_file_that_fetches_nothing(page: Path) -> None:
    whole = page.read_text(encoding="utf-8")
    assert page.name == "report.html"
    assert len(whole.encode()) < 3_000_000
    fetched = re.findall(r'(?:src|href)="(?!#|report/)([^"]*)"', whole)
    assert all(address.startswith("data:") for address in fetched)
    assert "http://" not in re.sub(r"http://www\.w3\.org/\S*", "", whole)
    assert "default-src 'none'" in whole
    assert "{{" not in whole.split("<script")[0]


def test_every_figure_lies_beside_the_page(page: Path) -> None:
    folder = page.parent / "report"
    for name in [*(chart.name for chart in data.read_sweep(page.parent).charts), "world"]:
        for kind in ("svg", "png", "csv"):
            assert (folder / f"{name}.{kind}").stat().st_size > 0
    whole = page.read_text(encoding="utf-8")
    for link in re.findall(r'href="(report/[^"]*)"', whole):
        assert (page.parent / link).is_file()
    assert "#010203" not in (folder / "regret.svg").read_text(encoding="utf-8")


def test_ids_of_the_page_are_unique(page: Path) -> None:
    before = page.read_text(encoding="utf-8").split('id="data"')[0]
    ids = re.findall(r'\sid="([^"]+)"', before)
    assert len(ids) == len(set(ids))


def test_the_page_says_what_the_data_say(page: Path) -> None:
    whole, report = page.read_text(encoding="utf-8"), data.read_sweep(page.parent)
    learner = report.headlines[0]
    assert f"{learner.gap_closed.text(percent=True)} of the gap" in whole
    assert "every step safe with probability ≥ 0.95" in whole
    assert "no safety guarantee" in whole
    for chart in report.charts:
        assert f'id="chart-{chart.name}"' in whole


def test_hostile_names_do_not_become_markup(page: Path) -> None:
    hostile = "</script><script>alert(1)</script>"
    chart = Chart("x", hostile, hostile, hostile, ())
    assert "<script>" not in figure(chart, "")


def test_a_second_report_replaces_the_first(runs: Path, page: Path) -> None:
    first = page.read_bytes()
    assert html.write_page(runs).read_bytes() == first


def test_numbers_on_axes() -> None:
    assert [axis_number(value) for value in (0, 0.01, 500, 20_000, 3e6, -2000, 1e13)] == [
        "0", "0.01", "500", "20k", "3M", "−2k", "1e+13",
    ]  # fmt: skip


def test_an_axis_of_violations_has_numbers_between_its_powers_of_ten() -> None:
    """A curve that ends at 52 above a lone 10 is read as 16."""
    rising = tuple(np.linspace(1.0, 52.0, 60).tolist())
    line = Curve("max", "max", tuple(range(1, 61)), rising, rising, rising)
    drawn = html.chart_svg(Chart("v", "Violations", "violations", "", (line,), log_x=True, y_scale="symlog"))
    assert all(f">{n}</text>" in drawn for n in (0, 20, 50))
