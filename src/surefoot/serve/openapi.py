"""The OpenAPI description of a study over HTTP, made from the study's own methods, so that it is always up to date."""

from __future__ import annotations

from inspect import getdoc
from typing import Any

from surefoot import __version__
from surefoot.serve.calls import ALLOWED
from surefoot.study.protocol import arguments_of
from surefoot.study.study import Study

_LABEL = {"description": "A state or an action: text, a number, true, false, null, or an array of these (a tuple)."}
_ARGUMENTS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("start", "next_state", "action_applied"), _LABEL),
    "ask_id": {"type": "string", "description": "Of the offer."},
    "cost": {
        "description": "A number, an array with one per limit, or null if it was not measured.",
        "anyOf": [{"type": "number"}, {"type": "array", "items": {"type": ["number", "null"]}}, {"type": "null"}],
    },
    "intensity": {
        "type": ["number", "null"],
        "description": "Between 0 and 1: at which the action was applied, if not as offered.",
    },
    "sure": {"type": "boolean", "description": "The next state is no typing error, even if it cannot have followed."},
    "episode": {"type": ["integer", "null"], "description": "The episode's number; a repetition is then harmless."},
    "reason": {"type": "string", "description": "Kept in the journal."},
    "alarms": {
        "type": "array",
        "items": {"type": "integer"},
        "description": "Records of the alarms that the person has seen; refused if there are others.",
    },
    "discard_data": {"type": "boolean", "description": "Drop everything learned."},
    "noise": {
        "type": ["object", "null"],
        "additionalProperties": {"type": "number"},
        "description": "Larger noise scales, by the names of their limits.",
    },
    "problem": {"type": ["object", "null"], "description": "A wider problem, as problem.save writes it."},
    "trust_anchors": {"type": "boolean", "description": "Keep the anchors although data are discarded."},
    "despite": {"type": ["string", "null"], "description": "Why a declaration with errors is used."},
}

_REFUSALS = {
    "400": "A query, or a request that is not understood.",
    "401": "No token, or one that is not known.",
    "403": "The token of another role, or another site's page.",
    "409": "A call at the wrong moment; nothing was changed.",
    "413": "The body is too long.",
    "421": "The Host is not this server's.",
    "422": "An argument that breaks a rule; nothing was changed.",
    "503": "The disk is full or failing; nothing was changed.",
}


def description() -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, Any] = {f"/v1/{name}": {"post": _operation(name)} for name in ALLOWED}
    paths["/v1/status"] = {"get": _reading("status", "The state of the study.", "application/json")}
    paths["/v1/events"] = {"get": _reading("events", "Parts of the live page as they change.", "text/event-stream")}
    paths["/v1/explorer"] = {"get": _reading("explorer", "The plan in force, for the page.", "application/json")}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "A surefoot study",
            "version": __version__,
            "description": "Ask for an action that is certified to be safe, apply it, tell what happened. Whatever was "
            "answered is on disk; a request whose answer was lost may be sent again.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error", "kind"],
                    "properties": {"error": {"type": "string"}, "kind": {"type": "string"}},
                }
            },
        },
        "security": [{"token": []}],
    }


def _operation(name: str) -> dict[str, Any]:
    takes = arguments_of(name)
    needed = [key for key, must in takes.items() if must]
    properties = {key: _ARGUMENTS[key] for key in takes}
    schema = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
    return {
        "operationId": name,
        "summary": " ".join((getdoc(getattr(Study, name)) or "").partition("\n\n")[0].split()),
        "description": f"With the token of the {' or '.join(ALLOWED[name])}.",
        "requestBody": {"required": bool(needed), "content": {"application/json": {"schema": schema}}},
        "responses": _responses("application/json"),
    }


def _reading(name: str, what: str, kind: str) -> dict[str, Any]:
    return {"operationId": name, "summary": what, "responses": _responses(kind)}


def _responses(kind: str) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    answered = {"description": "Done, and on disk.", "content": {kind: {}}}
    return {"200": answered, **{code: {"description": what, "content": error} for code, what in _REFUSALS.items()}}
