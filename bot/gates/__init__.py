"""Decisions before a turn starts: access, budgets, stops, bystanders."""
