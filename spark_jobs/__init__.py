"""The data pipeline on Spark: jobs over any Kafka-compatible broker, by PySpark and its Kafka connector.

Each job is a module of `spark_jobs.jobs` with a click command and a function `run` that takes a session and
dataclasses. Imports none of our other packages, and none of them imports this one: a user copies the folder.
"""
