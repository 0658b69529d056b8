"""Is this text fit to send? A pure library: no I/O, no clock, no network, no vendor.

``check`` judges a draft on the very chunks Slack would get and returns a ``Verdict``; it never raises on bad input.
"""
