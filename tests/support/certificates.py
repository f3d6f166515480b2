"""Certificates for tests of TLS: an authority of the test's own, and what it has signed.

    authority = Authority(folder)
    server = authority.issue("server", "localhost", "127.0.0.1")

They are made by the openssl program, last for ten days, and lie in `folder` as PEM files: `authority.path` is
to be trusted, what `issue` returns holds the private key, the certificate and that of the authority.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """See the module."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "authority.pem"
        self._key = folder / "authority.key"
        self._openssl(
            *("req", "-x509", *_KEY, "-days", "10", "-subj", "/CN=an authority for tests"),
            *("-keyout", str(self._key), "-out", str(self.path)),
        )

    def issue(self, name: str, *hosts: str, password: str | None = None) -> Path:
        """A private key and its certificate for these host names and addresses; the key is encrypted where
        there is a password.
        """
        key, request, certificate = (self._folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
        self._openssl(
            *("req", "-new", *_KEY, "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(request))
        )
        if password is not None:
            plain = key.rename(self._folder / f"{name}.plain")
            self._openssl(
                *("pkcs8", "-topk8", "-in", str(plain), "-out", str(key), "-passout", f"pass:{password}")
            )
        kinds = (f"{'IP' if host[0].isdigit() else 'DNS'}:{host}" for host in hosts)
        extensions = self._folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={','.join(kinds)}\n" if hosts else "")
        self._openssl(
            *("x509", "-req", "-in", str(request), "-days", "10", "-extfile", str(extensions)),
            *("-CA", str(self.path), "-CAkey", str(self._key), "-CAcreateserial", "-out", str(certificate)),
        )
        store = self._folder / f"{name}.pem"
        store.write_bytes(b"".join(part.read_bytes() for part in (key, certificate, self.path)))
        return store

    @staticmethod
    def _openssl(*arguments: str) -> None:
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
