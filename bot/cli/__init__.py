"""The commands of `orion`."""
