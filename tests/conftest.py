"""What every test shares: the one random seed, hypothesis's settings, and skips that count.

Seed: `--seed N`, else SUREFOOT_TEST_SEED, else 0. It reaches tests through the `seed` fixture and
hypothesis through its own forced seed, so a run is repeated by repeating its seed.

Skips: with CI=true a skipped test or module fails the session, because a check that did not run
must not look like one that passed. (`xfail` is not a skip; it is strict, see pyproject.toml.)
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.compiled_first import compile_first

SKIPPED = pytest.StashKey[dict[str, str]]()
MOST_TESTS = 1000  # from here on it pays to compile before the first test

# No time limits: compilation and slow machines must not decide a result. `derandomize` stays off
# because it would replace the seed by a hash of each test.
settings.register_profile(
    "ci",
    max_examples=40,
    database=None,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=100)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed",
        type=int,
        default=os.environ.get("SUREFOOT_TEST_SEED", "0"),
        metavar="N",
        help="the seed of every random choice in the tests (default: SUREFOOT_TEST_SEED or 0)",
    )
    parser.addoption(
        "--thorough",
        action="store_true",
        help="ten seeds for every statistical claim, not four; all random problems, not a third",
    )


@pytest.hookimpl(tryfirst=True)  # before hypothesis's plugin reads its option
def pytest_configure(config: pytest.Config) -> None:
    config.stash[SKIPPED] = {}
    if config.getoption("--thorough"):
        settings.load_profile("thorough")
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(config.getoption("--seed"))
    if _skips_fail() and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_SkipsFail(config.stash[SKIPPED]), "surefoot-skips-fail")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``batch`` of a module with BATCHES of random problems."""
    batches = getattr(metafunc.module, "BATCHES", None)
    if batches is not None and "batch" in metafunc.fixturenames and not _parametrized(metafunc, "batch"):
        thorough = metafunc.config.getoption("--thorough")
        metafunc.parametrize("batch", range(batches if thorough else max(1, batches // 3)))


def _parametrized(metafunc: pytest.Metafunc, name: str) -> bool:
    return any(name in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """In a worker that is about to run most of the suite: compile its share."""
    worker = getattr(session.config, "workerinput", {}).get("workerid", "")
    if worker in ("gw0", "gw1") and len(session.items) > MOST_TESTS:
        compile_first(int(worker[2:]))


def pytest_report_header(config: pytest.Config) -> str:
    return f"surefoot seed: {config.getoption('--seed')} (repeat with --seed=N)"


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """The run's seed, for `numpy.random.default_rng(seed)` and the like."""
    return int(request.config.getoption("--seed"))


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Every case, not a set that covers them."""
    return bool(request.config.getoption("--thorough"))


@pytest.fixture(scope="session")
def seeds(thorough: bool, seed: int) -> range:
    """The seeds that a statistical claim is asked of: other ones for every ``seed``."""
    n = 10 if thorough else 4
    return range(n * seed, n * (seed + 1))


def _skips_fail() -> bool:
    return os.environ.get("CI", "").strip().lower() in {"1", "true", "yes"}


class _SkipsFail:
    """Collects skips where all reports arrive (the controller under xdist) and fails the session."""

    def __init__(self, skipped: dict[str, str]) -> None:
        self.skipped = skipped  # node id -> reason; workers repeat collection reports

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped[report.nodeid] = _reason(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.skipped[report.nodeid] = _reason(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.skipped:
            return
        terminalreporter.section("skipped under CI=true: these count as failures", red=True)
        for nodeid, reason in sorted(self.skipped.items()):
            terminalreporter.line(f"{nodeid}: {reason}", red=True)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):  # (path, line, reason)
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)
