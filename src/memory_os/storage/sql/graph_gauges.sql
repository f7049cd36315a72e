SELECT tenant_id, differences, dead, seconds_ago, doubted FROM graph_gauges()
