"""A handler for the webhooks of Transcend: a privacy request arrives, a person is erased, and that is reported back.

Transcend sends a webhook for each identifier of a person. It signs them with a JSON web token (ES384) in the header `x-sombra-token` and names the
job in `x-transcend-nonce`; that an erasure is done is told by a PUT to `/v1/data-silo` with the same nonce, whose body is empty since Sombra 7.199.
The public key is the one that your gateway shows. The form is that of docs.transcend.io in 2026: "New DSR job" and "PUT /v1/data-silo".
"""

import hashlib
import json
import logging
import urllib.error
import urllib.request

import jwt

from efface_client import EffaceClient


class TranscendHandler:
    """What a webhook needs: the gateway's public key (PEM) and address, an API key, and an efface server. A gateway of your own also asks for its internal key."""

    def __init__(self, public_key, gateway, api_key, client: EffaceClient, sombra_key=None):
        self.sombra_key = sombra_key
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
        extras = event["extras"]
        person = extras["profile"]["identifier"]
        request = extras["request"].get("id") or extras["request"]["link"]
        # A request has a webhook for each identifier, so that its id alone would name several erasures; and a key must not tell who it is about.
        key = "transcend-" + hashlib.sha256(f"{request}\n{person}".encode()).hexdigest()
        answer = self.client.erase(person, key=key)
        receipts = [model["receipt"]["id"] for model in answer["models"] if model.get("receipt")]
        # Transcend has no place for them; the log names the request and nobody.
        logging.getLogger("efface").info("request %s: receipts %s", request, ", ".join(receipts))
        self.report(headers["x-transcend-nonce"])
        return 200

    def report(self, nonce):
        headers = {"Authorization": f"Bearer {self.api_key}", "x-transcend-nonce": nonce, "Content-Type": "application/json"}
        if self.sombra_key:
            headers["x-sombra-authorization"] = f"Bearer {self.sombra_key}"
        request = urllib.request.Request(f"{self.gateway}/v1/data-silo", b"{}", headers, method="PUT")
        try:
            urllib.request.urlopen(request, timeout=30).close()
        except urllib.error.HTTPError as error:
            # 409: the job is closed already, by an earlier report or by somebody at Transcend.
            if error.code != 409:
                raise
