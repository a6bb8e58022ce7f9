"""Clusters in notebooks and for research: ask, simulate, step through, without asyncio."""
