"""The unit for systemd and the Dockerfile: what they start exists, and where the tools are there, they accept the files.
Backups of a model that is being served."""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from test_page import COMMAND, RunningServer, efface

ROOT = pathlib.Path(__file__).parents[3]
UNIT = ROOT / "deploy/efface.service"
DOCKERFILE = ROOT / "deploy/Dockerfile"


def steps():
    """The instructions of the Dockerfile, with continued lines joined."""
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [line.split(None, 1) for line in lines]


class Deployment(unittest.TestCase):
    def test_the_options_that_are_given_exist(self):
        known = set(re.findall(r"--[a-z-]+", efface("serve", "--help")))
        unit = re.search(r"^ExecStart=(.*)$", UNIT.read_text(), re.M).group(1)
        command = json.loads(dict(steps())["CMD"])
        for words in (shlex.split(unit)[2:], command):
            given = {word for word in words if word.startswith("--")}
            self.assertEqual(given - known, set())
            # Beyond the machine, TLS and tokens are asked for.
            self.assertLessEqual({"--tokens", "--tls-certificate", "--tls-key"}, given)

    def test_the_steps_of_the_image_are_sound(self):
        names = [name for name, _ in steps()]
        self.assertEqual(names[0], "FROM")
        self.assertLessEqual(set(names), {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"})
        images = [rest.split()[0] for name, rest in steps() if name == "FROM"]
        toolchain = re.search(r'channel = "([0-9.]+)', (ROOT / "rust-toolchain.toml").read_text()).group(1)
        self.assertTrue(images[0].startswith("rust:" + ".".join(toolchain.split(".")[:2])), images)
        self.assertTrue(all(":" in image and "latest" not in image for image in images), images)
        self.assertNotIn(dict(steps())["USER"], ("0", "root"))
        # What is copied from the build is what the build makes.
        self.assertIn("--package efface-cli", DOCKERFILE.read_text())
        self.assertIn("target", (ROOT / ".dockerignore").read_text().split())

    @unittest.skipUnless(shutil.which("docker"), "skipped: there is no docker")
    def test_the_image_builds(self):
        if subprocess.run(["docker", "info"], capture_output=True).returncode:
            self.skipTest("skipped: docker has no daemon here")
        build = ["docker", "build", "--quiet", "--file", str(DOCKERFILE), str(ROOT)]
        image = subprocess.run(build, check=True, capture_output=True, text=True).stdout.strip()
        shown = subprocess.run(["docker", "run", "--rm", "--entrypoint", "efface", image, "--version"], capture_output=True, text=True)
        self.assertIn("efface", shown.stdout)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "skipped: there is no systemd-analyze")
    def test_systemd_accepts_the_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            # The program is not installed here; any other stands for it.
            unit = pathlib.Path(folder) / UNIT.name
            unit.write_text(UNIT.read_text().replace("/usr/bin/efface", "/bin/true").replace("User=efface\nGroup=efface\n", ""))
            checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""))


class Demo(unittest.TestCase):
    def test_the_demo_has_somebody_to_forget(self):
        import urllib.request

        process = subprocess.Popen([COMMAND, "serve", "--demo", "--listen", "127.0.0.1:0", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = json.loads(process.stdout.readline())["url"]
            request = urllib.request.Request(f"{url}/v1/erasures", json.dumps({"subject": "u1042"}).encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as answer:
                models = json.load(answer)["models"]
            self.assertEqual([model["outcome"] for model in models], ["erased"])
            self.assertGreater(models[0]["forgotten"], 0)
        finally:
            process.terminate()
            self.assertEqual(process.wait(timeout=60), 0)
            process.stdout.close()


class Backups(unittest.TestCase):
    def test_a_model_is_backed_up_while_it_is_served(self):
        import urllib.request

        server = RunningServer()
        try:
            model = pathlib.Path(server.folder.name) / "models/people.efface"
            for number in range(3):
                headers = {"Authorization": f"Bearer {server.ann}", "Content-Type": "application/json"}
                body = json.dumps({"subject": f"p{number}"}).encode()
                urllib.request.urlopen(urllib.request.Request(f"{server.url}/v1/models/people/erasures", body, headers)).close()
                copy = pathlib.Path(server.folder.name) / f"copy{number}.efface"
                efface("backup", str(model), "-o", str(copy))
                checked = subprocess.run([COMMAND, "inspect", str(copy), "--json"], check=True, capture_output=True, text=True).stdout
                self.assertEqual(json.loads(checked)["rows"], 200 - 5 * (number + 1))
        finally:
            server.stop()


if __name__ == "__main__":
    unittest.main()
