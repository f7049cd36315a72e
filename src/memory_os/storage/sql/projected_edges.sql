SELECT id, type, source_memory_id, source_entity_id, target_memory_id, target_entity_id, confidence,
       co_reference_count, claimed_confidence
FROM edges WHERE tenant_id = %(tenant_id)s AND id = ANY (%(ids)s)
