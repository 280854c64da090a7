"""rover: a rover on a real elevation map, whose best rock stands on slopes that slide into ravines.

**State.** The cell (row, column) of the map, 93 m from north to south and 74 m from west to east.
**Action.** ("stay", 0.0), or a direction with a throttle: ("north", 0.5), ("north", 1.0) and so on; one per sol.

**Known.** The map: every cell's elevation, its slope, its *roughness* (how far it lies above or below the mean of its
eight neighbours) and its lowest neighbour to the north, south, west or east. If the way down there is steeper than 20°,
the rover may slide there, whatever it does. Otherwise it arrives where it drove, or the wheels spin and it stays; a
climb makes that likelier, throttle less likely. The probabilities are known for three soils: bedrock, crust, sand. A
sol pays 0.1 + 0.9·interest, half the interest while driving. Slopes expose rock: interest is the tangent of the cell's
slope in units of 30°, at most 1. At rest in the first cell, the strain is known (the anchor).

**Hidden.** The weights with which the soils mix (μ), and how the strain on the wheels follows from the map (γ):

    strain = ⟨γ, (1, u·climb, roughness', u·roughness')⟩    P(s'|s,a) = Σ_i μ_i P_i(s'|s,a)

u is the throttle, climb the tangent of the way that was tried (in units of 30°, zero downhill), roughness' that of the
cell where the rover ends up (in units of 20 m). Neither changes from sol to sol, and the problem says so.

**Limit.** strain ≤ 0.6, measured with noise of scale 0.05. In truth a rover at rest keeps it up to a roughness of
12.5 m. The last cell has no limit of its own. **Fallback.** Stay in the first cell, where nothing slides.

**Why look-ahead matters.** The bottom of a ravine is too rough to stay in, and too rough to leave, since the wheels may
spin. The wall above it is smooth, and its rock pays best, but every sol on the wall may end at the bottom. Bottoms, and
the walls that slide into them, have no safe action (:func:`craters`). A learner that looks one step ahead goes there.

**Where the numbers come from.** The map is the digital elevation model of the Jacksboro fault in Tennessee, 3 arc
seconds a cell, which matplotlib ships as ``jacksboro_fault_dem.npz`` (extra ``plot``). The sites lie where a plateau
falls off into a ravine. 20° is about what rovers are driven on, and 90 m a usual drive of a sol. Soils, interest and
the weights of the strain are invented.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surefoot.checks import one_of
from surefoot.errors import SurefootError, UnreadableFile
from surefoot.model.arrays import BoolArray, FloatArray, IntArray, freeze
from surefoot.model.limit import Limit
from surefoot.model.problem import Problem
from surefoot.storage.archive import read_foreign
from surefoot.worlds.world import World

__all__ = ["SITES", "Relief", "Site", "craters", "relief", "rover"]

Cell = tuple[int, int]  # row and column of the whole map; row 0 is the northernmost
Action = tuple[str, float]  # direction and throttle

FILE = "jacksboro_fault_dem.npz"
STAY: Action = ("stay", 0.0)
DIRECTIONS = {"north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1)}
THROTTLES = (0.5, 1.0)
SLIDE, STEEP = math.tan(math.radians(20.0)), math.tan(math.radians(30.0))
RUGGED = 20.0  # m, the unit of roughness
SOILS = ((0.05, 0.05), (0.2, 0.3), (0.5, 0.6))  # bedrock, crust, sand: chances to spin and to slide

BOUND = 0.6
STRAIN = (0.1, 0.6, 0.8, 0.2)  # γ, of length 1.02
NORM = 1.1  # what the user is sure of


@dataclass(frozen=True, eq=False)
class Relief:
    """The whole map, (R, C) arrays, read-only."""

    elevation: FloatArray  # m
    spacing: tuple[float, float]  # m, from row to row and from column to column
    slope: FloatArray  # tangent
    roughness: FloatArray  # m
    slides_to: IntArray  # (R, C, 2) the cell below, where the way there is steeper than 20°; else the cell itself

    def climb(self, cell: Cell, to: Cell) -> float:
        """Tangent of the way between neighbouring cells, negative downhill."""
        distance = self.spacing[0] if cell[0] != to[0] else self.spacing[1]
        return float(self.elevation[to] - self.elevation[cell]) / distance

    def slide(self, cell: Cell) -> Cell:
        row, column = self.slides_to[cell].tolist()
        return row, column


@functools.cache
def relief() -> Relief:
    """The map that matplotlib ships."""
    try:
        from matplotlib.cbook import get_sample_data

        path = Path(get_sample_data(FILE, asfileobj=False))
        elevation, dy, dx, south = read_foreign(path, ("elevation", "dy", "dx", "ymin"))
        elevation, degrees, latitude = elevation.astype(np.float64), (float(dy), float(dx)), float(south)
    except (ImportError, OSError, UnreadableFile) as error:
        raise SurefootError(
            "the rover world needs the elevation map that matplotlib ships",
            got=str(error),
            fix="Install it with: pip install 'surefoot[plot]'",
        ) from None
    spacing = 111_200.0 * degrees[0], 111_200.0 * degrees[1] * math.cos(math.radians(latitude))
    around = np.pad(elevation, 1, mode="edge")
    rows, columns = elevation.shape
    eight = [around[i : i + rows, j : j + columns] for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    slope = np.hypot(*np.gradient(elevation, *spacing))
    return Relief(
        elevation=freeze(elevation),
        spacing=spacing,
        slope=freeze(slope),
        roughness=freeze(np.abs(elevation - np.mean(eight, axis=0))),
        slides_to=freeze(_slides(around, spacing)),
    )


def _slides(around: FloatArray, spacing: tuple[float, float]) -> IntArray:
    """(R, C, 2); ``around`` is the map with its edge cells once more on every side, so that none slides off it."""
    rows, columns = around.shape[0] - 2, around.shape[1] - 2
    here = around[1:-1, 1:-1]
    falls = np.stack(
        [
            (here - around[1 + i : 1 + i + rows, 1 + j : 1 + j + columns]) / (spacing[0] if i else spacing[1])
            for i, j in DIRECTIONS.values()
        ]
    )
    moves = np.array(list(DIRECTIONS.values()))[falls.argmax(axis=0)]
    moves[falls.max(axis=0) <= SLIDE] = 0
    result: IntArray = np.moveaxis(np.indices(here.shape), 0, -1) + moves
    return result


def craters(bound: float = BOUND) -> BoolArray:
    """(R, C) cells without a safe action: too rough to stay in, or sliding to such a cell while there is time."""
    ground = relief()
    doomed = STRAIN[0] + STRAIN[2] * ground.roughness / RUGGED > bound
    while True:
        found = doomed | doomed[tuple(np.moveaxis(ground.slides_to, -1, 0))]
        if np.array_equal(found, doomed):
            return freeze(found)
        doomed = found


@dataclass(frozen=True)
class Site:
    """A window of the map. Cells that slide out of it are left out."""

    top: int
    left: int
    rows: int
    columns: int
    start: Cell
    horizon: int

    @functools.cached_property
    def cells(self) -> frozenset[Cell]:
        ground = relief()
        inside = {
            (i, j) for i in range(self.top, self.top + self.rows) for j in range(self.left, self.left + self.columns)
        }
        while leaving := {cell for cell in inside if ground.slide(cell) not in inside}:
            inside -= leaving
        return frozenset(inside)

    def actions(self, cell: Cell) -> list[Action]:
        open_ways = [name for name in DIRECTIONS if self.target(cell, name) in self.cells]
        return [STAY, *((name, throttle) for name in open_ways for throttle in THROTTLES)]

    def target(self, cell: Cell, direction: str) -> Cell:
        down, right = DIRECTIONS.get(direction, (0, 0))
        return cell[0] + down, cell[1] + right

    def climb(self, cell: Cell, action: Action) -> float:
        """Of the way that is tried, in units of 30°; zero downhill and at rest."""
        if action == STAY:
            return 0.0
        return max(0.0, relief().climb(cell, self.target(cell, action[0]))) / STEEP

    def outcomes(self, cell: Cell, action: Action) -> dict[Cell, list[float]]:
        """Every possible next cell, and φ: its P_i on each soil."""
        found: dict[Cell, list[float]] = {}
        for i, (spin, slide) in enumerate(SOILS):
            for after, chance in self._on_soil(cell, action, spin, slide):
                if chance > 0.0:
                    found.setdefault(after, [0.0] * len(SOILS))[i] += chance
        return found

    def _on_soil(self, cell: Cell, action: Action, spin: float, slide: float) -> Iterator[tuple[Cell, float]]:
        below = relief().slide(cell)
        slides = slide if below != cell else 0.0
        spins = 0.0
        if action != STAY:
            spins = min(1.0, spin * (1.0 + self.climb(cell, action)) * (1.0 - action[1] / 2.0))
        yield below, slides
        yield cell, (1.0 - slides) * spins
        yield self.target(cell, action[0]), (1.0 - slides) * (1.0 - spins)

    def strain_features(self, cell: Cell, action: Action, after: Cell) -> list[float]:
        """x = (1, u·climb, roughness', u·roughness')."""
        throttle, rough = action[1], float(relief().roughness[after]) / RUGGED
        return [1.0, throttle * self.climb(cell, action), rough, throttle * rough]

    def science(self, cell: Cell, action: Action) -> float:
        interest = min(1.0, float(relief().slope[cell]) / STEEP)
        return 0.1 + 0.9 * interest * (1.0 if action == STAY else 0.5)


SITES: dict[str, Site] = {
    "testing": Site(top=42, left=315, rows=6, columns=6, start=(44, 318), horizon=8),
    "small": Site(top=40, left=312, rows=10, columns=10, start=(44, 318), horizon=12),
    "medium": Site(top=36, left=308, rows=16, columns=16, start=(44, 318), horizon=16),
}


def rover(
    size: str = "small",
    *,
    bound: float = BOUND,
    noise_scale: float = 0.05,
    noise: str | None = None,
    soils: tuple[float, float, float] = (0.5, 0.3, 0.2),
) -> World:
    """The rover world; the module docstring describes it.

    Args:
        size: ``"testing"``, ``"small"`` or ``"medium"``.
        bound: the highest strain allowed.
        noise_scale: σ of the strain gauge.
        noise: the kind of its noise, see :class:`~surefoot.World`.
        soils: the hidden weights of bedrock, crust and sand; they sum to one.
    """
    site = SITES[one_of("size", SITES, size, "Choose from")]
    outcomes = functools.cache(site.outcomes)
    at_rest = site.strain_features(site.start, STAY, site.start)
    problem = Problem.from_functions(
        horizon=site.horizon,
        start=site.start,
        actions=lambda h, cell: site.actions(cell),
        successors=lambda h, cell, action: list(outcomes(cell, action)),
        reward=lambda h, cell, action: site.science(cell, action),
        cost_features=lambda h, *triplet: site.strain_features(*triplet),
        transition_features=lambda h, cell, action, after: outcomes(cell, action)[after],
        fallback=lambda h, cell: STAY,
        anchor=lambda h: (at_rest, float(np.dot(STRAIN, at_rest))),
        limits=Limit("strain", bound=bound, noise=noise_scale, norm=NORM),
        stationary_costs=True,
        stationary_transitions=True,
    )
    return World(problem, transition=soils, cost=STRAIN, noise=noise)
