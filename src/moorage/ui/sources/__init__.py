"""What the page can show: clusters and files."""
