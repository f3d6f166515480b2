"""TLS of a client: which certificates it shows and trusts, and which protocols it speaks.

Certificates come as PEM files: the key store holds the private key and the chain of its certificate, the
trust store the certificates that may have signed the server's. Java's own kinds of stores (JKS, PKCS12)
cannot be read without Java. Files are read anew for each context, so that renewed ones are taken.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(slots=True, frozen=True)
class ClientTls:
    """`key_store` is None where this side shows no certificate, `trust_store` where those of the system are
    trusted. `versions` are names of VERSIONS; all between the lowest and the highest are offered. `ciphers`
    (for TLSv1.2) are in OpenSSL's words.
    """

    key_store: str | None = None
    key_password: str | None = None
    trust_store: str | None = None
    check_host_name: bool = True
    versions: tuple[str, ...] = tuple(VERSIONS)
    ciphers: str | None = None

    def context(self) -> ssl.SSLContext:
        """Made anew from the files. Raises OSError (ssl.SSLError is one) for files that are not as needed."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.check_host_name
        wanted = sorted(VERSIONS[name] for name in self.versions)
        context.minimum_version, context.maximum_version = wanted[0], wanted[-1]
        if self.ciphers is not None:
            context.set_ciphers(self.ciphers)
        if self.trust_store is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(self.trust_store)
        if self.key_store is not None:
            password = self.key_password or ""  # None would ask the terminal for it
            context.load_cert_chain(self.key_store, password=password)
        return context
