"""The scheduler: from informers on an API server to bindings written back to it."""
