"""The durable log of accepted batches, one per host."""
