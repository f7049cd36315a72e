INSERT INTO extractions (tenant_id, memory_id, extractor, extractor_version)
SELECT %(tenant_id)s, id, %(extractor)s, %(extractor_version)s FROM unnest(%(ids)s::uuid[]) AS given (id)
ON CONFLICT (tenant_id, memory_id) DO UPDATE
SET extractor = excluded.extractor, extractor_version = excluded.extractor_version, at = now()
