"""Mutants: small mistakes put into the safety code one by one. Does a test notice each?

Run by ``make mutants`` with the operators of cosmic-ray, in a copy of the tree; what survives, and why, is in
``tests/mutants.md``. A place in the code is drawn first and one of its mutants then, so that a comparison, of which
there are many mutants, counts no more than a number. Type annotations are left out: nothing reads them.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.testing import run_tests
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome

ROOT = Path(__file__).parents[1]
AREAS = {  # area: (what is mutated, the tests that guard it, quick ones first)
    "bounds": (
        "estimate/costs.py estimate/kernels.py plan/confidence.py",
        "test_certify test_scale test_ridge test_cost_bounds test_beyond_beta test_wiring test_survivors",
    ),
    "certify": ("plan/certify.py plan/kernels.py", "test_certify test_explore_and_values test_agent_api test_why"),
    "journal": ("study/journal.py study/records.py", "test_journal test_study_opening test_study test_survivors"),
    "replay": (
        "study/standing.py study/opening.py",
        "test_study_alarms test_study_opening test_study_answers test_study_durable test_study_import test_survivors",
    ),
    "monitor": ("monitor/*.py", "test_monitor"),
    "audit": ("audits/*.py", "test_bombs test_survivors test_audit test_study_answers test_study_repeats"),
}
SLOW = "many_features or overflows or named_worlds or auditor_and_a_reporter or the_whole_way_from_rows"


def annotations(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """(start, end) of every annotation of a file, as (line, column)."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if part is not None:
                found.append(((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)))
    return found


def mutants(area: str, session: Path) -> Iterator[MutationSpec]:
    """All mutants of an area, always in the same order."""
    source = Path("src/surefoot")
    files = sorted(path for pattern in AREAS[area][0].split() for path in source.glob(pattern))
    skipped = {str(path): annotations(path) for path in files}
    with use_db(session, WorkDB.Mode.create) as database:
        init(files, database, {})
        found = [mutation for item in database.work_items for mutation in item.mutations]
    for mutation in sorted(found, key=lambda m: (str(m.module_path), m.start_pos, m.operator_name, m.occurrence)):
        compiled = _line(mutation).startswith("@numba")  # how it is compiled changes no result
        typed = any(start <= mutation.start_pos < end for start, end in skipped[str(mutation.module_path)])
        if not typed and not compiled:
            yield mutation


def _line(mutation: MutationSpec) -> str:
    return Path(mutation.module_path).read_text().splitlines()[mutation.start_pos[0] - 1]


def sample(found: Iterator[MutationSpec], n: int, seed: str) -> list[MutationSpec]:
    """n places, and of each one mutant."""
    places: dict[tuple[str, tuple[int, int]], list[MutationSpec]] = {}
    for mutation in found:
        places.setdefault((str(mutation.module_path), mutation.start_pos), []).append(mutation)
    order = sorted(places)
    random.Random(seed).shuffle(order)  # a larger sample contains the smaller one
    return [random.Random(f"{seed} {place}").choice(places[place]) for place in order[:n]]


def judge(area: str, chosen: list[MutationSpec], python: str, limit: float) -> int:
    """Run the tests on every mutant, print those that survive, return how many do."""
    files = " ".join(f"tests/unit/{name}.py" for name in AREAS[area][1].split())
    command = f"{python} -m pytest -x -q -p no:cacheprovider {files} -k 'not ({SLOW})'"
    os.environ["NUMBA_DISABLE_JIT"] = str(int(area == "monitor"))  # quicker than compiling its mutants
    outcome, output = run_tests(command, limit)
    if outcome != TestOutcome.SURVIVED:
        sys.exit(f"{area}: the tests fail without any mutant\n{output[-3000:]}")
    alive = 0
    for i, mutation in enumerate(chosen):
        start = time.monotonic()
        result = mutate_and_test([mutation], command, limit)
        for path in (
            Path(mutation.module_path).parent.rglob("*.nb[ci]") if "kernels" in mutation.module_path.name else ()
        ):
            path.unlink()  # numba does not notice a callee that has changed
        survived = result.test_outcome == TestOutcome.SURVIVED
        alive += survived
        what = f"{mutation.module_path}:{mutation.start_pos[0]} {mutation.operator_name}"
        word = "SURVIVED" if survived else "timed out" if result.output == "timeout" else "killed"
        print(f"{area} {i + 1}/{len(chosen)} {time.monotonic() - start:4.0f} s  {word}  {what}", flush=True)
        if survived or result.test_outcome == TestOutcome.INCOMPETENT:
            print(result.diff or result.output, flush=True)
    print(f"{area}: {len(chosen) - alive} of {len(chosen)} killed", flush=True)
    return alive


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("areas", nargs="*", choices=[*AREAS, []], help="all, when none is named")
    parser.add_argument("--python", default=sys.executable, help="the one that the tests run with")
    parser.add_argument("--mutants", type=int, default=40, help="of each area")
    parser.add_argument("--after", type=int, default=0, help="leave out so many, which were judged before")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds, after which a mutant counts as killed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "surefoot"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "build"))
        os.chdir(copy)
        os.environ |= {"PYTHONPATH": str(copy / "src"), "OPENBLAS_NUM_THREADS": "1"}
        for area in given.areas or AREAS:
            chosen = sample(mutants(area, Path(folder) / f"{area}.sqlite"), given.mutants, f"{given.seed}-{area}")
            judge(area, chosen[given.after :], given.python, given.limit)


if __name__ == "__main__":
    main()
