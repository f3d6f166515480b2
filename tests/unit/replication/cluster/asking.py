"""A controller that is asked over channels which exist only here."""

from __future__ import annotations

from replication.cluster.channel import ChannelLost


class Asked:
    """`answers` are given one after the other: responses, exceptions, or functions of the request."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests, self.dialled, self.closed = [], [], 0
        self.controller = 9

    def to(self, broker_id, purpose):
        self.dialled.append((broker_id, purpose))
        return self

    async def ask(self, request, version=None):
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else ChannelLost("nothing more to say")
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    def abort(self):
        """Nothing is under way between two answers."""

    async def close(self):
        self.closed += 1
