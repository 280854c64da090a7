"""Read a TOML file that a user wrote."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from surefoot.errors import UnreadableFile

MAX_BYTES = 1 << 20


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """(the document, its text); anything else is an error that names the file."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableFile("the file cannot be read", where=str(path), got=error.strerror or "") from error
    if len(data) > MAX_BYTES:
        raise UnreadableFile("the file is too large", where=str(path))
    try:
        text = data.decode("utf-8")
        return tomllib.loads(text), text
    except UnicodeDecodeError as error:
        raise UnreadableFile("not UTF-8 text", where=str(path), got=f"byte {error.start}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnreadableFile("not valid TOML", where=str(path), got=str(error)) from None
