"""Logs, metrics, traces and counters. A leaf package: it imports no other package of ours."""
