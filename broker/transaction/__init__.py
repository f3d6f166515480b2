"""What a transaction coordinator does to other partitions, and what a partition asks of the coordinator."""
