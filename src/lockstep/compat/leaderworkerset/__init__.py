"""LeaderWorkerSets, replicas of several pods."""
