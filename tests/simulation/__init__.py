"""Simulated twins of the runtime's ports."""
