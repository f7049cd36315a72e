"""Business memory of one shape: observations, procedures and outcomes."""
