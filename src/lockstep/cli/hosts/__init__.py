"""``lockstep cluster create``: a cluster from bare hosts, over ssh."""
