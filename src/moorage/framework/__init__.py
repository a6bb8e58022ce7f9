"""The scheduling framework: extension points, what plugins see and answer, and the runtime over them."""
