from protocol.errors import ErrorCode
from storage.producers import verification
from storage.producers.verification import Verifications
from tests.support.logs import START_MS, batch, marker
from tests.unit.storage.txn_log import Log, refused


def test_only_the_guard_that_was_given_is_accepted():
    known = Verifications()
    assert not known.accepts(1, None)
    guard = known.begin(1, 0, 0, False, 100)
    other = known.begin(2, 0, 0, False, 100)
    assert known.begin(1, 0, 0, False, 200) is guard
    assert known.accepts(1, guard)
    assert not known.accepts(1, other)
    assert not known.accepts(1, None)
    known.end(1)
    assert not known.accepts(1, guard)
    assert known.begin(1, 0, 0, False, 300) is not guard


def test_the_lowest_sequence_that_was_tried_is_kept():
    known = Verifications()
    assert known.get(1) is None
    known.begin(1, 7, 0, False, 100)
    known.begin(1, 3, 0, False, 100)
    known.begin(1, 9, 1, False, 100)
    assert known.get(1).lowest_sequence == 3
    known.end(1)
    known.begin(1, 7, 0, True, 100)
    known.begin(1, 9, 1, True, 100)  # the sequences of a new epoch begin anew
    assert known.get(1).lowest_sequence == 9


def test_those_that_wait_for_long_expire():
    known = Verifications()
    known.begin(1, 0, 0, False, 100)
    known.begin(2, 0, 0, False, 200)
    known.expire(1100, 1000)
    assert len(known) == 1
    assert known.get(1) is None
    known.clear()
    assert not len(known)


def test_their_number_is_bounded(monkeypatch):
    monkeypatch.setattr(verification, "VERIFICATIONS_MAX", 3)
    known = Verifications()
    guards = [known.begin(producer, 0, 0, False, 100) for producer in range(5)]
    assert len(known) == 3
    assert [known.accepts(producer, guard) for producer, guard in enumerate(guards)] == [
        False, False, True, True, True,
    ]  # fmt: skip


# --- in a log


def test_a_first_batch_needs_a_guard_where_verification_is_on():
    """storage.md 86."""
    log = Log()
    log.manager.producer_settings.verify = True
    with refused(ErrorCode.INVALID_TXN_STATE):
        log.data(1)
    assert not log.log.producers.entries
    guard = log.log.start_verification(1, 0, 0, False, START_MS)
    assert guard is log.log.start_verification(1, 0, 0, False, START_MS)
    assert log.write(batch(1, producer=1, epoch=0, sequence=0)) == 0  # idempotent: the guard stays
    log.sequences[1, 0] = 1
    with refused(ErrorCode.INVALID_TXN_STATE):
        log.data(1, guard=log.log.start_verification(2, 0, 0, False, START_MS))
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        log.data(1, guard=guard)  # sequence 1, and 0 was to be verified


def test_a_transaction_of_an_older_epoch_vouches_for_nobody():
    """It was ended under the next epoch, and its marker is not here yet."""
    log = Log()
    log.data(1)
    log.manager.producer_settings.verify = True
    assert log.log.start_verification(1, 1, 0, True, START_MS) is None
    assert log.log.start_verification(1, 0, 1, True, START_MS) is not None
    with refused(ErrorCode.INVALID_TXN_STATE):
        log.data(1, epoch=1)


def test_a_guard_serves_one_transaction():
    log = Log()
    log.manager.producer_settings.verify = True
    guard = log.log.start_verification(1, 0, 0, False, START_MS)
    log.abort(1)
    with refused(ErrorCode.INVALID_TXN_STATE):
        log.data(1, guard=guard)
    guard = log.log.start_verification(1, 0, 0, False, START_MS)
    assert log.data(1, guard=guard) == 1
    assert log.log.start_verification(1, 1, 0, False, START_MS) is None
    assert log.data(1) == 2
    duplicate = log.stage(batch(1, producer=1, epoch=0, sequence=1, transactional=True))
    assert (duplicate.base_offset, duplicate.duplicate) == (2, True)
    log.commit(1)
    with refused(ErrorCode.INVALID_TXN_STATE):
        log.data(1, guard=guard)
    again = log.stage(batch(1, producer=1, epoch=0, sequence=1, transactional=True))
    assert again.duplicate  # a resend of what is in the log needs no guard


def test_what_a_follower_copies_ends_a_verification_that_it_began_as_the_leader():
    """The batch that was verified here was appended by the next leader. When this broker leads again the one
    behind it is to come.
    """
    log = Log()
    log.manager.producer_settings.verify = True
    log.log.start_verification(1, 0, 0, False, START_MS)
    copied = bytes(batch(1, producer=1, epoch=0, sequence=0, transactional=True))
    assert log.log.append_as_follower(copied, START_MS) == 1
    assert log.log.start_verification(1, 1, 0, False, START_MS) is None, "it is open by what was copied"
    assert log.write(batch(1, producer=1, epoch=0, sequence=1, transactional=True)) == 1


def test_a_later_batch_does_not_overtake_one_that_waits_for_verification():
    log = Log()
    log.manager.producer_settings.verify = True
    log.log.start_verification(1, 5, 0, False, START_MS)
    guard = log.log.start_verification(1, 3, 0, False, START_MS)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        log.write(batch(1, producer=1, epoch=0, sequence=5, transactional=True), guard=guard)
    assert log.write(batch(1, producer=1, epoch=0, sequence=3, transactional=True), guard=guard) == 0
    assert log.write(batch(1, producer=1, epoch=0, sequence=4, transactional=True)) == 1


def test_verifications_of_a_new_epoch_begin_anew_and_old_ones_expire():
    log = Log()
    log.manager.producer_settings.verify = True
    log.log.start_verification(1, 5, 0, True, START_MS)
    guard = log.log.start_verification(1, 9, 1, True, START_MS)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        log.write(batch(1, producer=1, epoch=1, sequence=10, transactional=True), guard=guard)
    log.clock.ms += 86_400_000
    assert sum(log.manager.expire_producers()) == 0
    with refused(ErrorCode.INVALID_TXN_STATE):
        log.write(batch(1, producer=1, epoch=1, sequence=9, transactional=True), guard=guard)


def test_a_producer_of_transactions_v2_that_is_not_known_begins_at_zero():
    log = Log()
    log.manager.producer_settings.verify = True
    guard = log.log.start_verification(1, 4, 0, True, START_MS)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        log.write(batch(1, producer=1, epoch=0, sequence=4, transactional=True), guard=guard)
    log.log.start_verification(1, 0, 0, True, START_MS)
    assert log.write(batch(4, producer=1, epoch=0, sequence=0, transactional=True), guard=guard) == 0
    log.write(marker(1, 0, commit=True))
    guard = log.log.start_verification(1, 4, 0, True, START_MS)
    assert log.write(batch(1, producer=1, epoch=0, sequence=4, transactional=True), guard=guard) == 5
