"""Where a follower cuts its log when the leader's went another way (KIP-101, KIP-279). Pure.

The leader answers a fetch with the largest epoch it knows at or below the follower's last one, and where that
epoch ended. The follower looks the same epoch up in its own log. Does it know it, both have the same records
up to the lesser end. Does it not, all records after its own last epoch below are of epochs that the leader
never had: they go, and the next fetch asks about an older epoch. So each round either ends the search or
leaves fewer epochs.
"""

from __future__ import annotations

from storage.leader_epochs import UNDEFINED, EpochEnd


def truncation_offset(diverging: EpochEnd, own: EpochEnd, end_offset: int) -> int:
    """The new end of the follower's log.

    `diverging` is the leader's answer, `own` what the follower's log says of that epoch, `end_offset` where
    the follower's log ends now.
    """
    if own.end_offset == UNDEFINED:  # it kept no epochs: nothing better is known
        return min(diverging.end_offset, end_offset)
    if own.epoch != diverging.epoch:
        return min(own.end_offset, end_offset)
    return min(own.end_offset, diverging.end_offset, end_offset)
