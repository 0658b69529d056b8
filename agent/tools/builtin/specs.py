"""Descriptions of Orion's own tools for the model. The data is in ``specs.toml``, one table per tool."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agent.tools.tool import ToolSpec

_SPECS: Final = tomllib.loads(Path(__file__).with_name("specs.toml").read_text(encoding="utf-8"))


def spec_of(name: str, **gaps: str) -> ToolSpec:
    """Return the description of a tool. Its input has the properties of ``takes``, others only if it is ``open``."""
    spec = _SPECS[name]
    required = {"required": spec["required"]} if "required" in spec else {}
    closed = {} if spec.get("open") else {"additionalProperties": False}
    parameters = {"type": "object", "properties": spec.get("takes", {}), **required, **closed}
    description, place = spec["description"].format(**gaps), spec.get("place", "")
    return ToolSpec(name=name, description=description, parameters=parameters, place=place)


def parameter(tool: str, name: str) -> Mapping[str, Any]:
    """Return one parameter of a tool: its default and its limits."""
    described: Mapping[str, Any] = _SPECS[tool]["takes"][name]
    return described
