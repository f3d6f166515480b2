"""Share groups (KIP-932) as their coordinator sees them: who is in a group, and which partitions its members
read together.

Members come and go by heartbeats alone. There is no handing over: an assignment changes at once, and members
may overlap. What consumers have read is not kept here but with the share coordinator; here is only which
partitions have such state (`state_partitions`), as nothing else may be handed out.
"""
