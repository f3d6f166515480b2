"""SUPPORTED.md says what a running broker says."""

from __future__ import annotations

from ottla import EmbeddedBroker
from ottla.client import KafkaClient
from protocol import messages as m
from tests.support.supported import supported_page, without_reason
from tests.tidy.sources import ROOT


def test_the_page_is_what_a_running_broker_tells_its_clients() -> None:
    with EmbeddedBroker() as broker, KafkaClient(broker.bootstrap_servers) as client:
        asked = m.ApiVersionsRequest(client_software_name="tidy", client_software_version="1")
        told = {api.api_key: (api.min_version, api.max_version) for api in client.call(asked).api_keys}
    page = (ROOT / "SUPPORTED.md").read_text(encoding="utf-8")
    assert page == supported_page(told), "write it again: python -m tests.support.supported > SUPPORTED.md"
    assert not without_reason(told)
