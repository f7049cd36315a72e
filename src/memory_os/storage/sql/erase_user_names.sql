-- Where others' rows say that the user did something: somebody did. Evidence that was withdrawn keeps the readers that its
-- source had.
WITH acted AS (
    UPDATE memory_acts AS t SET user_id = NULL WHERE t.tenant_id = %(tenant_id)s AND t.user_id = %(user)s RETURNING 1
),
merged AS (
    UPDATE entity_acts AS t SET user_id = NULL WHERE t.tenant_id = %(tenant_id)s AND t.user_id = %(user)s RETURNING 1
),
decided AS (
    UPDATE memory_reviews AS t SET decided_by = NULL
    WHERE t.tenant_id = %(tenant_id)s AND t.decided_by = %(user)s RETURNING 1
),
chosen AS (
    UPDATE insight_candidates AS t SET decided_by = NULL
    WHERE t.tenant_id = %(tenant_id)s AND t.decided_by = %(user)s RETURNING 1
),
proposed AS (
    UPDATE corrections AS t
    SET proposed_user = nullif(t.proposed_user, %(user)s), decided_user = nullif(t.decided_user, %(user)s)
    WHERE t.tenant_id = %(tenant_id)s AND %(user)s IN (t.proposed_user, t.decided_user) RETURNING 1
),
recorded AS (
    UPDATE evidence AS t
    SET acting_user = nullif(t.acting_user, %(user)s), user_id = nullif(t.user_id, %(user)s),
        reader_users = array_remove(t.reader_users, %(user)s)
    WHERE t.tenant_id = %(tenant_id)s
      AND (%(user)s IN (t.acting_user, t.user_id) OR %(user)s = ANY (t.reader_users)) RETURNING 1
),
logged AS (
    UPDATE audit_log AS t
    SET user_id = nullif(t.user_id, %(user)s),
        target_id = CASE WHEN t.target_type = 'user' AND t.target_id = %(user)s THEN 'erased' ELSE t.target_id END
    WHERE t.tenant_id = %(tenant_id)s
      AND (t.user_id = %(user)s OR (t.target_type = 'user' AND t.target_id = %(user)s)) RETURNING 1
),
told AS (
    UPDATE audit_contents AS t
    SET user_id = nullif(t.user_id, %(user)s), reader_users = array_remove(t.reader_users, %(user)s)
    WHERE t.tenant_id = %(tenant_id)s AND (t.user_id = %(user)s OR %(user)s = ANY (t.reader_users)) RETURNING 1
),
discarded AS (
    UPDATE outbox_events AS t SET discarded_by = 'erased'
    WHERE t.tenant_id = %(tenant_id)s AND t.discarded_by = %(user)s RETURNING 1
),
rebuilt AS (
    UPDATE graph_rebuilds AS t
    SET user_id = nullif(t.user_id, %(user)s),
        requested_by = CASE WHEN t.requested_by = %(user)s THEN 'erased' ELSE t.requested_by END
    WHERE t.tenant_id = %(tenant_id)s AND %(user)s IN (t.user_id, t.requested_by) RETURNING 1
),
compared AS (
    UPDATE graph_verifications AS t SET requested_by = 'erased'
    WHERE t.tenant_id = %(tenant_id)s AND t.requested_by = %(user)s RETURNING 1
),
found AS (
    UPDATE retrieval_feedback AS t SET user_id = NULL
    WHERE t.tenant_id = %(tenant_id)s AND t.user_id = %(user)s RETURNING 1
),
erased AS (
    UPDATE erasures AS t SET acting_user = NULL
    WHERE t.tenant_id = %(tenant_id)s AND t.acting_user = %(user)s RETURNING 1
)
SELECT (SELECT count(*) FROM acted) AS memory_acts, (SELECT count(*) FROM merged) AS entity_acts,
       (SELECT count(*) FROM decided) AS memory_reviews,
       (SELECT count(*) FROM chosen) AS insight_candidates, (SELECT count(*) FROM proposed) AS corrections,
       (SELECT count(*) FROM recorded) AS evidence, (SELECT count(*) FROM logged) AS audit_log,
       (SELECT count(*) FROM told) AS audit_contents, (SELECT count(*) FROM discarded) AS outbox_events,
       (SELECT count(*) FROM rebuilt) AS graph_rebuilds, (SELECT count(*) FROM compared) AS graph_verifications,
       (SELECT count(*) FROM found) AS retrieval_feedback, (SELECT count(*) FROM erased) AS erasures
