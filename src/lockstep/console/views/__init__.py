"""From objects and a query to rows, aggregates and deltas; without I/O."""
