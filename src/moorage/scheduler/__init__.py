"""The scheduler at work: from what an API server shows to bindings written back to it."""
