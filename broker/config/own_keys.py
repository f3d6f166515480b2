"""Keys that Apache Kafka does not have. They begin with `ottla.`, and are shown where they are set.

One key a line in the notation that definitions.py explains.
"""

TABLE = """
ottla.cluster.file string null ro
ottla.cluster.session.timeout.ms int 6000 ro 1000..
ottla.zookeeper.digest password null ro
"""
