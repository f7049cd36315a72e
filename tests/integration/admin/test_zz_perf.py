import time, psycopg, pytest
from memory_os.storage.database import Database, Scope
from memory_os.outbox.gauges import queue_stats, graph_lag
from memory_os.outbox.operations import *
from uuid import uuid4
pytestmark = pytest.mark.anyio
async def test_perf(database_urls, tenant_factory):
    tenants=[tenant_factory() for _ in range(20)]
    with psycopg.connect(database_urls.owner_url, autocommit=True) as c:
        for t in tenants:
            n = 200000 if t is tenants[0] else 10000
            c.execute("""INSERT INTO outbox_events (tenant_id,event_type,aggregate_type,aggregate_id,version,status,attempts,finished_at,last_error)
              SELECT %s, 'GRAPH_UPSERT','memory',gen_random_uuid(),1,
              CASE WHEN g %% 1000 = 0 THEN 'dead' WHEN g %% 10 = 1 THEN 'pending' ELSE 'done' END, 1,
              CASE WHEN g %% 10 = 1 THEN NULL ELSE now() - random()*interval '24 hours' END, CASE WHEN g %% 1000 = 0 THEN 'ValueError: x' END
              FROM generate_series(1,%s) g""", (t.tenant_id, n))
        c.execute("VACUUM ANALYZE outbox_events")
    db = Database(database_urls.app_url, pool_size=2)
    small, big = tenants[1].tenant_id, tenants[0].tenant_id
    for name, tid in (("big",big),("small",small),("root",None)):
        scope = Scope("memory_os_app", tid or __import__("uuid").UUID(int=0), role="root" if tid is None else "operator")
        for label, f in (("stats", lambda tx: queue_stats(tx, tid)), ("list", lambda tx: list_events(tx, EventFilter(tid), None, 50)),
            ("list-last-section", lambda tx: list_events(tx, EventFilter(tid, status="pending"), None, 50)),
            ("list-discarded", lambda tx: list_events(tx, EventFilter(tid, status="discarded"), None, 50)),
            ("error", lambda tx: list_events(tx, EventFilter(tid, error="ValueError"), None, 50)),
            ("lag", lambda tx: graph_lag(tx, tid or big)),
            ("get", lambda tx: get_event(tx, tid, 200100 if tid!=big else 100000))):
            best=9e9
            for _ in range(3):
                t0=time.perf_counter(); await db.run(scope, f); best=min(best,time.perf_counter()-t0)
            print(name,label,round(best*1000,1),"ms")
    await db.close()
