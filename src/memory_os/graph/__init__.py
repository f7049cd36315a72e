"""Graph memory: the port, its two backends, and the facade over them."""
