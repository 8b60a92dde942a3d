"""Asks `efface serve` to erase a person, with the standard library alone. The other files here use it."""

import json
import time
import urllib.request


class EffaceClient:
    """A server and a token with the scopes erase and audit."""

    def __init__(self, url, token=None, timeout=60):
        self.url = url.rstrip("/")
        self.token = token
        self.timeout = timeout

    def ask(self, method, path, body=None, headers=None):
        """One request; its JSON. Raises urllib.error.HTTPError where the server refuses."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=self.timeout) as answer:
            return json.load(answer)

    def erase(self, subject, key, model=None, callback_url=None):
        """Erases a person from a model, or from all, and waits until that is done.

        `key` names the request: sent again, it has no second effect, so that tasks may be repeated.
        """
        path = f"/v1/models/{model}/erasures" if model else "/v1/erasures"
        body = {"subject": subject, "allow_missing": True}
        if callback_url:
            body["callback_url"] = callback_url
        answer = self.ask("POST", path, body, {"Idempotency-Key": key})
        end = time.monotonic() + self.timeout
        while answer["status"] == "running":
            if time.monotonic() > end:
                raise TimeoutError(f"the erasure {key} is still running")
            time.sleep(0.5)
            answer = self.ask("GET", f"/v1/erasures/{key}")
        if answer["status"] != "done":
            raise RuntimeError(f"the erasure {key} is not done: {answer['status']}")
        failed = [model["model"] for model in answer["models"] if model.get("problem")]
        if failed:
            raise RuntimeError(f"the erasure {key} was not done in {', '.join(failed)}")
        return answer
