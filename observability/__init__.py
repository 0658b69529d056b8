"""A leaf: logs, metrics, traces, counters. Imports no other package of ours."""
