"""Consumer groups: their state, their offsets, and the records they are kept in."""
