"""What plugin authors read: extension points, what plugins are given, and what they answer."""
