"""What is decided about the network without looking at it: functions of facts."""
