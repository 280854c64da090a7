"""Help pages that read as prose: paragraphs without their line breaks, and flags without a type to fill in."""

from __future__ import annotations

import inspect
from typing import Any

from typer.core import TyperCommand, TyperGroup


def prose(text: str | None) -> str | None:
    """A docstring with each paragraph on one line, which any width can wrap."""
    if text is None:
        return None
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _without_types(parameters: list[Any]) -> list[Any]:
    for each in parameters:
        if getattr(each, "is_flag", False) and each.metavar is None:
            each.metavar = ""
    return parameters


class PlainCommand(TyperCommand):
    """One command."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **{**options, "help": prose(options.get("help"))})

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


class WorkingCommand(PlainCommand):
    """A command that computes, and says so if compiling takes longer than two seconds."""

    def invoke(self, ctx: Any) -> Any:
        from surefoot.compiling import compiling_said

        with compiling_said():
            return super().invoke(ctx)


class PlainGroup(TyperGroup):
    """A command with commands below it."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))
