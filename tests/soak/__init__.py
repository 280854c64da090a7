"""Long runs that are not part of ``make test``; ``make soak`` starts them."""
