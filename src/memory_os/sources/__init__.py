"""Sources: what memories were taken from, their passages, and the evidence that leads from a memory to them."""
