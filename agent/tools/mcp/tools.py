"""The tools of MCP servers for a question."""

import asyncio
import json
import logging
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from mcp import types

from agent.json_data import string
from agent.tasks import background_tasks
from agent.thread.conversation import Viewers, may_see
from agent.tools.mcp.client import ListedTool, McpConnection, McpFailed, Waits
from agent.tools.mcp.config import MAX_ALL_TOOLS, McpServer
from agent.tools.mcp.outside_text import to_one_line, values_in
from agent.tools.mcp.records import failure_in, read_results, refusal_in
from agent.tools.tool import Tool, ToolFailed, ToolResult, ToolSpec

_NO_TEXT: Final = ("The resource is not a text.", "Go on without it.")
_READ_INPUT: Final = {
    "type": "object",
    "properties": {
        "from": {"type": "string", "description": "name of a long result, or address of a resource"},
        "offset": {"type": "integer", "minimum": 0},
        "find": {"type": "string", "description": "words of the passage to begin at"},
    },
    "required": ["from"],
}
_SEARCH_INPUT: Final = {"type": "object", "properties": {"query": {"type": "string"}}}


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of one server."""

    connection: McpConnection
    listed: ListedTool
    spec: ToolSpec

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Call the tool, and return the result's text and its sources."""
        result = await self.connection.request(lambda client: client.call_tool(self.listed.name, dict(arguments)))
        structured = result.structured_content
        texts = [string(text) for text in _texts_of(result, self.connection)]
        whole = "\n".join(texts) or (json.dumps(structured, ensure_ascii=False) if structured else "")
        if failure := (whole or "no message") if result.is_error else failure_in(whole):
            said = to_one_line(failure)
            if refusal := refusal_in(said):
                raise McpFailed(self.connection.server, f"{refusal}: {said}")
            why = f"The tool failed: {said}"
            raise ToolFailed(why, "Call it again with other input, or go on without it.")
        records = await asyncio.to_thread(read_results, texts, structured)
        pages, origin = self.connection.pages, f"tool:{self.spec.name}"
        shown = pages.add(records, values_in(arguments), title=self.listed.title, origin=origin)
        # for example, an empty list
        return shown if shown.sources else replace(shown, content=whole.strip() or "Done.")


@dataclass(frozen=True, slots=True)
class ReadOnTool:
    """Continues a long result of a server, or reads a resource that a result named."""

    connection: McpConnection
    spec: ToolSpec

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Return one part."""
        name, pages, origin = str(arguments["from"]), self.connection.pages, f"tool:{self.spec.name}"
        if name not in pages.links:
            offset, find = int(arguments.get("offset", 0)), str(arguments.get("find", ""))
            return pages.read_on(name, origin=origin, offset=offset, find=find)
        read = await self.connection.request(lambda client: client.read_resource(name))
        texts = [string(text) for text in map(_text_of, read.contents) if text]
        if not texts:
            raise ToolFailed(*_NO_TEXT)
        records = await asyncio.to_thread(read_results, texts)
        return pages.add(records, [name], title=pages.links.get(name) or name, origin=origin)


@dataclass(frozen=True, slots=True)
class AwayTool:
    """Takes the place of the tools of a server that is not connected yet, so that people are told about it."""

    connection: McpConnection
    spec: ToolSpec

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:  # noqa: ARG002 - nothing can be asked
        """Raise ``McpFailed``."""
        raise self.connection.unreachable()


@dataclass(frozen=True, slots=True)
class McpTools:
    """The tools of all servers, as they are now. ``reserved`` names are Orion's own."""

    connections: Sequence[McpConnection] = ()
    reserved: frozenset[str] = frozenset()

    def left_out(self) -> list[str]:
        """Return the names of the tools beyond ``MAX_ALL_TOOLS``, as if one question could use all servers."""
        names = [tool.spec.name for connection in self.connections for tool in _tools_of(connection)]
        return names[MAX_ALL_TOOLS:]

    def by_name(self, viewers: Viewers | None = None) -> dict[str, Tool]:
        """Return at most ``MAX_ALL_TOOLS`` tools in the order of the file. A duplicate name gets a number.

        All ``viewers`` may use them. Without viewers, return the tools of all servers.
        """
        tools: dict[str, Tool] = {}
        usable = (one for one in self.connections if viewers is None or may_see(one.server.audience, viewers))
        for tool in chain.from_iterable(map(_tools_of, usable)):
            name, number = tool.spec.name, 2
            while name in tools or name in self.reserved:
                name, number = f"{tool.spec.name[:60]}_{number}", number + 1
            tools[name] = replace(tool, spec=replace(tool.spec, name=name))
        return dict([*tools.items()][:MAX_ALL_TOOLS])


@asynccontextmanager
async def open_mcp(
    servers: Sequence[McpServer], reserved: frozenset[str], waits: Waits | None = None
) -> AsyncIterator[McpTools]:
    """Stay connected to the servers during the block, which starts after at most ``waits.first``."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)  # the SDK's own lines quote what servers say
    waits = waits or Waits()
    connections = tuple(McpConnection(server, waits) for server in servers)
    async with background_tasks() as group:
        keeping = [group.create_task(one.keep(), name=f"mcp:{one.server.name}") for one in connections]
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(waits.first):
                    for connection in connections:
                        await connection.tried.wait()
            yield McpTools(connections, reserved)
        finally:
            for task in keeping:
                task.cancel()


def _tools_of(connection: McpConnection) -> Iterator[McpTool | ReadOnTool | AwayTool]:
    name = connection.server.name
    for listed in connection.tools:
        yield McpTool(connection, listed, listed.spec)
    if connection.tools:
        does = f"Reads on in a long result of the server {name}, or a resource that a result names."
        yield ReadOnTool(
            connection, ToolSpec(name=f"{name}_read", description=does, parameters=_READ_INPUT, place=name)
        )
    elif not connection.is_connected:
        does = f"Searches the outside server {name}. It cannot be reached now: a call tells the person so."
        spec = ToolSpec(name=f"{name}_search", description=does, parameters=_SEARCH_INPUT, place=name)
        yield AwayTool(connection, spec)


def _text_of(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    """Return the text of a resource, with its link if it has one; an empty text for anything but a text."""
    if isinstance(resource, types.TextResourceContents):
        text = resource.text
    elif (resource.mime_type or "").startswith(("text/", "application/json")):
        text = b64decode(resource.blob).decode("utf-8", "replace")
    else:
        return ""
    uri = str(resource.uri)
    return json.dumps({"url": uri, "": text}) if uri.startswith(("https://", "http://")) and text else text


def _texts_of(result: types.CallToolResult, connection: McpConnection) -> Iterator[str]:
    for part in result.content:
        match part:
            case types.TextContent():
                yield part.text
            case types.EmbeddedResource() if text := _text_of(part.resource):
                yield text
            case types.ResourceLink():
                title, about = part.title or part.name, f" ({part.description})" if part.description else ""
                connection.pages.links[str(part.uri)] = title
                yield f"{title}: {part.uri}{about}"
            case _:
                yield f"[{part.type}, not shown]"
