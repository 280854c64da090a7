"""The OpenAPI description of what a study answers over HTTP; made from the table of calls, so always up to date."""

from __future__ import annotations

from typing import Any

from surefoot import __version__
from surefoot.serve.calls import ALLOWED
from surefoot.study.protocol import arguments_of

_LABEL = {"description": "A state or an action: text, a number, true, false, null, or an array of these (a tuple)."}
_COST = {
    "description": "A number, an array with one per limit, or null when it was not measured.",
    "anyOf": [{"type": "number"}, {"type": "array", "items": {"type": ["number", "null"]}}, {"type": "null"}],
}
_INTENSITY = {
    "type": ["number", "null"],
    "description": "Between 0 and 1: at which the action was applied, if not as offered.",
}
_EPISODE = {"type": ["integer", "null"], "description": "The episode's number; a repetition is then harmless."}
_REASON = {"type": "string", "description": "Kept in the journal."}

# call: (what it does, its arguments)
_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "begin": ("Begin an episode. Again before the first ask: the same one.", {"start": _LABEL}),
    "ask": ("The action to take now, with its certificate. Again before the tell: the same one.", {}),
    "tell": (
        "What the plant did. On disk when it is answered; the same again counts once.",
        {
            "ask_id": {"type": "string"},
            "next_state": _LABEL,
            "cost": _COST,
            "action_applied": _LABEL,
            "intensity": _INTENSITY,
        },
    ),
    "tell_terminal": (
        "The measured cost of the episode's last state, where the problem declares one.",
        {"cost": _COST, "episode": _EPISODE},
    ),
    "abort": ("End the episode early; what was told counts.", {"reason": _REASON, "episode": _EPISODE}),
    "acknowledge": (
        "A person acknowledges the alarms and ends safe mode; 'answers' in the status says what that takes.",
        {
            "reason": _REASON,
            "alarms": {
                "type": "array",
                "items": {"type": "integer"},
                "description": "Records of the alarms that the person has seen; refused when others wait.",
            },
            "discard_data": {"type": "boolean"},
            "noise": {"type": ["object", "null"], "additionalProperties": {"type": "number"}},
            "problem": {"type": ["object", "null"], "description": "A wider problem, as problem.save writes it."},
            "trust_anchors": {"type": "boolean"},
            "despite": {"type": ["string", "null"], "description": "Why a declaration with errors is used."},
        },
    ),
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
    paths["/v1/status"] = {"get": _reading("status", "Where the study stands.", "application/json")}
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
    (what, arguments), needed = _CALLS[name], [key for key, must in arguments_of(name).items() if must]
    schema = {"type": "object", "properties": arguments, "required": needed, "additionalProperties": False}
    return {
        "operationId": name,
        "summary": what,
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
