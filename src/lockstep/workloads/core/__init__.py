"""What each kind of workload asks for next: functions of objects and time alone."""
