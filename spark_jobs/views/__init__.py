"""What `behaviour` is made of: events, sessions, pairs."""
