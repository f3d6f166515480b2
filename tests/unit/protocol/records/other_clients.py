"""The record classes and codecs of kafka-python and aiokafka, which ours must agree with byte for byte."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas by a deprecated call
    from aiokafka.record import default_records as aio_batches
    from aiokafka.record import legacy_records as aio_messages
    from kafka import codec as codecs
    from kafka.record import MemoryRecords
    from kafka.record import default_records as batches
    from kafka.record import legacy_records as messages

__all__ = ["MemoryRecords", "aio_batches", "aio_messages", "batches", "codecs", "messages"]
