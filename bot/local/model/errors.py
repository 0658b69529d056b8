"""Errors of the Web API: a name as in Slack, with further fields."""

from typing import Any


class ApiError(Exception):
    """The call is refused, or names an unknown object."""

    def __init__(
        self, error: str, *, status: int = 200, retry_after: int | None = None, extra: dict[str, Any] | None = None
    ) -> None:
        super().__init__(error)
        self.error = error  # Slack's name for it
        self.status = status  # Slack answers 200 to nearly everything
        self.retry_after = retry_after  # seconds
        self.extra = extra or {}  # further fields of the answer's body


def invalid(messages: list[str], error: str = "invalid_arguments") -> ApiError:
    """An error that lists what is wrong with the arguments, as Slack does in ``response_metadata``."""
    listed = [f"[ERROR] {message}" for message in messages]
    return ApiError(error, extra={"errors": messages, "response_metadata": {"messages": listed}})
