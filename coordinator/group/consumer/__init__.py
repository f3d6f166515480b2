"""Consumer groups (KIP-848): the broker assigns, members reconcile by heartbeats.

`groups.ConsumerGroups` is the door. An operation looks at live state through a `change.GroupChange`, which
collects the records that lead to the next one; nothing changes but by replaying records. `heartbeat` has the
protocol's one request, `reconcile` the steps of a member towards its target, `assign` the epochs and the
assignor, `classic_member` those that still speak the classic protocol, `upgrade` and `downgrade` the ways
between both.
"""
