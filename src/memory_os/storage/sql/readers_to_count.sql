-- The readers of a tenant's postings whose counts are missing or out of date: from 500 records on, where their number
-- has changed since by 500 and by a tenth. Each is judged by its own records alone, so that nothing in the counts of
-- one tells of what others have. One posting of impact 0 stands for each record.
SELECT DISTINCT coalesce(now.reader, known.reader) AS reader
FROM (
    SELECT p.term, p.reader, count(*) AS records FROM postings AS p
    WHERE p.tenant_id = %(tenant_id)s AND p.impact = 0
    GROUP BY p.term, p.reader
) AS now FULL JOIN (
    SELECT DISTINCT f.reader FROM text_frequencies AS f WHERE f.tenant_id = %(tenant_id)s
) AS known ON known.reader = now.reader
LEFT JOIN text_frequencies AS total ON total.tenant_id = %(tenant_id)s AND total.term = now.term
WHERE now.reader IS NULL
   OR (total.records IS NULL AND now.records >= %(least)s)
   OR abs(now.records - total.records) >= greatest(%(least)s, total.records / 10)
