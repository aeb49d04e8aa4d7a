"""What people see of objects: pure functions of objects and the time."""
