"""What makes a broker a member of a cluster: connections to other brokers."""
