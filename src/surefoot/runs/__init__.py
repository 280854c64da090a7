"""One agent plays one world: the run, its compiled roll-out, its record."""
