-- The same text for the same row whatever the login's settings are, and as long as the reader of the file takes.
SELECT set_config('timezone', 'UTC', true), set_config('bytea_output', 'hex', true),
       set_config('extra_float_digits', '1', true),
       set_config('idle_in_transaction_session_timeout', %(idle)s, true)
