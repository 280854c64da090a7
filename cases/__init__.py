"""Case studies on simulators that others wrote: see ``docs/plants.md`` and ``make cases``."""
