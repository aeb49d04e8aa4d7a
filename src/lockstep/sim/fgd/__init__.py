"""The protocol of "Beware of Fragmentation" (USENIX ATC 2023): a cluster filled pod by pod."""
