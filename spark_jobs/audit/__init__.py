"""What `audit` is made of: the two sides, their comparison, and the report."""
