DELETE FROM text_frequencies WHERE tenant_id = %(tenant_id)s AND reader = ANY (%(readers)s::text[])
