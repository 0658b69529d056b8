"""Tools from MCP servers."""
