-- How similar the vectors of pairs of memories are; no row where one of them has none of this model.
SELECT given.one, given.other, 1 - (a.embedding <=> b.embedding) AS similarity
FROM unnest(%(ones)s::uuid[], %(others)s::uuid[]) AS given (one, other)
     JOIN memory_embeddings AS a ON a.tenant_id = %(tenant_id)s AND a.memory_id = given.one AND a.model = %(model)s
     JOIN memory_embeddings AS b ON b.tenant_id = %(tenant_id)s AND b.memory_id = given.other AND b.model = %(model)s
