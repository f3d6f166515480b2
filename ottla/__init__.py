"""What users import: an Apache Kafka compatible broker for their process to start.

Importing this package imports no code of the broker itself. A broker runs in an interpreter of its own, whose
path is arranged by `ottla.paths`, so nothing but the name `ottla` is added to the user's program.
"""

from ottla.embedded import BrokerFailed, EmbeddedBroker
from ottla.version import __version__

__all__ = ["BrokerFailed", "EmbeddedBroker", "__version__"]
