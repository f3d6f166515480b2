"""Compaction: of all records with one key only the newest stays (Kafka's log cleaner)."""
