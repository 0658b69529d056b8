"""Descriptions of Orion's own tools for the model. The data is in ``specs.toml``, one table per tool."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agent.tools.tool import ToolSpec

_SPECS: Final = tomllib.loads(Path(__file__).with_name("specs.toml").read_text(encoding="utf-8"))


def spec_of(name: str, **gaps: str) -> ToolSpec:
    """Return the description of a tool. Its input has the properties of ``takes``, others only if it is ``open``."""
    told = _SPECS[name]
    needed = {"required": told["required"]} if "required" in told else {}
    closed = {} if told.get("open") else {"additionalProperties": False}
    parameters = {"type": "object", "properties": told.get("takes", {}), **needed, **closed}
    return ToolSpec(name=name, description=told["description"].format(**gaps), parameters=parameters)


def parameter(tool: str, name: str) -> Mapping[str, Any]:
    """Return one parameter of a tool: its default and its limits."""
    found: Mapping[str, Any] = _SPECS[tool]["takes"][name]
    return found
