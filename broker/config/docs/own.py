"""Texts on keys that only Ottla has, in the notation of the package."""

TABLE = """
ottla.cluster.file
    A file in which brokers of one machine share their cluster's metadata, made if it is missing. Brokers that
    name the same file form a cluster; none of them needs ZooKeeper.
ottla.cluster.session.timeout.ms
    After how long without a sign of life a broker is taken for dead by those it shares ottla.cluster.file
    with.
ottla.zookeeper.digest
    What this broker says to ZooKeeper about who it is, as user:password of the digest scheme. With
    zookeeper.set.acl=true only those who know it can change what the broker creates, so brokers of Apache
    Kafka cannot.
"""
