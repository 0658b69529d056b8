"""A leaf: logs, metrics, traces, counters. Imports nothing of ours."""
