"""A profile at work: runs the plugins of each extension point, in order, by the framework's rules."""
