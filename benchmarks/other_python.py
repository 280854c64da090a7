"""An environment for a package that cannot share ours: made on first use, and again when its requirements change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENTS = HERE / ".envs"  # not under version control


class Unavailable(Exception):
    """The environment cannot be made here."""


def python_of(name: str) -> Path:
    """The interpreter of an environment that holds what ``NAME-requirements.txt`` pins, and nothing else."""
    wanted = (HERE / f"{name}-requirements.txt").read_text(encoding="utf-8")
    root = ENVIRONMENTS / name
    python = root / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = root / "installed.txt"  # written last: an install that was cut short starts over
    contents = f"# python {sys.version_info.major}.{sys.version_info.minor}\n{wanted}"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == contents:
        return python
    try:
        venv.create(root, clear=True, with_pip=True)
    except subprocess.CalledProcessError:
        raise Unavailable("this Python cannot make an environment with pip") from None
    words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = _run(python, *words, "-r", str(HERE / f"{name}-requirements.txt"))
    if done.returncode:
        raise Unavailable(_last_line(done.stderr) or f"pip ended with {done.returncode}")
    stamp.write_text(contents, encoding="utf-8")
    return python


def answer(python: Path, script: str, *arguments: str) -> Any:
    """What a script of this folder prints as JSON, on one BLAS thread."""
    done = _run(python, str(HERE / script), *arguments)
    if done.returncode:
        raise Unavailable(_last_line(done.stderr) or f"{script} ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def _run(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    left_out = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")  # ours must not shine through
    clean = {name: value for name, value in os.environ.items() if name not in left_out}
    return subprocess.run([python, *words], env=clean | threads, capture_output=True, text=True, check=False)


def _last_line(text: str) -> str:
    """The error itself; registries are named in the lines before it, and a committed file must not name them."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("ERROR") or "Error" in line]
    return "" if not lines or "://" in lines[-1] else lines[-1][:200]
