"""The command line: arguments and wiring. Everything heavy is imported inside the command that needs it.

Exit codes: 0 fine; 1 a limit was broken, or a guarantee is void, where ``--strict`` demanded it; 2 bad input, or a
disk that cannot be written; 70 an error in surefoot itself; 128 + n stopped by signal n (130: Ctrl-C).
"""

from surefoot.cli.entry import app, main

__all__ = ["app", "main"]
