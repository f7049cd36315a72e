"""The projection: making the graph agree with the canonical rows, one batch of events at a time or as a whole."""
