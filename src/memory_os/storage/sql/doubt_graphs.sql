-- The server was restarted or replaced, and what it had acknowledged last may be gone: readers are told until every graph
-- has been compared with its canonical rows and mended.
UPDATE graph_states SET doubt = coalesce(doubt, %(reason)s), doubted_at = coalesce(doubted_at, now())
