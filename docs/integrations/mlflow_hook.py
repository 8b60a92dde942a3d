"""MLflow: marks registered versions of a model as withdrawn when rows were erased from it.

A version that came from efface carries the tag `efface.model` with the name of the model on the server. `on_callback` takes a callback
of the server (Standard Webhooks), checks its signature, and tags all such versions that are not withdrawn yet.
"""

import base64
import json
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

# Callbacks that are older than this could be replayed.
TOLERANCE_SECONDS = 300


def check_signature(public_key, headers, body, now=None):
    """Raises ValueError unless the server with this key (`whpk_…`, from GET /v1/callbacks) sent the callback just now."""
    headers = {name.lower(): value for name, value in headers.items()}
    sent = int(headers["webhook-timestamp"])
    if abs((time.time() if now is None else now) - sent) > TOLERANCE_SECONDS:
        raise ValueError("the callback is too old, or from the future")
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key.removeprefix("whpk_")))
    signed = f"{headers['webhook-id']}.{sent}.".encode() + body
    for entry in headers["webhook-signature"].split():
        version, _, signature = entry.partition(",")
        if version == "v1a":
            try:
                return key.verify(base64.b64decode(signature), signed)
            except InvalidSignature:
                continue
    raise ValueError("no signature of the callback is that of the server")


def on_callback(client, public_key, headers, body):
    """Tags the versions that an erasure withdrew; returns them as (name, version)."""
    check_signature(public_key, headers, body)
    event = json.loads(body)
    # Of a request that failed in one model, others may have erased rows.
    if event["type"] not in ("erasure.done", "erasure.failed"):
        return []
    tagged = []
    for model in event["data"]["models"]:
        if model.get("outcome") not in ("erased", "partial"):
            continue
        for version in client.search_model_versions(f"tags.`efface.model` = '{model['model']}'"):
            if "efface.withdrawn" not in version.tags:
                client.set_model_version_tag(version.name, version.version, "efface.withdrawn", model["receipt"]["id"])
                tagged.append((version.name, version.version))
    return tagged
