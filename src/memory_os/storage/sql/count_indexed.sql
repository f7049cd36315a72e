-- How many vectors a partition holds by now, and whether all that a build put there are marked.
UPDATE vector_partitions SET rows = rows + %(put)s, marked = marked OR %(marked)s WHERE tenant_id = %(tenant_id)s
