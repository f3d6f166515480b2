"""Idempotence: what a log remembers of each producer that wrote to it (KIP-98)."""
