"""The share coordinator (KIP-932): how far share groups have come, partition by partition, in the log of
`__share_group_state`.

A snapshot record holds the whole state of one share partition, the updates behind it what has changed since.
What lies before the oldest snapshot that still counts is deleted from the log.
"""
