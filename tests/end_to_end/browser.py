"""A headless Chromium driven through chromedriver, with the standard library only (W3C WebDriver)."""
import base64
import http.client
import json
import re
import shutil
import subprocess
import tempfile
import time

START_BOUND_S = 60
WAIT_BOUND_S = 30
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # how the standard names an element in JSON
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"]
ESCAPE = "\ue00c"
ENTER = "\ue007"
TAB = "\ue004"


def programs():
    """(browser, driver) of this machine, or None."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


class Browser:
    def __init__(self, size=(1200, 900)):
        browser, driver = programs()
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            self.port = self._driver_port()
            flags = [*FLAGS, f"--user-data-dir={self.profile.name}", f"--window-size={size[0]},{size[1]}"]
            wanted = {"browserName": "chrome", "goog:chromeOptions": {"binary": browser, "args": flags},
                      "goog:loggingPrefs": {"browser": "ALL"}}
            made = self._command("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.session = f"/session/{made['sessionId']}"
        except BaseException:
            self._end_driver()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._command("DELETE", self.session)
        finally:
            self._end_driver()

    def _end_driver(self):
        self.driver.terminate()
        self.driver.wait(30)
        self.driver.stdout.close()
        self.profile.cleanup()

    def _driver_port(self):
        for line in self.driver.stdout:
            started = re.search(r"started successfully on port (\d+)", line)
            if started:
                return int(started.group(1))
        raise AssertionError("chromedriver did not start")

    def _command(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_BOUND_S)
        try:
            connection.request(method, path, None if method != "POST" else json.dumps(body or {}))
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"{method} {path}: {value['error']}: {value['message']}")
        return value

    def open(self, url):
        self._command("POST", self.session + "/url", {"url": url})

    def script(self, code, *arguments):
        return self._command("POST", self.session + "/execute/sync", {"script": code, "args": list(arguments)})

    def _find(self, selector):
        found = self._command("POST", self.session + "/element", {"using": "css selector", "value": selector})
        return f"{self.session}/element/{found[ELEMENT]}"

    def click(self, selector):
        self._command("POST", self._find(selector) + "/click")

    def type(self, selector, text):
        self._command("POST", self._find(selector) + "/value", {"text": text})

    def fill(self, selector, text):
        self._command("POST", self._find(selector) + "/clear")
        self.type(selector, text)

    def press(self, key):
        """A key, for whatever has the focus."""
        strokes = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._command("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keys", "actions": strokes}]})

    def text(self, selector):
        return self.script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def wait(self, code, *arguments):
        """Until the script's value is true; that value."""
        until = time.monotonic() + WAIT_BOUND_S
        while True:
            value = self.script(code, *arguments)
            if value:
                return value
            assert time.monotonic() < until, f"never true: {code} {arguments}; log: {self.text('#log')[-500:]}"
            time.sleep(0.02)

    def complaints(self):
        """What the browser's console says is wrong, since the last look."""
        entries = self._command("POST", self.session + "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._command("GET", self.session + "/screenshot")))
