"""What was logged: files of transitions (``files``), their cells (``cells``), rows as a problem's (``rows``)."""
