"""The Web API methods of the local workspace."""
