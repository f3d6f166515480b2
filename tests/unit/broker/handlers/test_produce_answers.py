import pytest

from broker.handlers.produce_answers import NO_ERROR, Partition, answer_template, refused, single_answer
from protocol.errors import ErrorCode


@pytest.mark.parametrize("version", range(14))
def test_a_template_answers_as_the_codec_does(version):
    template = answer_template(version, "orders", bytes(range(16)))
    known = (template.middle, 7) if version >= 5 else ()
    head = template.start + (3).to_bytes(4, "big") + NO_ERROR
    packed = template.pack(template.size, 55, head, 1234567890123, *known, template.tail)
    partition = Partition(index=3, base_offset=1234567890123, log_append_time_ms=-1, log_start_offset=7)
    assert packed == single_answer(version, 55, "orders", bytes(range(16)), partition)


def test_a_refusal_has_no_offsets():
    answer = refused(4, ErrorCode.MESSAGE_TOO_LARGE, "too large")
    assert (answer.index, answer.error_code, answer.error_message) == (4, 10, "too large")
    assert (answer.base_offset, answer.log_append_time_ms, answer.log_start_offset) == (-1, -1, -1)
