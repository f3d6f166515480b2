"""Who may do what. The authorizer comes with its issue; here are the names of operations."""
