"""A simulator as the truth: any function, or another process, in place of a World (spec 9).

``step(h, x, u, rng)`` gives the next state and the true costs, one per limit (a plain number if there is one limit).
Whatever is random must be drawn from ``rng``, so that a seed repeats a run. ``reset(rng)`` returns the first state of
an episode; without it, that state is drawn from the declared start. The run adds Gaussian measurement noise with the
declared scales unless ``noise=False``.

A process is given by its command line. It reads one line of JSON per step, ``{"step": 0, "state": [...], "input": 1.0,
"seed": 123}``, and answers with one, ``{"state": [...], "cost": [...]}``.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surefoot.errors import AssumptionBroken, InvalidInput
from surefoot.model.arrays import FloatArray
from surefoot.model.labels import shown
from surefoot.model.plant.given import make_function
from surefoot.model.rules import check_flag
from surefoot.streams import stream

if TYPE_CHECKING:
    from surefoot.model.plant.plant import Plant

Reset = Callable[[np.random.Generator], Any]
Step = Callable[[int, FloatArray, Any, np.random.Generator], Any]


class Simulation:
    """A plant with its truth. Made by :meth:`surefoot.Plant.simulate`."""

    def __init__(self, plant: Plant, step: Step | Sequence[str], *, reset: Reset | None, noise: bool) -> None:
        self.plant, self.noise = plant, check_flag("noise", noise)
        self._reset = None if reset is None else make_function("reset", reset, "rng")
        if isinstance(step, str) or not (callable(step) or isinstance(step, Sequence)):
            fix = "A program is given as a list of words, such as ['./tank', '--fast']."
            raise InvalidInput(
                "a simulator is a function of (h, x, u, rng), or a program", got=f"{step!r:.80}", fix=fix
            )
        self._step = make_function("a simulator", step, "h, x, u, rng") if callable(step) else Process(step)

    def close(self) -> None:
        """End the simulator's process, if it is one."""
        if isinstance(self._step, Process):
            self._step.close()

    def step(self, h: int, x: FloatArray, u: Any, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """The next state (n,) and the true costs (m,)."""
        given = self._step(h, x.copy(), u, rng)
        try:
            state, cost = given
            after = np.asarray(state, np.float64).reshape(-1)
            costs = np.atleast_1d(np.asarray(cost, np.float64))
        except (TypeError, ValueError):
            raise InvalidInput(
                "a simulator must return (next state, costs)", where=f"step {h}", got=f"{given!r:.100}"
            ) from None
        sizes = (self.plant.cells.dim,), (len(self.plant.limits),)
        if (after.shape, costs.shape) != sizes or not (np.isfinite(after).all() and np.isfinite(costs).all()):
            raise InvalidInput(
                "a simulator must return a finite number per coordinate and per limit",
                where=f"step {h}, state {x.tolist()}, input {u!r}",
                got=f"{given!r:.100}",
            )
        return after, costs

    def first(self, rng: np.random.Generator) -> FloatArray:
        """(n,) a state to start from: the simulator's own, or uniform in the declared start."""
        if self._reset is not None:
            return self.plant.starting(self._reset(rng))
        low, high = self.plant.start
        return np.asarray(low + rng.random(len(low)) * (high - low))

    def log(self, controller: Callable[[int, FloatArray], Any], episodes: int, seed: int = 0) -> list[dict[str, Any]]:
        """The log of a controller: rows for :func:`surefoot.calibrate`."""
        rows: list[dict[str, Any]] = []
        for k in range(episodes):
            rng, noise = stream(seed, f"plant {k}"), stream(seed, f"sensor {k}")
            x = self.first(rng)
            for h in range(self.plant.horizon - 1):
                u = controller(h, x.copy())
                after, cost = self.step(h, x, u, rng)
                row = {"episode": k, "step": h, "state": x.tolist(), "action": u, "next_state": after.tolist()}
                rows.append({**row, "cost": self.measured(cost, noise).tolist()})
                x = after
        return rows

    def measured(self, cost: FloatArray, rng: np.random.Generator) -> FloatArray:
        """(m,) the true costs as a sensor measures them."""
        scales = np.array([limit.noise for limit in self.plant.limits])
        drawn = rng.standard_normal(len(cost))
        return cost + scales * drawn if self.noise else cost


class Process:
    """A simulator that runs as a separate process, with one line of JSON per step each way."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = [str(word) for word in command]
        try:
            self._process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        except OSError as error:
            where = " ".join(self.command)
            raise InvalidInput("the simulator cannot be started", where=where, got=str(error)) from error

    def __call__(self, h: int, x: FloatArray, u: Any, rng: np.random.Generator) -> tuple[list[float], list[float]]:
        line, asked = "", {"step": h, "state": x.tolist(), "input": u, "seed": int(rng.integers(2**32))}
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            answer = json.loads(line)
            return answer["state"], answer["cost"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            got = shown(line) if line else "it has ended"
            fix = 'It answers each line with one of its own, such as {"state": [0.4], "cost": [0.3]}.'
            where = f"step {h}, {' '.join(self.command)}"
            raise AssumptionBroken("the simulator's process does not answer", where=where, got=got, fix=fix) from error

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was written last cannot be sent any more
                    pipe.close()
