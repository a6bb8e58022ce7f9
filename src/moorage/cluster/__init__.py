"""The scheduler's state: the cache, which applies events, and its columnar snapshots."""
