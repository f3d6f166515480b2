"""Kafka's record formats: batches of magic 2, message sets of magic 0 and 1, codecs, checksums, and what a
broker checks and changes in what a client produces.

Start with `batch.py` (the format), `check.py` (the checks of a Produce, in order) and `walk.py` (the hot
loop). Nothing is imported here: users name the module they need.
"""
