"""The files of this folder against a running server and the packages that they are for. EFFACE names the command.

Run by `cargo xtask integrations`; a test whose package is not installed says so.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
COMMAND = os.environ["EFFACE"]


def needs(package):
    return unittest.skipUnless(find_spec(package), f"skipped: {package} is not installed")


class Receiver:
    """Somebody who is sent requests and keeps them."""

    def __init__(self):
        came = self.came = []
        self.arrived = threading.Event()
        arrived = self.arrived

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                came.append((self.command, self.path, dict(self.headers), body))
                self.send_response(200)
                self.end_headers()
                arrived.set()

            do_PUT = do_POST

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Integrations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from efface_client import EffaceClient

        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        models = folder / "models"
        models.mkdir()
        table = ["id,person,size,age,price"]
        table += [f"r{n},p{n // 5},{n % 7 + 1},{(n * 31) % 50},{3 * (n % 7) + (n * 31) % 50 + n % 3}" for n in range(200)]
        (folder / "people.csv").write_text("\n".join(table) + "\n")
        run = lambda *words: subprocess.run([COMMAND, *words], check=True, capture_output=True, text=True).stdout.strip()
        run("fit", str(folder / "people.csv"), "--target", "price", "--id", "id", "--subject", "person", "-o", str(models / "people.efface"))
        tokens = str(folder / "tokens.json")
        cls.token = run("token", "create", tokens, "--name", "robot", "--scope", "erase,audit")
        cls.admin = run("token", "create", tokens, "--name", "admin", "--scope", "admin")
        cls.receiver = Receiver()
        words = ["serve", str(models), "--listen", "127.0.0.1:0", "--tokens", tokens, "--json", "--quiet"]
        words += ["--callback-host", cls.receiver.url, "--callback-private"]
        cls.process = subprocess.Popen([COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        cls.url = json.loads(cls.process.stdout.readline())["url"]
        cls.client = EffaceClient(cls.url, cls.token)

    @classmethod
    def tearDownClass(cls):
        cls.process.terminate()
        cls.process.wait(timeout=60)
        cls.process.stdout.close()
        cls.folder.cleanup()

    def rows(self):
        return self.client.ask("GET", "/v1/models/people")["rows"]

    def test_the_client_erases_once_however_often_it_asks(self):
        before = self.rows()
        first = self.client.erase("p1", key="client-1")
        self.assertEqual(self.rows(), before - 5)
        again = self.client.erase("p1", key="client-1")
        self.assertEqual(first["models"][0]["receipt"], again["models"][0]["receipt"])

    @needs("airflow")
    def test_the_task_of_airflow_erases(self):
        os.environ["EFFACE_URL"] = self.url
        os.environ["EFFACE_TOKEN"] = self.token
        import airflow_task

        before = self.rows()
        receipts = airflow_task.erase_person.function("p2", "airflow-1")
        self.assertEqual(list(receipts), ["people"])
        self.assertEqual(self.rows(), before - 5)
        dag = airflow_task.erase_from_models()
        self.assertEqual(dag.task_ids, ["erase_person"])
        self.assertEqual(dag.get_task("erase_person").retries, 3)

    @needs("dagster")
    def test_the_job_of_dagster_erases(self):
        import dagster_op

        before = self.rows()
        done = dagster_op.erase_from_models.execute_in_process(
            run_config={"ops": {"erase_person": {"config": {"person": "p3", "request_id": "dagster-1"}}}},
            resources={"efface": dagster_op.EffaceResource(url=self.url, token=self.token)},
        )
        self.assertTrue(done.success)
        self.assertEqual(list(done.output_for_node("erase_person")), ["people"])
        self.assertEqual(self.rows(), before - 5)

    @needs("mlflow")
    def test_versions_in_mlflow_are_marked_as_withdrawn(self):
        import mlflow_hook
        from efface_client import EffaceClient
        from mlflow import MlflowClient

        store = MlflowClient(f"sqlite:///{self.folder.name}/mlflow.db")
        store.create_registered_model("prices")
        ours = store.create_model_version("prices", "file:///nowhere", tags={"efface.model": "people"})
        other = store.create_model_version("prices", "file:///nowhere", tags={"efface.model": "houses"})
        self.client.erase("p4", key="mlflow-1", callback_url=f"{self.receiver.url}/mlflow")
        self.assertTrue(self.receiver.arrived.wait(30), "no callback came")
        _, _, headers, body = next(came for came in self.receiver.came if came[1] == "/mlflow")
        key = EffaceClient(self.url, self.admin).ask("GET", "/v1/callbacks")["public_key"]
        with self.assertRaises(ValueError):
            mlflow_hook.on_callback(store, key, headers, body.replace(b"people", b"houses"))
        with self.assertRaises(ValueError):
            mlflow_hook.check_signature(key, headers, body, now=0)
        self.assertEqual(mlflow_hook.on_callback(store, key, headers, body), [("prices", ours.version)])
        self.assertEqual(mlflow_hook.on_callback(store, key, headers, body), [], "a callback that comes twice")
        tags = store.get_model_version("prices", ours.version).tags
        receipt = json.loads(body)["data"]["models"][0]["receipt"]["id"]
        self.assertEqual(tags["efface.withdrawn"], receipt)
        self.assertNotIn("efface.withdrawn", store.get_model_version("prices", other.version).tags)

    @needs("jwt")
    def test_a_webhook_of_transcend_erases_and_is_reported_back(self):
        import jwt
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from transcend_webhook import TranscendHandler

        secret = ec.generate_private_key(ec.SECP384R1())
        form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        public = secret.public_key().public_bytes(*form).decode()
        handler = TranscendHandler(public, self.receiver.url, "key", self.client, "inner")

        def event(person):
            extras = {"profile": {"identifier": person, "type": "email"}, "request": {"link": "https://app.transcend.io/privacy-requests/77"}}
            return json.dumps({"type": "ERASURE", "coreIdentifier": {"value": "somebody"}, "extras": extras}).encode()

        body = event("p5")
        before = self.rows()
        headers = {"x-sombra-token": jwt.encode({}, ec.generate_private_key(ec.SECP384R1()), "ES384"), "x-transcend-nonce": "n"}
        self.assertEqual(handler.handle(headers, body), 401, "a webhook that somebody else signed")
        self.assertEqual(self.rows(), before)
        headers["x-sombra-token"] = jwt.encode({}, secret, "ES384")
        self.assertEqual(handler.handle(headers, json.dumps({"type": "ACCESS"}).encode()), 204)
        self.assertEqual(handler.handle(headers, body), 200)
        self.assertEqual(self.rows(), before - 5)
        method, path, told, report = self.receiver.came[-1]
        told = {name.lower(): value for name, value in told.items()}
        self.assertEqual((method, path, told["x-transcend-nonce"], told["x-sombra-authorization"]), ("PUT", "/v1/data-silo", "n", "Bearer inner"))
        self.assertEqual(json.loads(report), {})
        # The same webhook again has no second effect; another identifier of the same request is another erasure.
        self.assertEqual(handler.handle(headers, body), 200)
        self.assertEqual(self.rows(), before - 5)
        self.assertEqual(handler.handle(headers, event("p9")), 200)
        self.assertEqual(self.rows(), before - 10)

    @needs("fides")
    def test_the_connector_of_fides_is_valid_and_its_request_erases(self):
        from types import SimpleNamespace

        import yaml
        from fides.api.schemas.saas.saas_config import SaaSConfig
        from fides.api.service.connectors.saas.authenticated_client import AuthenticatedClient
        from fides.api.util.saas_util import map_param_values
        from fideslang.models import Dataset

        read = lambda name: yaml.safe_load((HERE / name).read_text().replace("<instance_fides_key>", "efface"))
        config = SaaSConfig(**read("fides_config.yml")["saas_config"])
        dataset = Dataset(**read("fides_dataset.yml")["dataset"][0])
        self.assertEqual((dataset.fides_key, dataset.collections), (config.fides_key, []))
        # What the user enters for the connector, as far as requests are made of it.
        entered = SimpleNamespace(key="efface", secrets={"domain": "models.example.org", "token": self.token})
        for name in [parameter.name for parameter in config.connector_params]:
            self.assertIn(name, entered.secrets)
        test = map_param_values("test", "efface", config.test_request, {})
        client = AuthenticatedClient(self.url, entered, config.client_config)
        self.assertEqual(client.session.send(client.get_authenticated_request(test)).status_code, 200)
        request = config.data_protection_request
        made = map_param_values("delete", "efface", request, {"email": "p6"})
        client = AuthenticatedClient(self.url, entered, request.client_config)
        before = self.rows()
        answer = client.session.send(client.get_authenticated_request(made))
        self.assertEqual(answer.status_code, 200, answer.text)
        self.assertEqual(answer.json()["models"][0]["outcome"], "erased")
        self.assertEqual(self.rows(), before - 5)


if __name__ == "__main__":
    unittest.main()
