"""Search by meaning: sentence vectors of passages, where they are stored, and how they rank."""
