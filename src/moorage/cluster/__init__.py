"""The state a scheduler keeps: the cache that follows events, and its columnar snapshots."""
