"""A directory on its way to a job's pods: its files, their parts, their place in the cluster."""
