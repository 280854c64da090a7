"""Mutants: small mistakes put into the safety code one by one. Does a test notice each?

Run by ``make mutants`` with the operators of cosmic-ray, in a copy of the tree; what survives, and why, is in
``tests/mutants.md``. A place in the code is drawn first and one of its mutants then, so that a comparison, of which
there are many mutants, counts no more than a number. Left out are type annotations and decorators (how a function is
compiled, whether a record can be compared), which change no result, and the words of messages.
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
        "estimate/ellipsoids.py estimate/families.py estimate/boxes.py estimate/costs.py estimate/bank.py "
        "estimate/row_bounds.py estimate/kernels.py model/priors.py plan/confidence.py",
        "test_certify test_survivors test_bounds_alike test_audit_bounds test_explore_and_values test_scale "
        "test_beyond_beta test_blocks test_priors test_cost_bounds "
        "../differential/test_reference.py::test_visits_are_counted_alike "
        "../differential/test_reference.py::test_certified_learner_agrees_with_the_reference test_mapped",
    ),
    "certify": (
        "plan/certify.py plan/kernels.py plan/segments.py",
        "test_certify test_explore_and_values test_growing test_why test_agent_api "
        "../differential/test_reference.py::test_certified_learner_agrees_with_the_reference",
    ),
    "journal": (
        "study/journal.py study/records.py storage/*.py",
        "test_journal test_storage test_bombs test_survivors test_study_opening test_study_durable test_files "
        "test_files_damage test_study test_mapped",
    ),
    "replay": (
        "study/standing.py study/state.py study/opening.py study/snapshots.py study/declaring.py "
        "study/comparing.py study/alarms.py "
        "agents/learner.py agents/blocks/look_ahead.py agents/blocks/place.py model/measured.py",
        "test_declaring test_study test_study_alarms test_study_opening test_study_answers test_study_support "
        "test_study_durable test_study_import test_survivors test_agent_api test_snapshots test_growing_study "
        "test_ray_study test_plant_study",
    ),
    "monitor": ("monitor/*.py", "test_monitor_evidence test_monitor"),
    "audit": (
        "audits/*.py",
        "test_declaring test_audit_bounds test_audit_problem test_bombs test_survivors test_audit "
        "test_study_answers test_study_support test_study_repeats test_growing_study "
        "test_ray_study test_plant_study",
    ),
}
INTERPRETED = ("bounds", "certify", "monitor")  # quicker than compiling each mutant
SLOW = (
    "many_features or overflows or named_worlds or auditor_and_a_reporter or the_whole_way_from_rows "
    "or (same_bits and not options0) or check_and_export"
)


_WORDS = ("wrong", "_wrong", "_expect", "remark", "_raise", "Alarm")  # what takes a message


def left_out(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """(start, end) of all in a file that no test need read, as (line, column): annotations, decorators, messages."""
    found: list[ast.AST] = []
    for node in ast.walk(ast.parse(path.read_text())):
        found += filter(None, (getattr(node, "annotation", None), getattr(node, "returns", None)))
        found += getattr(node, "decorator_list", ())  # what stands in them: to remove a whole one is a mutant
        name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Raise) or name in _WORDS:
            found += [part for part in ast.walk(node) if isinstance(part, ast.JoinedStr)]
    return [((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)) for part in found]


def mutants(area: str, session: Path) -> Iterator[MutationSpec]:
    """All mutants of an area, always in the same order."""
    source = Path("src/surefoot")
    files = sorted(path for pattern in AREAS[area][0].split() for path in source.glob(pattern))
    skipped = {str(path): left_out(path) for path in files}
    with use_db(session, WorkDB.Mode.create) as database:
        init(files, database, {})
        found = [mutation for item in database.work_items for mutation in item.mutations]
    for mutation in sorted(found, key=lambda m: (str(m.module_path), m.start_pos, m.operator_name, m.occurrence)):
        path, (line, column) = mutation.module_path, mutation.start_pos
        compiled = Path(path).read_text().splitlines()[line - 1].startswith("@numba")
        if not compiled and not any(start <= (line, column) < end for start, end in skipped[str(path)]):
            yield mutation


def sample(found: Iterator[MutationSpec], n: int, seed: str) -> list[MutationSpec]:
    """n places, and of each one mutant."""
    places: dict[tuple[str, tuple[int, int]], list[MutationSpec]] = {}
    for mutation in found:
        places.setdefault((str(mutation.module_path), mutation.start_pos), []).append(mutation)
    order = sorted(places)
    random.Random(seed).shuffle(order)  # a larger sample contains the smaller one
    return [random.Random(f"{seed} {place}").choice(places[place]) for place in order[:n]]


def judge(area: str, chosen: list[MutationSpec], python: str) -> int:
    """Run the tests on every mutant, print those that survive, return how many do."""
    files = " ".join(f"tests/unit/{name}" + ".py" * ("::" not in name) for name in AREAS[area][1].split())
    command = f"{python} -m pytest -x -q -p no:cacheprovider {files} -k 'not ({SLOW})'"
    os.environ["NUMBA_DISABLE_JIT"] = str(int(area in INTERPRETED))
    start = time.monotonic()
    outcome, output = run_tests(command, 3600.0)
    if outcome != TestOutcome.SURVIVED:
        sys.exit(f"{area}: the tests fail without any mutant\n{output[-3000:]}")
    limit = 60.0 + 4.0 * (time.monotonic() - start)  # a mutant that never ends is noticed
    alive = 0
    for i, mutation in enumerate(chosen):
        start = time.monotonic()
        _forget_compiled(area, mutation)
        result = mutate_and_test([mutation], command, limit)
        _forget_compiled(area, mutation)
        survived = result.test_outcome == TestOutcome.SURVIVED
        alive += survived
        what = f"{mutation.module_path}:{mutation.start_pos[0]} {mutation.operator_name}"
        word = "SURVIVED" if survived else "timed out" if result.output == "timeout" else "killed"
        print(f"{area} {i + 1}/{len(chosen)} {time.monotonic() - start:4.0f} s  {word}  {what}", flush=True)
        if survived or result.test_outcome == TestOutcome.INCOMPETENT:
            print(result.diff or result.output, flush=True)
    print(f"{area}: {len(chosen) - alive} of {len(chosen)} killed", flush=True)
    return alive


def _forget_compiled(area: str, mutation: MutationSpec) -> None:
    """numba does not notice a callee that has changed."""
    if area not in INTERPRETED and "kernels" in Path(mutation.module_path).name:
        for path in Path("src").rglob("*.nb[ci]"):
            path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("areas", nargs="*", choices=[*AREAS, []], help="all, when none is named")
    parser.add_argument("--python", default=sys.executable, help="the one that the tests run with")
    parser.add_argument("--mutants", type=int, default=40, help="of each area")
    parser.add_argument("--after", type=int, default=0, help="leave out so many, which were judged before")
    parser.add_argument("--seed", default="0")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "surefoot"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "build"))
        os.chdir(copy)
        os.environ |= {"PYTHONPATH": str(copy / "src"), "OPENBLAS_NUM_THREADS": "1"}
        for area in given.areas or AREAS:
            chosen = sample(mutants(area, Path(folder) / f"{area}.sqlite"), given.mutants, f"{given.seed}-{area}")
            judge(area, chosen[given.after :], given.python)


if __name__ == "__main__":
    main()
