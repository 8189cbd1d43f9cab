#!/usr/bin/env python3
"""The page in a real browser: it streams, shows accepted drafts, cancels, and never takes a model's words for HTML.

Skipped (exit status 77) where Chromium and its driver are not there. `page_test.py --screenshots FOLDER` writes the pictures of
docs/ instead, with a real model where TANDEM_TEST_MODELS has one.
"""
import json
import os
import sys
import threading
import unittest

from browser import ENTER, ESCAPE, TAB, Browser, programs
from serving import Server, made, real

SKIPPED = 77
LENGTH = 2048  # tokens: the whole context of the made model
# What the page says of itself; the last answer of the log.
LAST = "const turns = document.querySelectorAll('.turn'); const turn = turns[turns.length - 1]; "
ENDED = LAST + "return turn?.querySelector('.figures-line')?.textContent.includes('ended: ')"
TEXT = LAST + "return turn.querySelector('.text').textContent"
FIGURES = LAST + "return turn.querySelector('.figures-line').textContent"
DRAFTED = LAST + "return Array.from(turn.querySelectorAll('mark.draft'), (mark) => mark.textContent).join('')"
PROBLEM = LAST + "return turn?.querySelector('.problem')?.textContent"


def url(server, path="/"):
    return f"http://{server.host}:{server.port}{path}"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(made("cycle"), "--max-model-len", str(LENGTH), "--speculative-config", '{"method": "ngram"}')
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.server.__exit__()

    def setUp(self):
        self.browser.open(url(self.server))
        self.browser.wait("return document.querySelector('[name=model]').value")

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        self.server.wait_idle()

    def complete(self, prompt, tokens):
        self.browser.click("input[value=completion]")
        self.set_field("temperature", 0)
        self.set_field("max_tokens", tokens)
        self.browser.fill("#input", prompt)
        self.browser.click("#send")

    def set_field(self, name, value):
        self.browser.script("document.querySelector(`[name=${arguments[0]}]`).value = arguments[1]", name, value)

    def test_a_completion_streams_to_its_end_and_tells_its_speed(self):
        self.complete("abc", 9)
        self.browser.wait(ENDED)
        self.assertEqual(self.browser.script(TEXT), "defghijkl")
        self.assertRegex(self.browser.script(FIGURES),
                         r"^9 tokens · first after \d+\.\d\d s · \d+\.\d tokens/s.* · ended: length$")

    def test_accepted_drafts_are_marked_and_only_they(self):
        self.complete("abcdefghijklmnopqrstuvwxyzabc", 20)
        self.browser.wait(ENDED)
        self.assertEqual(self.browser.script(TEXT), "defghijklmnopqrstuvw")
        drafted = self.browser.script(DRAFTED)
        self.assertGreater(len(drafted), 10)
        self.assertLess(len(drafted), 20)  # a step also gives a token of the model's own
        self.assertIn(f" · {len(drafted)} of ", self.browser.script(FIGURES))  # one token a letter

    def test_a_chat_keeps_what_was_said(self):
        self.set_field("max_tokens", 4)
        for turn in ("one", "two"):
            self.browser.fill("#input", turn)
            self.browser.press(ENTER)
            self.browser.wait("return document.querySelectorAll('.turn').length === arguments[0]", 2 if turn == "one" else 4)
            self.browser.wait(ENDED)
        titles = self.browser.script("return Array.from(document.querySelectorAll('.turn h3'), (each) => each.textContent)")
        self.assertEqual(titles, ["You", "Model", "You", "Model"])
        self.browser.fill("#input", "three")
        self.browser.click("#curl")
        command = self.browser.script("return document.querySelector('#curl-text').value")
        fields = json.loads(command.split("-d '")[1].rsplit("'", 1)[0])
        self.assertEqual([message["role"] for message in fields["messages"]], ["user", "assistant"] * 2 + ["user"])
        self.assertIn(url(self.server, "/v1/chat/completions"), command)

    def test_stop_cancels_and_what_came_stays(self):
        # A made model is quick: others slow it down, and the page itself stops as soon as something is there.
        others = self.server.connect()
        self.addCleanup(others.close)
        others.request("POST", "/v1/completions", json.dumps({"prompt": "abc", "max_tokens": LENGTH - 10, "n": 100, "stream": True,
                                                              "speculative": False}), {"Content-Type": "application/json"})
        stop_soon = """
          const stop = arguments[0] ? () => document.querySelector('#stop').click()
              : () => document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
          const observer = new MutationObserver(() => {
            if (document.querySelectorAll('.turn .text')[1]?.textContent.length > 0) { observer.disconnect(); stop(); }
          });
          observer.observe(document.querySelector('#log'), { childList: true, subtree: true, characterData: true });"""
        for with_button in (True, False):
            self.browser.click("#clear")
            self.browser.script("document.querySelector('[name=method]').value = 'none'")
            self.browser.script(stop_soon, with_button)
            self.complete("abc", LENGTH - 10)
            self.browser.wait(ENDED)
            self.assertTrue(self.browser.script(FIGURES).endswith("ended: cancelled"), self.browser.script(FIGURES))
            came = self.browser.script(TEXT)[:4]
            self.assertTrue(came and "defg".startswith(came), came)
            self.assertTrue(self.browser.script("return document.querySelector('#stop').disabled"))

    def test_the_batch_is_shown_while_it_runs(self):
        done = threading.Event()

        def work():
            while not done.is_set():
                self.server.complete("abcabcabc", max_tokens=LENGTH - 10, temperature=0)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            # All of one look: between two requests nothing runs.
            self.browser.wait("""
              return document.querySelector('#running').textContent === '1'
                  && document.querySelector('#methods tbody').textContent.includes('ngram')
                  && document.querySelectorAll('#sequences li').length === 1
                  && /^[1-9]\\d* of \\d+ in use$/.test(document.querySelector('#kv-text').textContent)
                  && Number(document.querySelector('#rate').textContent) > 0""")
        finally:
            done.set()
            worker.join()
        self.browser.wait("return document.querySelector('#running').textContent === '0'")
        self.assertEqual(self.browser.text("#sequences"), "")

    def test_a_models_words_are_never_html(self):
        said = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>&lt;"
        shown = self.browser.script("""
          return import('/page/answer.js').then(({ Answer }) => {
            const log = document.querySelector('#log');
            const answer = new Answer(log, 'Model');
            answer.take({ text: arguments[0], token_ids: [1], drafts: [[0, 5]] });
            answer.take({ error: { message: arguments[0] } });
            return [log.querySelector('.text').textContent, log.querySelector('.problem').textContent,
                    log.querySelectorAll('img, script').length, document.title];
          });""", said)
        self.assertEqual(shown, [said, said, 0, "tandem"])

    def test_drafts_are_counted_in_characters(self):
        shown = self.browser.script("""
          return import('/page/answer.js').then(({ Answer }) => {
            const answer = new Answer(document.querySelector('#log'), 'Model');
            answer.take({ text: '👍a日b', token_ids: [1], drafts: [[0, 1], [2, 3]] });
            return document.querySelector('.text').innerHTML;
          });""")
        self.assertEqual(shown, '<mark class="draft">👍</mark>a<mark class="draft">日</mark>b')

    def test_refusals_are_shown_in_the_servers_words(self):
        self.complete("a" * (LENGTH + 1), 5)
        self.assertIn(str(LENGTH), self.browser.wait(PROBLEM))

    def test_the_keyboard_reaches_every_control_and_each_has_a_name(self):
        nameless = self.browser.script("""
          return Array.from(document.querySelectorAll('input, select, textarea, button, meter'))
            .filter((one) => !one.labels?.length && !one.textContent && !one.getAttribute('aria-label'))
            .map((one) => one.outerHTML)""")
        self.assertEqual(nameless, [])
        wanted = set(self.browser.script(
            "return Array.from(document.querySelectorAll('[id]:is(input, textarea, button):not(:disabled)'), (one) => one.id)"))
        wanted = {one for one in wanted if not one.startswith("curl-")}
        seen = set()
        for _ in range(40):
            self.browser.press(TAB)
            seen.add(self.browser.script("return document.activeElement.id"))
        self.assertLessEqual(wanted, seen)

    def test_dark_and_light_change_places(self):
        colour = "return getComputedStyle(document.body).backgroundColor"
        before = self.browser.script(colour)
        self.browser.click("#theme")
        self.assertNotEqual(self.browser.script(colour), before)
        self.browser.click("#theme")
        self.assertEqual(self.browser.script(colour), before)

    def test_the_api_is_described(self):
        self.browser.open(url(self.server, "/docs"))
        self.browser.wait("return document.querySelectorAll('.docs section').length > 0")
        described = self.browser.script("return document.querySelector('.docs').textContent")
        for part in ("POST /v1/chat/completions", "GET /health", "max_tokens"):
            self.assertIn(part, described)
        self.assertNotIn("undefined", described)


class PageWithKey(unittest.TestCase):
    def test_the_key_is_asked_for_used_and_kept_in_memory_only(self):
        with Server(made("cycle"), "--api-key", "se/cr+et?") as server, Browser() as browser:
            browser.open(url(server))
            browser.wait("return document.querySelector('#status').textContent.includes('API key')")
            browser.fill("#input", "abc")
            browser.click("#send")
            self.assertIn("API key", browser.wait(PROBLEM))
            browser.fill("#key", "se/cr+et?")
            browser.click("input[value=completion]")
            browser.wait("return document.querySelector('[name=model]').value")
            browser.fill("#input", "abc")
            browser.click("#send")
            browser.wait(ENDED)
            browser.click("#curl")
            self.assertNotIn("se/cr", browser.script("return document.querySelector('#curl-text').value"))
            kept = browser.script("return JSON.stringify([localStorage, sessionStorage]) + document.cookie")
            self.assertEqual(kept, "[{},{}]")
            browser.open(url(server))
            self.assertEqual(browser.script("return document.querySelector('#key').value"), "")


def write_screenshots(folder):
    model = real("smollm2-135m") or made("cycle")
    planets = "Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus, Neptune. "
    with Server(model, "--speculative-config", '{"method": "ngram"}') as server, Browser((1200, 760)) as browser:
        browser.open(url(server))
        browser.wait("return document.querySelector('[name=model]').value")
        browser.script("document.querySelector('[name=temperature]').value = 0")
        browser.fill("#input", "Name three planets.")
        browser.click("#send")
        browser.wait(ENDED)
        browser.click("input[value=completion]")
        browser.fill("#input", "The planets are " + planets + "Again: ")
        browser.click("#send")
        browser.wait("return document.querySelectorAll('mark.draft').length > 5 && document.querySelector('#sequences b')?.textContent")
        browser.screenshot(os.path.join(folder, "page.png"))
        browser.click("#theme")
        browser.screenshot(os.path.join(folder, "page-dark.png"))


if __name__ == "__main__":
    if programs() is None:
        print("page_test: skipped, there is no chromium with chromedriver; on Debian: apt-get install chromium chromium-driver.")
        sys.exit(SKIPPED)
    if sys.argv[1:2] == ["--screenshots"]:
        write_screenshots(sys.argv[2])
    else:
        unittest.main(verbosity=2)
