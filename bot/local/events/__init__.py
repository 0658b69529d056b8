"""Events that the local workspace sends, over Socket Mode or HTTP."""
