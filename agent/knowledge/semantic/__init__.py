"""Search by meaning: sentence vectors, where they are kept, and how they rank."""
