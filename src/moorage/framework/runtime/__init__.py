"""Running the plugins of a profile at each extension point, in order, by the framework's rules."""
