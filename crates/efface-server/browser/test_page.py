"""The page in a real browser, and the description of the API against the server that gives it.

EFFACE names the command; EFFACE_VERIFIES is "no" where it was built without the verifier for browsers. Run by `cargo xtask service`, which installs what it needs.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

COMMAND = os.environ["EFFACE"]
VERIFIES = os.environ.get("EFFACE_VERIFIES") != "no"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# A browser that is driven needs no account, no updates and, as root, no sandbox.
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


def efface(*arguments):
    return subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True).stdout.strip()


class RunningServer:
    """A folder with a model of people, two officers, and a server over it."""

    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        models = folder / "models"
        models.mkdir()
        table = ["id,person,size,age,price"]
        table += [f"r{n},p{n // 5},{n % 7 + 1},{(n * 31) % 50},{3 * (n % 7) + (n * 31) % 50 + n % 3}" for n in range(200)]
        (folder / "people.csv").write_text("\n".join(table) + "\n")
        efface("fit", str(folder / "people.csv"), "--target", "price", "--id", "id", "--subject", "person", "-o", str(models / "people.efface"))
        self.model = models / "people.efface"
        tokens = str(folder / "tokens.json")
        self.ann, self.bob = (efface("token", "create", tokens, "--name", name, "--scope", "erase,audit,predict,learn") for name in ("ann", "bob"))
        self.admin = efface("token", "create", tokens, "--name", "admin", "--scope", "admin")
        self.key = efface("keys", str(models / "people.efface"))
        listen = ["serve", str(models), "--listen", "127.0.0.1:0", "--tokens", tokens, "--json", *options]
        # A pipe that nobody reads would stop the server when it is full.
        self.log = open(folder / "log", "w+")
        self.process = subprocess.Popen([COMMAND, *listen], stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.url = json.loads(self.process.stdout.readline())["url"]

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        self.log.seek(0)
        log = self.log.read()
        self.log.close()
        self.folder.cleanup()
        return code, log


@unittest.skipUnless(CHROMIUM, "skipped: there is no chromium")
class ThePage(unittest.TestCase):
    def setUp(self):
        from playwright.sync_api import sync_playwright

        self.server = RunningServer("--approval-above", "4")
        self.driver = sync_playwright().start()
        self.browser = self.driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        self.page = self.open()

    def tearDown(self):
        self.browser.close()
        self.driver.stop()
        code, log = self.server.stop()
        self.assertEqual(code, 0, log)
        self.assertNotRegex(log, r"\bp1\b|\br7\b|efface_[0-9a-f]{12}_", "the log names a row, a person or a token")

    def open(self):
        page = self.browser.new_page()
        self.faults = []
        page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        # What the content security policy refuses is told to the console; a problem of the API is no fault of the page.
        page.on("console", lambda line: self.faults.append(line.text) if "Content Security Policy" in line.text else None)
        page.goto(self.server.url)
        return page

    def sign_in(self, page, token):
        page.fill("#token", token)
        page.click("#sign-in button")
        page.wait_for_selector("#model-rows tr")

    def signed_in(self, place):
        self.sign_in(self.page, self.server.ann)
        self.page.wait_for_selector(f"{place}:not(:empty)")
        return self.page.inner_text(place)

    def look(self, page, kind, names, key):
        page.select_option("#model", "people")
        page.select_option("#kind", kind)
        page.fill("#names", names)
        page.fill("#key", key)
        page.click("#erasure button")
        page.wait_for_selector("#preview:not([hidden])")

    def ask(self, page, kind, names, key):
        self.look(page, kind, names, key)
        page.click("#confirm")
        page.wait_for_selector("#outcome:not([hidden])")
        return page.inner_text("#outcome-facts")

    def test_an_officer_erases_verifies_and_sees_a_forgery(self):
        page = self.page
        page.fill("#token", "efface_000000000000_" + "0" * 64)
        page.click("#sign-in button")
        page.wait_for_selector("#notice.bad")
        self.assertIn("A token is needed", page.inner_text("#notice"))
        self.sign_in(page, self.server.ann)
        told = self.ask(page, "rows", "r7, r8", "case-1")
        self.assertIn("exact", told)

        def save(link):
            with page.expect_download() as download:
                page.click(f"#outcome-files a:has-text('{link}')")
            return pathlib.Path(download.value.path()).read_bytes()

        receipt = save("Receipt")
        self.assertIn("inclusion", json.loads(save("Proofs")))
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "pack.zip").write_bytes(save("Evidence pack"))
            (folder / "key").write_text(self.server.key)
            verified = json.loads(efface("verify", str(folder / "pack.zip"), "--key", str(folder / "key"), "--json"))
        self.assertEqual([found["rows"]["removed"] for found in verified["receipts"]], [2])
        if not VERIFIES:
            self.skipTest("the command was built without the verifier for browsers")

        def judge(content):
            page.set_input_files("#receipt-file", {"name": "r.cose", "mimeType": "application/cose", "buffer": content})
            page.fill("#trusted-key", self.server.key)
            page.evaluate("document.getElementById('verdict').className = ''")
            page.click("#verification button")
            page.wait_for_selector("#verdict.good, #verdict.bad")
            return page.get_attribute("#verdict", "class"), page.inner_text("#verdict")

        verdict, text = judge(receipt)
        self.assertEqual(verdict, "good", text)
        self.assertIn("2 rows removed", text)
        place = re.search(rb'"removed":2', receipt).start() + 10
        forged = receipt[:place] + b"3" + receipt[place + 1 :]
        verdict, text = judge(forged)
        self.assertEqual(verdict, "bad", text)
        self.assertIn("Not verified", text)
        # A key that is remembered is there again, and one that is not is not.
        page.check("#pin")
        page.reload()
        self.assertEqual(page.input_value("#trusted-key"), self.server.key.strip())
        page.uncheck("#pin")
        page.reload()
        self.assertEqual(page.input_value("#trusted-key"), "")
        self.assertEqual(self.faults, [])

    def api(self, method, path, body=None):
        headers = {"Authorization": f"Bearer {self.server.ann}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.server.url + path, data, headers, method=method)) as answer:
            return json.load(answer)

    def standing(self):
        """Rows and receipts of the model, and requests that wait."""
        model = self.api("GET", "/v1/models/people")
        return model["rows"], model["receipts"], len(self.api("GET", "/v1/erasures")["erasures"])

    def test_a_preview_names_whom_it_is_about_and_goes_with_every_edit(self):
        page = self.page
        self.sign_in(page, self.server.ann)
        before = self.standing()
        self.look(page, "subject", "p1", "case-1")
        for place in ("#preview-title", "#confirm"):
            self.assertIn("5 rows of p1 in people", page.inner_text(place))
        self.look(page, "rows", "r7, r8", "case-1")
        self.assertEqual(page.inner_text("#confirm"), "Erase 2 rows named r7, r8 in people")
        edits = {
            "another person": lambda: page.fill("#names", "p2"),
            "one more character": lambda: page.locator("#names").press_sequentially("0"),
            "no person": lambda: page.fill("#names", ""),
            "a deleted character": lambda: (page.focus("#names"), page.keyboard.press("End"), page.keyboard.press("Backspace")),
            "rows instead of a person": lambda: page.select_option("#kind", "rows"),
            "all models": lambda: page.select_option("#model", ""),
            "another reference": lambda: page.fill("#key", "case-2"),
            "no reference": lambda: page.fill("#key", ""),
            "a form that is emptied": lambda: page.evaluate("document.getElementById('erasure').reset()"),
            "another token": lambda: self.sign_in_again(page),
            "not now": lambda: page.click("#cancel"),
        }
        for edit, make in edits.items():
            with self.subTest(edit):
                self.look(page, "subject", "p1", "case-1")
                make()
                self.assertTrue(page.is_hidden("#preview"))
                # A press that comes all the same asks for nothing.
                page.evaluate("document.getElementById('confirm').click()")
        self.assertEqual(self.standing(), before)
        self.assertEqual(self.faults, [])

    def sign_in_again(self, page):
        page.evaluate("document.getElementById('sign-in').hidden = false")
        self.sign_in(page, self.server.ann)

    def test_a_preview_that_fails_or_comes_late_is_not_shown(self):
        page = self.page
        self.sign_in(page, self.server.ann)
        before = self.standing()
        problem = {"status": 503, "content_type": "application/problem+json", "body": '{"title": "busy"}'}
        failures = {
            "nobody": None,
            "no connection": lambda route: route.abort(),
            "a busy server": lambda route: route.fulfill(**problem),
            "an answer that is no JSON": lambda route: route.fulfill(status=200, body="<html>"),
            "an answer without models": lambda route: route.fulfill(status=200, body='{"id": "x", "status": "dry_run"}'),
            "a token that has ended": lambda route: route.fulfill(**{**problem, "status": 401}),
        }
        for failure, answer in failures.items():
            with self.subTest(failure):
                self.look(page, "subject", "p1", "case-1")
                page.evaluate("document.getElementById('notice').className = ''")
                if answer is None:
                    page.fill("#names", "nobody")
                else:
                    page.route("**/erasures", answer)
                page.click("#erasure button")
                page.wait_for_selector("#notice.bad")
                self.assertTrue(page.is_hidden("#preview"))
                page.evaluate("document.getElementById('confirm').click()")
                page.unroute("**/erasures")
        # The answer about one person comes when the form says another one, or after a later answer.
        held = []
        page.route("**/erasures", lambda route: held.append(route))
        page.fill("#names", "p1")
        with page.expect_request("**/erasures"):
            page.click("#erasure button")
        page.fill("#names", "p2")
        with page.expect_response("**/erasures"):
            held.pop().continue_()
        page.evaluate("fetch('/healthz').then((answer) => answer.text())")
        self.assertTrue(page.is_hidden("#preview"))
        page.unroute("**/erasures")
        self.assertEqual(self.standing(), before)
        self.assertEqual(self.faults, [])

    def test_what_the_button_names_is_erased_once_or_not_at_all(self):
        page = self.page
        self.sign_in(page, self.server.ann)
        rows, receipts, _ = self.standing()
        sent = []
        page.on("request", lambda request: sent.append(request.post_data_json) if request.method == "POST" else None)
        # A row changes between the preview and the press.
        self.look(page, "rows", "r20, r21", "case-5")
        self.api("PATCH", "/v1/models/people/rows", {"rows": [{"id": "r20", "person": "p4", "size": 2, "age": 2, "price": 2}]})
        page.click("#confirm")
        page.wait_for_selector("#notice.bad")
        self.assertIn("not those of the preview", page.inner_text("#notice"))
        self.assertTrue(page.is_hidden("#preview"))
        self.assertEqual(self.standing(), (rows, receipts + 1, 0))
        sent.clear()
        self.look(page, "rows", "r20, r21", "case-6")
        # The press of somebody who is impatient.
        page.evaluate("document.getElementById('confirm').click(); document.getElementById('confirm').click()")
        page.wait_for_selector("#outcome-facts:has-text('erased')")
        self.assertEqual(self.standing(), (rows - 2, receipts + 2, 0))
        (looked, erased) = sent
        self.assertTrue(looked["dry_run"])
        self.assertEqual(erased["rows"], ["r20", "r21"])
        self.assertEqual(list(erased["preview"]), ["people"])
        self.assertEqual(self.faults, [])

    def test_two_officers_are_needed_for_many_rows(self):
        self.sign_in(self.page, self.server.ann)
        told = self.ask(self.page, "subject", "p1", "case-2")
        self.assertIn("awaiting approval", told)
        self.page.click("text=Approve case-2")
        self.page.wait_for_selector("#notice.bad")
        self.assertIn("cannot approve", self.page.inner_text("#notice"))
        second = self.open()
        self.sign_in(second, self.server.bob)
        second.click("text=Approve case-2")
        second.wait_for_selector("#outcome:not([hidden])")
        self.assertIn("erased", second.inner_text("#outcome-facts"))
        # The page of the first officer follows by itself.
        self.page.wait_for_selector("#outcome-facts:has-text('erased')")
        second.wait_for_selector("#model-rows td:nth-child(4):text-is('5')")

    def test_the_page_can_be_used_by_everyone(self):
        from axe_playwright_python.sync_playwright import Axe

        self.assertIn("No audit is on record", self.signed_in("#audit-told"))
        efface("audit", str(self.server.model), "--sample", "5", "--oracles", "0", "--record")
        self.page.select_option("#audit-model", "people")
        self.page.dispatch_event("#audit-model", "change")
        self.page.wait_for_selector("#audit-pictures svg .mark")
        self.assertIn("feature_injection/", self.page.inner_text("#audit-rows"))
        self.ask(self.page, "rows", "r7", "case-3")
        self.page.wait_for_selector("#timeline a")
        self.assertEqual(self.faults, [])
        for scheme in ("light", "dark"):
            self.page.emulate_media(color_scheme=scheme)
            found = Axe().run(self.page)
            self.assertEqual(found.violations_count, 0, f"{scheme}: {found.generate_report()}")
        self.page.set_viewport_size({"width": 360, "height": 740})
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        self.assertLessEqual(wide, 0, "a phone has to scroll sideways")


class TheContract(unittest.TestCase):
    def test_the_server_does_what_its_description_says(self):
        server = RunningServer()
        try:
            schemathesis = pathlib.Path(sys.executable).parent / "schemathesis"
            # Whether rows fit a model is more than a schema can say, so that some valid requests are refused.
            ran = subprocess.run(
                [schemathesis, "run", f"{server.url}/openapi.json", "-H", f"Authorization: Bearer {server.admin}",
                 "--exclude-checks", "positive_data_acceptance", "--max-examples", "25", "--phases", "examples,coverage,fuzzing",
                 "--seed", "1", "--no-color"],
                capture_output=True, text=True,
            )
            self.assertEqual(ran.returncode, 0, ran.stdout[-4000:])
        finally:
            server.stop()


if __name__ == "__main__":
    unittest.main()
