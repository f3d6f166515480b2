"""What a client shows and trusts. tests/contract has a server to it."""

from __future__ import annotations

import ssl

import pytest

from runtime.client_tls import ClientTls
from tests.support.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


def test_only_what_is_named_is_trusted_and_names_count(authority: Authority):
    context = ClientTls(trust_store=str(authority.path)).context()
    assert [dict(part[0] for part in each["subject"]) for each in context.get_ca_certs()] == [
        {"commonName": "an authority for tests"}
    ]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not ClientTls(trust_store=str(authority.path), check_host_name=False).context().check_hostname


def test_versions_and_ciphers_are_those_that_are_named(authority: Authority):
    cipher = "ECDHE-ECDSA-AES128-GCM-SHA256"
    context = ClientTls(trust_store=str(authority.path), versions=("TLSv1.2",), ciphers=cipher).context()
    assert context.minimum_version is context.maximum_version is ssl.TLSVersion.TLSv1_2
    assert cipher in [each["name"] for each in context.get_ciphers()]
    both = ClientTls(trust_store=str(authority.path)).context()
    assert (both.minimum_version, both.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    with pytest.raises(OSError, match="cipher"):
        ClientTls(trust_store=str(authority.path), ciphers="none of these").context()


def test_a_key_is_opened_with_its_password_and_nobody_is_asked_for_one(authority: Authority):
    store = str(authority.issue("locked", password="secret"))
    ClientTls(store, "secret", str(authority.path)).context()
    for wrong in ("wrong", None):
        with pytest.raises(OSError):  # noqa: PT011 (whose words are OpenSSL's)
            ClientTls(store, wrong, str(authority.path)).context()
    with pytest.raises(OSError, match="No such file"):
        ClientTls(trust_store="/nowhere.pem").context()
