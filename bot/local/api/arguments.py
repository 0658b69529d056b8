"""Reads the arguments of a Web API call from query string, form or JSON body, with Slack's error names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from bot.local.model.errors import ApiError, invalid
from bot.local.model.roster import Json


class Arguments:
    """Named arguments of one call."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Values are strings when they came by query or form, JSON values otherwise."""
        self.values = dict(values)

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def text(self, name: str, default: str = "") -> str:
        """The argument as text."""
        value = self.values.get(name)
        return default if value is None else str(value)

    def required(self, name: str) -> str:
        """The argument as text that must not be empty. Raises ``ApiError``: ``invalid_arguments``."""
        value = self.text(name)
        if not value:
            raise invalid([f"missing required field: {name}"])
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """The argument as a truth value."""
        if name not in self:
            return default
        return str(self.values[name]).lower() in ("1", "true")

    def number(self, name: str, default: int) -> int:
        """The argument as a whole number. Raises ``ApiError``: ``invalid_arguments``."""
        try:
            return int(self.values[name]) if name in self else default
        except (TypeError, ValueError):
            raise invalid([f"must be an integer [json-pointer:/{name}]"]) from None

    def structure(self, name: str, *, error: str = "invalid_arguments") -> Any:
        """The argument as JSON: forms carry it as a string.

        Raises ``ApiError``: ``error`` when the string is no JSON.
        """
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise ApiError(error) from None

    def objects(self, name: str, *, error: str) -> list[Json]:
        """The argument as a list of JSON objects; empty when absent.

        Raises ``ApiError``: ``error`` when it is anything else.
        """
        value = self.structure(name, error=error)
        if value is None or value == "":
            return []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise ApiError(error)
        return value


async def read_arguments(request: web.Request) -> Arguments:
    """Query string, form fields and JSON body of a request in one.

    Raises ``ApiError``: ``invalid_json`` or ``json_not_object``.
    """
    values: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        raw = await request.text()
        if not raw.strip():
            return Arguments(values)
        try:
            body = json.loads(raw)
        except ValueError:
            raise ApiError(error="invalid_json") from None
        if not isinstance(body, dict):
            raise ApiError(error="json_not_object")
        return Arguments(values | body)
    form = await request.post()
    return Arguments(values | {key: value for key, value in form.items() if isinstance(value, str)})
