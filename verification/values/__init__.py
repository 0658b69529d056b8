"""Numbers, dates, units and identifiers as values."""
