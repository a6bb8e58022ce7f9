"""What is kept from one pod to the next: equivalence classes, and plugin results for each of them."""
