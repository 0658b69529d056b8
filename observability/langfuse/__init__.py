"""Langfuse: traces, scores, dashboards, experiments."""
