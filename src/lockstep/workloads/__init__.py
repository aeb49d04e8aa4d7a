"""Deployments, StatefulSets, DaemonSets and CronJobs on servers without kube-controller-manager.

Reading starts at :mod:`lockstep.workloads.main`.
"""
