"""The only door to the operating system: clock, chance, files, sockets, threads, processes and tasks.

Nothing outside this package calls `time`, `random`, `open` or `socket`. Components take an `Env` by
constructor, so that a whole cluster can run in one process under virtual time with simulated disks and
networks.

Imports nothing of ours. `runtime.system` holds the bundle; each port has a module of its own.
"""
