DELETE FROM workers WHERE id IN (
    SELECT id FROM workers WHERE last_seen < now() - %(seconds)s * interval '1 second' LIMIT %(batch)s)
