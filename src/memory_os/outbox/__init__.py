"""The transactional outbox: events, their states, and the queue that workers claim from."""
