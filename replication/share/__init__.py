"""Share groups on the side of the data: which records are out with whom (KIP-932)."""
