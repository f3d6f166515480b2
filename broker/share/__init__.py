"""Share groups on this broker: what connects their parts."""
