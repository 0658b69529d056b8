"""The tools that ship with Orion."""
