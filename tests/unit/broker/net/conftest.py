import pytest

from tests.support.net_broker import NetBroker


@pytest.fixture
def broker(tmp_path):
    with NetBroker(tmp_path) as made:
        made.create("orders", 3)
        yield made


@pytest.fixture
def client(broker):
    return broker.connect()
