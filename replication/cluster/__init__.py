"""The broker's side of a cluster: roles by LeaderAndIsr, replication by fetching, changes of the ISR."""
