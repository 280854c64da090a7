"""Who may call: a bearer token for the plant and one for operators.

Both are made and printed when a study is first served, and never again; the study's folder keeps only their SHA-256
(``tokens.json``, readable by its owner). A token is 256 random bits, so nobody can guess it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from surefoot.errors import UnreadableFile
from surefoot.model import checked
from surefoot.storage import documents
from surefoot.storage.disk import DISK, writing

TOKENS = "tokens.json"
FORMAT, VERSION = "surefoot-tokens", 1
PLANT, OPERATOR = "plant", "operator"
ROLES = (PLANT, OPERATOR)

_HASH = re.compile(r"[0-9a-f]{64}\Z")
_LONGEST = 200  # characters of a token that is looked at


class Tokens:
    """Knows the callers by the hashes of their tokens."""

    def __init__(self, hashes: Mapping[str, str]) -> None:
        self._hashes = dict(hashes)

    def role_of(self, token: str) -> str | None:
        """Whose token it is, or None. A wrong token takes as long as a right one."""
        found, given = None, _hash(token[:_LONGEST])
        for role, known in self._hashes.items():
            if hmac.compare_digest(known, given):
                found = role
        return found


def tokens_of(folder: Path, new: bool = False) -> tuple[Tokens, dict[str, str]]:
    """The tokens of a study, and what to print if they have just been made."""
    path = folder / TOKENS
    if path.exists() and not new:
        return Tokens(_read(path)), {}
    made = {role: f"sf-{role}-{secrets.token_urlsafe(32)}" for role in ROLES}
    hashes = {role: _hash(token) for role, token in made.items()}
    with writing(path):
        document = {"format": FORMAT, "version": VERSION, "sha256": hashes}
        DISK.replace(path, json.dumps(document, indent=2).encode() + b"\n")
        path.chmod(0o600)
    return Tokens(hashes), made


def _read(path: Path) -> dict[str, str]:
    fix = "Make new ones with --new-tokens."
    try:
        document = checked.of_format(documents.read_json(path)[0], "tokens", FORMAT, VERSION, fix)
        found = checked.mapping(checked.entries(document, "$", ("sha256",))["sha256"], "$.sha256", ROLES)
        for role in ROLES:
            if not _HASH.match(checked.string(found[role], f"$.sha256.{role}")):
                raise checked.wrong(f"$.sha256.{role}", "a sha256 in hex", found[role])
    except (OSError, UnreadableFile) as error:
        raise UnreadableFile("the tokens cannot be read", where=str(path), got=str(error)[:200], fix=fix) from error
    return {role: str(found[role]) for role in ROLES}


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
