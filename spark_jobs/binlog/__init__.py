"""`python -m spark_jobs binlog`: a MariaDB table's row binlog into a topic, as change events in order.

Where the events come from that `cdc_sync` reads. Not a Spark job: one process, one connection, one
idempotent producer. Modules: `command` (options, the loop), `reader` (row events to changes), `values`
(columns to JSON), `produce` (in order, each once), `position` (what survives a kill), `server` (settings).
"""
