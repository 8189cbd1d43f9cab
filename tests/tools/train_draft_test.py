#!/usr/bin/env python3
"""tools/train_draft: prompts, files, figures. What needs PyTorch runs where Python has it (tools/train_draft/README.md)."""
import json
import os
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tools"))

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}; ./run test installs what tests/requirements.txt names")
    sys.exit(77)

from train_draft import acceptance, budget, data, dump, folder, generate, prompts, safetensors_file, vocabulary  # noqa: E402

try:
    import torch
    from train_draft import batches, evaluation, heads, losses, training
except ImportError:
    torch = None

VOCABULARY, HIDDEN = 60, 64


class Prompts(unittest.TestCase):
    def test_are_different_and_the_same_every_time_and_a_shorter_list_is_the_beginning_of_a_longer_one(self):
        many = prompts.make_prompts(1500)
        self.assertEqual(len(set(many)), 1500)
        self.assertEqual(prompts.make_prompts(300), many[:300])
        self.assertNotEqual(prompts.make_prompts(300, seed=2), many[:300])

    def test_held_out_ones_share_no_topic_and_no_task_with_training(self):
        for name in ("topics.txt", "tasks.txt"):
            lines = prompts.read_lines(name)
            kept, held_out = prompts.divide(lines)
            self.assertEqual(len(set(lines)), len(lines))
            self.assertEqual((set(kept) & set(held_out), set(kept) | set(held_out)), (set(), set(lines)))
            self.assertGreater(len(held_out), 0)
        self.assertFalse(set(prompts.make_prompts(400)) & set(prompts.make_prompts(100, held_out=True)) - sums())

    def test_more_than_the_lists_give_is_refused(self):
        with self.assertRaisesRegex(ValueError, "ask for fewer"):
            prompts.make_prompts(10**6, held_out=True)

    def test_a_batch_is_greedy_in_part_and_every_request_has_its_own_seed(self):
        requests = generate.mixed([f"p{i}" for i in range(30)], 60)
        self.assertEqual([each["temperature"] for each in requests], [0.0] * 10 + [0.8] * 20)
        self.assertEqual([each["seed"] for each in requests], list(range(60, 90)))


def sums():
    """Questions of arithmetic have no topic to hold out."""
    return {template.format(a=a, b=b) for template in prompts.SUMS for a in range(2, 61) for b in range(2, 91)}


class Files(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        self.path = os.path.join(self.folder, "one.safetensors")

    def test_what_is_written_is_read(self):
        tensors = {"b": np.arange(6, dtype=np.int64).reshape(2, 3), "a": np.array([0.5, -2], np.float16),
                   "mask": np.array([True, False, True])}
        safetensors_file.write(self.path, tensors, {"k": "v"})
        found, metadata = safetensors_file.read(self.path)
        self.assertEqual((list(found), metadata), (["b", "a", "mask"], {"k": "v"}))
        for name, array in tensors.items():
            self.assertEqual(found[name].dtype, array.dtype)
            np.testing.assert_array_equal(found[name], array)

    def test_a_file_that_is_cut_short_is_refused(self):
        safetensors_file.write(self.path, {"a": np.zeros(1000, np.float32)})
        with open(self.path, "rb") as file:
            whole = file.read()
        for size in (3, 20, len(whole) - 1):
            with open(self.path, "wb") as file:
                file.write(whole[:size])
            with self.assertRaisesRegex(ValueError, "cut short"):
                safetensors_file.read(self.path)

    def write_dump(self, number, layers="2,4,5", form=dump.FORMAT):
        tensors = {}
        for choice in range(2):
            name = f"{number}.{choice}"
            tensors[name + ".prompt_tokens"] = np.array([3], np.int32)
            tensors[name + ".tokens"] = np.arange(10 + choice, dtype=np.int32)
            tensors[name + ".states"] = np.full((10 + choice, 4, 8), number, np.float16)
        safetensors_file.write(os.path.join(self.folder, f"d-{number:05}.safetensors"), tensors,
                               {"format": form, "layers": layers})

    def test_a_dump_is_all_its_files_in_order(self):
        self.write_dump(1)
        self.write_dump(2)
        sequences, layers = dump.read_dump(os.path.join(self.folder, "d"))
        self.assertEqual(layers, [2, 4, 5])
        self.assertEqual([each.name for each in sequences], ["1.0", "1.1", "2.0", "2.1"])
        self.assertEqual((len(sequences[1].tokens), sequences[1].prompt_tokens, sequences[1].states.shape), (11, 3, (11, 4, 8)))

    def test_dumps_that_do_not_belong_together_and_other_files_are_refused(self):
        with self.assertRaisesRegex(ValueError, "there is no file"):
            dump.read_dump(os.path.join(self.folder, "d"))
        self.write_dump(1)
        self.write_dump(2, layers="1,2,3")
        with self.assertRaisesRegex(ValueError, "layers"):
            dump.read_dump(os.path.join(self.folder, "d"))
        self.write_dump(2, form="something else")
        with self.assertRaisesRegex(ValueError, "dump-hidden"):
            dump.read_dump(os.path.join(self.folder, "d"))

    def test_batches_of_training_data_are_found_by_name_once_they_are_whole(self):
        for name in ("train-001.done", "train-000.done", "train-002-00001.safetensors", "held-out-greedy.done"):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8"):
                pass
        self.assertEqual([os.path.basename(each) for each in data.train_prefixes(self.folder)], ["train-000", "train-001"])

    def test_a_medusa_folder_has_the_public_names(self):
        weights = {f"blocks.{head}.{part}": np.full(shape, head, np.float32) for head in range(3)
                   for part, shape in (("weight", (HIDDEN, HIDDEN)), ("bias", (HIDDEN,)))}
        size = folder.write_medusa(self.folder, weights, small_target())
        found, _ = safetensors_file.read(os.path.join(self.folder, "model.safetensors"))
        self.assertEqual(sorted(found), sorted(f"{head}.0.linear.{part}" for head in range(3) for part in ("weight", "bias")))
        self.assertEqual(found["2.0.linear.weight"].tolist(), [[2.0] * HIDDEN] * HIDDEN)
        config = self.config()
        self.assertEqual((config["medusa_num_heads"], config["medusa_num_layers"], config["vocab_size"]), (3, 1, VOCABULARY))
        self.assertEqual(size, sum(os.path.getsize(os.path.join(self.folder, name)) for name in os.listdir(self.folder)))

    def config(self):
        with open(os.path.join(self.folder, "config.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_an_eagle3_folder_has_the_public_names_and_its_scales_are_folded_in(self):
        target, ids = small_target(), np.array([1, 4, 7, 50])
        folder.write_eagle3(self.folder, eagle_weights(), target, ids, [2, 4, 5], 10000.0)
        found, _ = safetensors_file.read(os.path.join(self.folder, "model.safetensors"))
        self.assertEqual({name: array.shape for name, array in found.items()}, {
            "fc.weight": (HIDDEN, 3 * HIDDEN), "midlayer.input_layernorm.weight": (HIDDEN,), "midlayer.hidden_norm.weight": (HIDDEN,),
            "midlayer.post_attention_layernorm.weight": (HIDDEN,), "midlayer.self_attn.q_proj.weight": (HIDDEN, 2 * HIDDEN),
            "midlayer.self_attn.k_proj.weight": (HIDDEN // 2, 2 * HIDDEN), "midlayer.self_attn.v_proj.weight": (HIDDEN // 2, 2 * HIDDEN),
            "midlayer.self_attn.o_proj.weight": (HIDDEN, HIDDEN), "midlayer.mlp.gate_proj.weight": (48, HIDDEN),
            "midlayer.mlp.up_proj.weight": (48, HIDDEN), "midlayer.mlp.down_proj.weight": (HIDDEN, 48), "norm.weight": (HIDDEN,),
            "lm_head.weight": (4, HIDDEN), "d2t": (4,), "t2d": (VOCABULARY,)})
        self.assertEqual((found["d2t"] + np.arange(4)).tolist(), ids.tolist())
        self.assertEqual(np.flatnonzero(found["t2d"]).tolist(), ids.tolist())
        np.testing.assert_array_equal(found["fc.weight"], np.full((HIDDEN, 3 * HIDDEN), 0.25, np.float16))
        np.testing.assert_array_equal(found["norm.weight"], np.full(HIDDEN, 6, np.float16))
        np.testing.assert_array_equal(found["lm_head.weight"], target.output[ids])
        config = self.config()
        self.assertEqual((config["draft_vocab_size"], config["intermediate_size"]), (4, 48))
        self.assertEqual(config["eagle_aux_hidden_state_layer_ids"], [2, 4, 5])


def small_target():
    output = np.random.default_rng(1).normal(size=(VOCABULARY, HIDDEN)).astype(np.float16)
    return types.SimpleNamespace(vocabulary=VOCABULARY, hidden=HIDDEN, output=output, heads=4, kv_heads=2, head_dim=16,
                                 epsilon=1e-5, context=128)


def eagle_weights():
    shapes = {"fc": (HIDDEN, 3 * HIDDEN), "q_proj": (HIDDEN, 2 * HIDDEN), "k_proj": (HIDDEN // 2, 2 * HIDDEN),
              "v_proj": (HIDDEN // 2, 2 * HIDDEN), "o_proj": (HIDDEN, HIDDEN), "gate_proj": (48, HIDDEN), "up_proj": (48, HIDDEN),
              "down_proj": (HIDDEN, 48), "input_layernorm": HIDDEN, "hidden_norm": HIDDEN, "post_attention_layernorm": HIDDEN,
              "norm": HIDDEN}
    weights = {name + ".weight": np.ones(shape, np.float32) for name, shape in shapes.items()}
    return {**weights, "norm.weight": np.full(HIDDEN, 2, np.float32), "output_scale": np.full(HIDDEN, 3, np.float32),
            "feature_scale": np.full(3 * HIDDEN, 4, np.float32)}


def answer(tokens, prompt_tokens=2):
    return dump.Sequence("0.0", np.array(tokens, np.int32), prompt_tokens, np.zeros((len(tokens), 4, HIDDEN), np.uint16))


class Vocabulary(unittest.TestCase):
    def test_is_what_answers_say_most_and_prompts_do_not_count(self):
        sequences = [answer([9, 9, 5, 5, 7]), answer([9, 9, 5, 7, 3])]
        self.assertEqual(vocabulary.choose(sequences, 2, 20).tolist(), [5, 7])
        self.assertEqual(vocabulary.choose(sequences, 5, 20).tolist(), [0, 1, 3, 5, 7], "filled with the lowest")
        self.assertEqual(vocabulary.choose(sequences, 99, 20).tolist(), list(range(20)))
        self.assertAlmostEqual(vocabulary.coverage(sequences, np.array([5, 7])), 5 / 6)


class Acceptance(unittest.TestCase):
    def test_is_counted_up_to_the_first_draft_that_differs(self):
        agrees = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1]], bool)
        lengths = acceptance.accepted_lengths(agrees)
        self.assertEqual(lengths.tolist(), [2, 0, 4])
        self.assertEqual(acceptance.by_position(lengths, 4), [2 / 3, 1.0, 0.5, 1.0])
        self.assertEqual(acceptance.by_position(np.array([0, 0]), 2), [0.0, None])

    def test_tokens_per_pass_walks_the_text(self):
        self.assertEqual(acceptance.tokens_per_pass([np.zeros(6, int)], 3), 1.0)
        self.assertEqual(acceptance.tokens_per_pass([np.full(8, 5)], 3), 4.0)
        self.assertEqual(acceptance.tokens_per_pass([np.array([1, 9, 0, 2, 9, 9])], 3), 6 / 3)
        self.assertIsNone(acceptance.tokens_per_pass([], 3))

    def test_the_noise_reproduces_the_choice_and_is_gumbel(self):
        rng = np.random.default_rng(3)
        log_p = np.log(np.array([0.5, 0.3, 0.2]))
        rows = np.tile(log_p, (60000, 1))
        chosen = rng.choice(3, size=len(rows), p=np.exp(log_p))
        noise = acceptance.posterior_noise(rows, chosen, rng)
        np.testing.assert_array_equal((rows + noise).argmax(1), chosen)
        # Over the target's own choices it is plain noise again: mean 0.5772, variance π²/6, another model's rate its own.
        np.testing.assert_allclose(noise.mean(0), 0.5772, atol=0.03)
        np.testing.assert_allclose(noise.var(0), np.pi**2 / 6, atol=0.08)
        other = np.log(np.array([0.2, 0.2, 0.6]))
        np.testing.assert_allclose(np.bincount((other + noise).argmax(1)) / len(rows), np.exp(other), atol=0.01)

    def test_a_choice_outside_the_given_tokens_beats_them_all(self):
        rng = np.random.default_rng(4)
        rows = np.log(np.full((1000, 2), 0.3))
        noise = acceptance.posterior_noise(rows, np.full(1000, -1), rng)
        self.assertLess((rows + noise).max(1).mean(), 0.5772 - 0.2, "below the maximum of all, a Gumbel of mean 0.5772")

    def test_the_last_starts_do_not_count_as_rejections(self):
        found = acceptance.summarize([np.array([5, 5, 4, 3, 2, 1, 0])])
        self.assertEqual((found["starts"], found["acceptance_by_position"]), (2, [1.0] * 5))


class Time(unittest.TestCase):
    def test_a_suspended_process_loses_little_of_its_budget(self):
        now = [0.0]
        spending = budget.Budget(100, 30, lambda: now[0])
        now[0] = 10
        self.assertEqual(spending.spent(), 0.1)
        now[0] = 10000
        self.assertEqual(spending.spent(), 0.1 + 30 / 100)


def cycle_answers(count):
    """Answers of a target that is certain: after token t comes (t + 7) mod 60."""
    rng, output = np.random.default_rng(0), small_target().output.astype(np.float32)
    found = []
    for _ in range(count):
        tokens = [int(rng.integers(VOCABULARY))]
        while len(tokens) < 40:
            tokens.append((tokens[-1] + 7) % VOCABULARY)
        states = np.zeros((40, 4, HIDDEN), np.float32)
        states[:, :3] = 100 * output[tokens][:, None]
        states[:, 3] = 2 * output[[(token + 7) % VOCABULARY for token in tokens]]
        bits = (states.view(np.uint32) >> 16).astype(np.uint16)
        found.append(dump.Sequence("0.0", np.array(tokens, np.int32), 8, bits))
    return found


def numpy_eagle3(path, features, embedded):
    """Logits of draft step 1 for every start but the last, as docs/heads.md describes the folder. features: [position][3][H]."""
    with open(os.path.join(path, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    weights = {name: array.astype(np.float64) for name, array in safetensors_file.read(os.path.join(path, "model.safetensors"))[0].items()}
    size, theta = config["head_dim"], config["rope_theta"]

    def normalize(x, name):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + config["rms_norm_eps"]) * weights[name]

    def heads_of(x, name):
        return (x @ weights[f"midlayer.self_attn.{name}.weight"].T).reshape(len(x), -1, size)

    def rotate(x):
        angles = np.arange(len(x))[:, None, None] * theta ** (-np.arange(size // 2) / (size // 2))
        first, second = x[..., :size // 2], x[..., size // 2:]
        return np.concatenate([first * np.cos(angles) - second * np.sin(angles), second * np.cos(angles) + first * np.sin(angles)], -1)
    count = len(features) - 1
    feature = features[:count].reshape(count, -1) @ weights["fc.weight"].T
    x = np.concatenate([normalize(embedded[1:], "midlayer.input_layernorm.weight"),
                        normalize(feature, "midlayer.hidden_norm.weight")], -1)
    query, key, value = rotate(heads_of(x, "q_proj")), rotate(heads_of(x, "k_proj")), heads_of(x, "v_proj")
    group = config["num_attention_heads"] // config["num_key_value_heads"]
    scores = np.einsum("qhc,khc->hqk", query, key.repeat(group, 1)) / np.sqrt(size)
    scores[:, np.triu(np.ones((count, count), bool), 1)] = -np.inf
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = np.einsum("hqk,khc->qhc", scores / scores.sum(-1, keepdims=True), value.repeat(group, 1)).reshape(count, -1)
    hidden = feature + mixed @ weights["midlayer.self_attn.o_proj.weight"].T
    x = normalize(hidden, "midlayer.post_attention_layernorm.weight")
    gate = x @ weights["midlayer.mlp.gate_proj.weight"].T
    up = x @ weights["midlayer.mlp.up_proj.weight"].T
    hidden = hidden + (gate / (1 + np.exp(-gate)) * up) @ weights["midlayer.mlp.down_proj.weight"].T
    return normalize(hidden, "norm.weight") @ weights["lm_head.weight"].T


@unittest.skipIf(torch is None, "needs PyTorch: tools/train_draft/requirements.txt")
class Training(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch.set_num_threads(1)

    def task(self, head, medusa):
        output = torch.from_numpy(small_target().output)
        return training.Task(head, output, output.float(), torch.arange(VOCABULARY), whole_vocabulary=medusa,
                             most_steps=3 if medusa else 5)

    def eagle(self, answers):
        return heads.Eagle3(HIDDEN, 4, 2, 16, 48, 1e-5, torch.ones(HIDDEN), batches.feature_scale(answers))

    def test_the_loss_and_its_gradient_are_those_of_plain_cross_entropy(self):
        x, weight = torch.randn(1100, 8, requires_grad=True), torch.randn(20, 8)
        teacher = torch.randn(1100, 20).softmax(-1)
        plain = -(teacher * (x @ weight.T).log_softmax(-1)).sum(-1).mean()
        [expected] = torch.autograd.grad(2 * plain, x)
        found = losses.soft_cross_entropy(x, teacher, weight)
        torch.testing.assert_close(found, plain.detach())
        [gradient] = torch.autograd.grad(2 * found, x)
        torch.testing.assert_close(gradient, expected)

    def test_a_chain_computes_what_drafting_one_token_at_a_time_does(self):
        answers = cycle_answers(1)
        head = self.eagle(answers)
        states = batches.make_batch(answers).states
        embedded = torch.randn(1, 40, HIDDEN)
        with torch.no_grad():
            chained = head(states, embedded, 3)
            for start in (0, 9, 30):
                # Entries up to `start` as in step 1; then one entry per draft, whose feature is the output before.
                feature = head.fc(states[:, :start + 1, :3].flatten(2) / head.feature_scale)
                for step in range(1, 4):
                    entries = torch.cat([embedded[:, 1:start + 2], embedded[:, start + 2:start + 1 + step]], 1)
                    out = head.layer(entries, feature, 1, [], [])
                    torch.testing.assert_close(head.norm(out[:, -1]), chained[step - 1][:, start], rtol=1e-4, atol=1e-4)
                    feature = torch.cat([feature, out[:, -1:]], 1)

    def test_a_certain_target_is_learnt_and_its_drafts_accepted(self):
        answers = cycle_answers(24)
        for medusa in (True, False):
            task = self.task(heads.Medusa(HIDDEN, 3) if medusa else self.eagle(answers), medusa)
            optimizer, rng = training.make_optimizer(task.head), np.random.default_rng(0)
            before = training.check(task, answers[:8])[0][0]
            for _ in range(150):
                training.train_batch(task, optimizer, answers[:12], 1, rng)
            after = training.check(task, answers[12:20])[0][0]
            self.assertLess(after, 0.5 * before)
            for temperature in (0.0, 0.8):
                self.assertGreater(evaluation.evaluate(task, answers[12:], temperature)["acceptance_by_position"][0], 0.8)

    def test_a_written_eagle3_head_computes_in_plain_numpy_what_was_trained(self):
        answers, target, ids = cycle_answers(1), small_target(), np.arange(0, VOCABULARY, 2)
        head = self.eagle(answers)
        with torch.no_grad():
            for parameter in head.parameters():  # as if trained: nothing is one, zero or small any more
                parameter.add_(0.1 * torch.randn(parameter.shape))
            embedded = torch.from_numpy(target.output[answers[0].tokens].astype(np.float32))
            expected = head(batches.make_batch(answers).states, embedded[None], 1)[0][0].numpy() @ target.output[ids].T.astype(np.float32)
        with tempfile.TemporaryDirectory() as out:
            weights = {name: value.numpy() for name, value in head.state_dict().items()}
            folder.write_eagle3(out, weights, target, ids, [2, 4, 5], heads.ROPE_THETA)
            found = numpy_eagle3(out, batches.to_floats(answers[0].states)[:, :3].numpy(), embedded.numpy())
        np.testing.assert_allclose(found, expected[:-1], rtol=0.02, atol=0.02 * np.abs(expected).max())

    def test_starts_are_those_whose_drafted_token_is_in_the_text(self):
        batch = batches.make_batch([answer(range(6)), answer(range(4), prompt_tokens=1)])
        found = [each.tolist() for each in batch.starts(2)]
        self.assertEqual(found, [[0, 0, 1], [1, 2, 0]])


if __name__ == "__main__":
    unittest.main()
