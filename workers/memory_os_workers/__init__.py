"""The worker process: small actors, one a file, around the engine in `memory_os`."""
