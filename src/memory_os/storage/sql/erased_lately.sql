-- Which of these records were erased a short while ago.
SELECT DISTINCT told.id FROM erasures AS e, unnest(e.record_ids) AS told (id)
WHERE e.tenant_id = %(tenant_id)s AND e.at > now() - interval '1 hour' AND told.id = ANY (%(ids)s)
