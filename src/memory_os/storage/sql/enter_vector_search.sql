-- Until the end of the transaction, plans are kept: to plan the search of vectors anew takes as long as to run it, and the
-- planner would do so each time, since it takes all partitions of a kept plan for read, of which but one is.
SELECT set_config('plan_cache_mode', 'force_generic_plan', true)
