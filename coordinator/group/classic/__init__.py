"""The classic group protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup) as a pure state machine.

`machine.handle(group, event, now_ms)` is the door; `events` go in, an `effects.Outcome` comes out. Around
it: `commit` (who may commit offsets), `describe` (what admin requests show), `snapshot` (records to and from
groups). No I/O, no clock, no tasks.
"""
