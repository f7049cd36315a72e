INSERT INTO mentions (
    tenant_id, memory_id, canonical_name, entity_id, name, occurrences, confidence, spans, seen, extractor,
    extractor_version
)
SELECT %(tenant_id)s, memory_id, canonical_name, entity_id, name, occurrences, confidence, spans::int[], seen,
       %(extractor)s, %(extractor_version)s
FROM unnest(
    %(memory_ids)s::uuid[], %(canonical_names)s::text[], %(entity_ids)s::uuid[], %(names)s::text[],
    %(occurrences)s::int[], %(confidences)s::float8[], %(spans)s::text[], %(seen)s::timestamptz[]
) AS given (memory_id, canonical_name, entity_id, name, occurrences, confidence, spans, seen)
