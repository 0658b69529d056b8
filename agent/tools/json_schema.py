"""Checks a tool's input against its JSON Schema, and says what is wrong so that a model can correct it.

The sentences name parameters, types and limits; they never quote the input.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.validators import extend

# The schema may come from another server. These keywords can follow links, recurse, backtrack without end or fail on
# NaN: that server has to check them itself.
_LEFT_TO_THE_SERVER: Final = (
    "$ref", "$dynamicRef", "multipleOf", "pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
# JSON Schema calls 1.0 an integer; Python, and with it a tool, does not.
_TYPES: Final = Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
)
_UNCHECKED: Final = dict.fromkeys(_LEFT_TO_THE_SERVER, lambda *_: None)
_Validator: Final = extend(Draft202012Validator, _UNCHECKED, type_checker=_TYPES)  # type: ignore[no-untyped-call]


def coerce(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as models mean them: drop null for an optional parameter, read 500.0 for an integer as 500."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    coerced: dict[str, Any] = {}
    for name, value in arguments.items():
        parameter = properties.get(name)
        kinds = parameter.get("type", ()) if isinstance(parameter, Mapping) else ()
        if value is None and kinds and "null" not in kinds and name not in required:
            continue
        is_whole = isinstance(value, float) and value.is_integer() and "integer" in kinds and "number" not in kinds
        coerced[name] = int(value) if is_whole else value
    return coerced


def faults(value: object, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence per fault, none if ``value`` fits."""
    for error in _Validator(schema).iter_errors(value):
        place = error.json_path.removeprefix("$").removeprefix(".")
        said = error.message.replace(repr(error.instance), f"'{place}'" if place else "the input", 1)
        limit = error.validator_value
        is_named = not isinstance(limit, int) or isinstance(limit, bool) or str(limit) in said
        yield said if is_named else f"{said} ({error.validator}: {limit})"
