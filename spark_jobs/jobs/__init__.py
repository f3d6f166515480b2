"""The jobs, one module each: `command` for the command line, `run` for a session that is already there."""
