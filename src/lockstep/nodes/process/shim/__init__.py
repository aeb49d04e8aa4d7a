"""The shim: one small process beside each container, that outlives the node's own."""
