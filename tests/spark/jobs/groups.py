"""Groups in which pytest-xdist gives these tests to its workers, beside the one of their folder (`spark`).

Each group has a Spark of its own: one for all would be the longest chain of the whole run.
"""

CHANGES = "spark-changes"  # jobs that follow or copy what changes
