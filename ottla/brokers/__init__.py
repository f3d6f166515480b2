"""Several brokers of one machine under one command: `ottla serve --brokers N`."""
