"""`orion eval`, `orion bench` and `orion verify`."""
