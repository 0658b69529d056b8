"""Orion under chaos: whole answers by real processes that are killed, frozen and cut off. ``make chaos`` runs it."""
