"""What every controller is built of: queue, reconciler, actions, status, refusals, manager."""
