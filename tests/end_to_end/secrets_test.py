#!/usr/bin/env python3
"""What must not be in the log, at its most talkative: keys, prompts, answers, ids and fields of users."""
import tempfile
import unittest

from serving import Server, made

KEY = "sk-secret-key-4711"
WORD = "xyzzyplugh"


class Secrets(unittest.TestCase):
    def test_the_log_of_a_run_has_nothing_of_what_users_sent(self):
        with tempfile.NamedTemporaryFile("w+", suffix=".log") as log:
            with Server(made("rand"), "--api-key", KEY, "--log-level", "debug", log=log) as server:
                right = {"Authorization": "Bearer " + KEY, "X-Request-Id": WORD}
                wrong = {"Authorization": "Bearer " + WORD}
                body = ('{"prompt": "%s", "max_tokens": 4, "user": "%s", "cache_salt": "%s"}' % (WORD, WORD, WORD)).encode()
                chat = ('{"messages": [{"role": "user", "content": "%s"}], "max_tokens": 4}' % WORD).encode()
                self.assertEqual(server.send("POST", "/v1/completions", body, right)[0], 200)
                self.assertEqual(server.send("POST", "/v1/completions", body, wrong)[0], 401)
                self.assertEqual(server.send("POST", "/v1/chat/completions", chat, right)[0], 200)
                self.assertEqual(server.send("POST", "/tokenize", body, right)[0], 200)
                self.assertEqual(server.send("GET", "/" + WORD, None, right)[0], 404)
                self.assertEqual(server.send("POST", "/v1/completions", b'{"prompt": "' + WORD.encode(), right)[0], 400)
                self.assertEqual(server.send("POST", "/v1/completions", b'{"%s": 1}' % WORD.encode(), right)[0], 400)
            log.seek(0)
            text = log.read()
        self.assertTrue(text, "the log is empty: the test proves nothing")
        for secret in (KEY, WORD):
            self.assertNotIn(secret, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
