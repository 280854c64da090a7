"""What was logged: files of transitions (``files``), and their rows as a problem's (``rows``)."""
