-- In how many records each word of some readers' postings stands, of common words only; the word of no letters, which
-- every record has, gives their number. Reads all postings of the tenant.
INSERT INTO text_frequencies (tenant_id, term, reader, records)
SELECT %(tenant_id)s, p.term, p.reader, count(*) FROM postings AS p
WHERE p.tenant_id = %(tenant_id)s AND p.reader = ANY (%(readers)s::text[])
GROUP BY p.term, p.reader
HAVING count(*) >= %(least)s
