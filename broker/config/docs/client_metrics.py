"""Texts on the keys of client metrics subscriptions, in the notation of the package."""

TABLE = """
interval.ms
    How often clients send the metrics of the subscription, in milliseconds.
match
    Which clients send metrics, as a list of selector=pattern; all must match, and an empty list takes every
    client.
metrics
    Beginnings of the names of the metrics that are sent; * takes all of them, an empty list none.
"""
