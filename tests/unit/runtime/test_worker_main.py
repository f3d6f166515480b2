"""The child side alone, on streams in memory."""

import io
import operator
import pickle
import threading

from runtime.worker_main import LENGTH, serve


def answers_to(*calls):
    requests = io.BytesIO()
    for call in calls:
        pickled = pickle.dumps(call)
        requests.write(LENGTH.pack(len(pickled)) + pickled)
    requests.seek(0)
    out = io.BytesIO()
    serve(requests, out)
    out.seek(0)
    answers = []
    while head := out.read(LENGTH.size):
        answers.append(pickle.loads(out.read(LENGTH.unpack(head)[0])))
    return answers


def test_calls_are_answered_in_order_until_the_input_ends():
    assert answers_to((operator.add, (1, 2)), (operator.mul, (3, 4))) == [(True, 3), (True, 12)]
    assert answers_to() == []


def test_errors_and_results_that_cannot_travel_are_answers_too():
    failed, unpicklable, fine = answers_to(
        (operator.truediv, (1, 0)), (threading.Lock, ()), (operator.neg, (1,))
    )
    assert failed[0] is False
    assert isinstance(failed[1], ZeroDivisionError)
    assert unpicklable[0] is False
    assert fine == (True, -1)


def test_a_cut_request_ends_the_worker_quietly():
    out = io.BytesIO()
    serve(io.BytesIO(b"\0\0\0"), out)
    assert out.getvalue() == b""
