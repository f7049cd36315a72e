import pytest, json
pytestmark = pytest.mark.anyio
async def test_x(client, tenant):
    h=tenant.headers("admin")
    for f in [{"confidence":"0.5"},{"valid_from":1},{"valid_from":1700000000000},{"valid_from":"1"},{"text":5},{"confidence":True},{"tags":"ab"},{"visibility":"TENANT"},{"id":5},{"metadata":[]},{"metadata":None},{"edges":{}},{"tags":[1]},{"title":True}, {"valid_from":1.5},{"valid_from":True},{"confidence":""},{"valid_from":""},{"readers":[]}]:
        a=await client.post("/v1/memories",headers=h,json={"text":"x","label":"Skill",**f})
        b=await client.post("/v1/memories/batch",headers=h,json=[{"text":"x","label":"Skill",**f}])
        print(f,a.status_code,b.json()["results"][0]["status"], a.text[:300] if a.status_code>201 else "")
    a=await client.post("/v1/memories/batch",headers=h,content=b"[" +b" "*(17*1024*1024)+b"]"); print(a.status_code,a.text[:100])
    a=await client.post("/v1/memories",headers=h,content=b"[" +b" "*(17*1024*1024)+b"]"); print(a.status_code,a.text[:200])
    a=await client.get("/v1/memories",headers=h,params={"limit":"5"}); print(a.status_code)
    for q in ["limit=true","limit=","limit=+5","limit=%205","limit=5.5","limit=null"]:
        a=await client.get("/v1/memories?"+q,headers=h); print(q, a.status_code, a.text[:250])
    for q in ["declared=1","declared=yes","declared=FALSE","declared=null","declared="]:
        a=await client.get("/v1/memory/entities?"+q,headers=h); print(q, a.status_code, a.text[:250])
