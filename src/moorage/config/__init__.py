"""The scheduler's configuration: its types, defaults, loading, validation, and conversion of old versions."""
