"""Moving what is durable: a tenant's records as lines of JSON, out of one instance and into another."""
