"""Service-account issuer discovery: what OpenID Connect clients need to verify service accounts' tokens."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from moorage.http.transport import Response
from moorage_cluster.apiserver.auth.claims import ISSUER
from moorage_cluster.apiserver.auth.jwt import ALGORITHM, SigningKey
from moorage_cluster.apiserver.store import encode

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
KEYS_PATH: Final = "/openid/v1/jwks"
_HEADERS: Final = {"Cache-Control": "public, max-age=3600"}


class IssuerDocuments:
    """The two documents of an issuer: where its keys are, and the keys."""

    def __init__(self, key: SigningKey) -> None:
        self._keys = encode({"keys": [key.public_jwk()]})

    def configuration(self, host: str) -> Response:
        """The discovery document for a client that reaches the server as `host`."""
        document = {
            "issuer": ISSUER,
            "jwks_uri": f"https://{host or urlsplit(ISSUER).netloc}{KEYS_PATH}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }
        return Response(200, encode(document), headers=dict(_HEADERS))

    def keys(self) -> Response:
        """The public keys that verify tokens."""
        return Response(200, self._keys, "application/jwk-set+json", dict(_HEADERS))
