"""What runs inside a kernel's pod: the keeper beside the kernel, and the code that parks it."""
