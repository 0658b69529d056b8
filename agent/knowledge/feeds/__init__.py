"""Programs that print the documents of a vendor's system as a feed."""
