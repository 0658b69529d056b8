"""What is decided before a turn starts: access, budgets, stops, bystanders."""
