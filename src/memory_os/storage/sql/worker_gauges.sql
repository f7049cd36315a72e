-- A worker that has not been seen for a minute is lost, whatever it said last; stopped ones are history.
SELECT CASE WHEN last_seen < now() - interval '60 seconds' THEN 'lost' ELSE state END AS state, count(*)::int AS workers
FROM workers WHERE state <> 'stopped' GROUP BY 1
