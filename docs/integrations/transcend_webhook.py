"""A handler for webhooks in the manner of Transcend: a privacy request arrives, a person is erased, the result is reported back.

Transcend signs its webhooks with a JSON web token in the header `x-sombra-token` and names the request in `x-transcend-nonce`; what was
done is reported by a PUT to `/v1/data-silo` with the same nonce. The public key is the one that your gateway shows.
"""

import json
import urllib.request

import jwt

from efface_client import EffaceClient


class TranscendHandler:
    """What a webhook needs: the gateway's public key (PEM) and address, an API key, and an efface server."""

    def __init__(self, public_key, gateway, api_key, client: EffaceClient):
        self.public_key = public_key
        self.gateway = gateway.rstrip("/")
        self.api_key = api_key
        self.client = client

    def handle(self, headers, body):
        """The status to answer the webhook with. Raises where the erasure failed, so that the webhook is sent again."""
        headers = {name.lower(): value for name, value in headers.items()}
        try:
            jwt.decode(headers["x-sombra-token"], self.public_key, algorithms=["ES384"], options={"verify_aud": False})
        except (KeyError, jwt.InvalidTokenError):
            return 401
        event = json.loads(body)
        if event.get("type") != "ERASURE":
            # Nothing is held here that could be shown or corrected by this webhook.
            return 204
        person = event["extras"]["profile"]["identifier"]
        answer = self.client.erase(person, key=f"transcend-{event['extras']['request']['id']}")
        receipts = [model["receipt"]["id"] for model in answer["models"] if model.get("receipt")]
        self.report(headers["x-transcend-nonce"], person, receipts)
        return 200

    def report(self, nonce, person, receipts):
        body = {"profiles": [{"profileId": person, "profileData": {"efface_receipts": receipts}}]}
        headers = {"Authorization": f"Bearer {self.api_key}", "x-transcend-nonce": nonce, "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.gateway}/v1/data-silo", json.dumps(body).encode(), headers, method="PUT")
        urllib.request.urlopen(request, timeout=30).close()
