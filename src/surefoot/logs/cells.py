"""What a cell of a log stands for: a label, a step, a cost, an episode's id. Read strictly, never guessed."""

from __future__ import annotations

import json
import re
import unicodedata

import numpy as np

from surefoot.errors import InvalidInput
from surefoot.logs.files import Text
from surefoot.model.labels import label_of, other_spellings, shown

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_STEP = re.compile(r"0|[1-9][0-9]{0,8}")
_ANY_NUMBER = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,9}))?")


def readings(value: object) -> list[object]:
    """What a label's cell may mean. A CSV cell ``3`` is the number or the text; the problem knows which."""
    if not isinstance(value, Text):
        return [value]
    if value.startswith("("):  # a tuple as Python writes it
        return [*(each for each in other_spellings(str(value)) if repr(each) == value), str(value)]
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return [str(value)]
    if parsed == str(value) or value not in _spellings(parsed):  # " 3", 3.00 and NaN are text, and most likely unknown
        return [str(value)]
    return [parsed, str(value)]


def _spellings(value: object) -> list[str]:
    return [
        json.dumps(value, ensure_ascii=plain, separators=between)
        for plain in (True, False)
        for between in ((", ", ": "), (",", ":"))
    ]


def step_in(value: object) -> object:
    """The number of a step, from a cell or as it is; text that is none stays text and is refused later."""
    if isinstance(value, Text):
        return int(value) if _STEP.fullmatch(value) else str(value)
    return value


def cost_in(value: object, where: str) -> object:
    """A cost: a number, a list of them, or None, from a cell or as it is.

    In single precision 0.21 is 0.20999999344348907; it is read as 0.21, so that a copy of 0.21 is known again.
    """
    if isinstance(value, np.float32):
        return float(str(value))
    if not isinstance(value, Text):
        return value
    if _NUMBER.fullmatch(value):
        return float(value)
    if value.startswith("["):
        try:
            parsed: object = json.loads(value)
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, list):
            return parsed
    fix = "Write it as 0.5, -12 or 3e-4, nothing around it; leave the cell empty if it was not measured."
    raise InvalidInput("a cost must be a number", where=where, got=shown(str(value)), fix=fix)


def episode_key(name: str | int | float) -> str:
    """An id as a person reads it: without blanks around it, a number by its value."""
    text = unicodedata.normalize("NFKC", name).strip() if isinstance(name, str) else repr(name)
    match = _ANY_NUMBER.fullmatch(text)
    if match is None:
        return text
    sign, whole, fraction, exponent = match.groups("")
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return "0"
    power = int(exponent or 0) - len(fraction) + len(digits) - len(significant)
    return f"{sign.strip('+')}{significant}e{power}"


def episode_in(value: object) -> str | int | float:
    """An id: text or a number, nothing that two files would spell in ways that cannot be compared."""
    name = label_of(str(value) if isinstance(value, Text) else value, "column 'episode'")
    if type(name) not in (str, int, float) or (type(name) is str and not name.strip()):
        raise InvalidInput("an episode is text or a number", where="column 'episode'", got=shown(name))
    known: str | int | float = name
    return known
