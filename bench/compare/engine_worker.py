#!/usr/bin/env python3
"""One engine of a peer, run by the Python that has its package: engine_worker.py openvino|vllm MODEL THREADS

Says {"ready": true} when the model is loaded. Then reads one JSON object a line, {"at_once", "prompt_tokens",
"answer_tokens", "seed"}, and answers each with {"seconds"}: the wall time of so many requests of made-up tokens, greedy,
all at once, each to the last token. Ends with its standard input, and with the process that started it.
"""
import ctypes
import json
import os
import random
import signal
import sys
import time

MOST_AT_ONCE = 64
LONGEST_TOKENS = 2048          # of a prompt and its answer
CACHE_GIB = 2
USUAL_TOKENS = (1000, 40000)   # ids without a special meaning in the vocabularies measured
DIE_WITH_PARENT = 1            # PR_SET_PDEATHSIG: a stopped process would not see that its input ended


class OpenVino:
    """The continuous batching pipeline, which takes a GGUF file or an exported folder; all else as it is by default."""

    def __init__(self, model, threads):
        import openvino
        import openvino_genai
        self.genai, self.tensor = openvino_genai, openvino.Tensor
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = CACHE_GIB
        scheduler.max_num_seqs = MOST_AT_ONCE
        scheduler.max_num_batched_tokens = LONGEST_TOKENS
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(model, scheduler, "CPU",
                                                                  {"INFERENCE_NUM_THREADS": threads})

    def generate(self, prompts, answer_tokens):
        import numpy
        settings = self.genai.GenerationConfig()
        settings.max_new_tokens, settings.ignore_eos, settings.do_sample = answer_tokens, True, False
        inputs = [self.tensor(numpy.array([prompt], dtype=numpy.int64)) for prompt in prompts]
        results = self.pipeline.generate(inputs, [settings] * len(prompts))
        return [len(result.m_generation_ids[0]) for result in results]


class Vllm:
    """bf16, no tokenizer, nothing of an earlier prompt reused, in one process; how it binds threads, its caller says."""

    def __init__(self, model, threads):
        import torch
        from vllm import LLM, SamplingParams
        torch.set_num_threads(threads)
        self.sampling = SamplingParams
        self.llm = LLM(model, dtype="bfloat16", skip_tokenizer_init=True, enable_prefix_caching=False,
                       max_model_len=LONGEST_TOKENS, max_num_seqs=MOST_AT_ONCE, max_num_batched_tokens=LONGEST_TOKENS)

    def generate(self, prompts, answer_tokens):
        settings = self.sampling(temperature=0, max_tokens=answer_tokens, ignore_eos=True, detokenize=False)
        results = self.llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], settings, use_tqdm=False)
        return [len(result.outputs[0].token_ids) for result in results]


ENGINES = {"openvino": OpenVino, "vllm": Vllm}


def made_prompts(count, tokens, seed):
    """None begins like another, of this or another seed."""
    made = random.Random(seed)
    return [[made.randrange(*USUAL_TOKENS) for _ in range(tokens)] for _ in range(count)]


def answer(engine, asked):
    prompts = made_prompts(asked["at_once"], asked["prompt_tokens"], asked["seed"])
    began = time.perf_counter()
    lengths = engine.generate(prompts, asked["answer_tokens"])
    seconds = time.perf_counter() - began
    if lengths != [asked["answer_tokens"]] * asked["at_once"]:
        raise RuntimeError(f"made {lengths} tokens where {asked['answer_tokens']} each were asked for")
    return {"seconds": seconds}


def main():
    kind, model, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # the packages print to standard output
    engine = ENGINES[kind](model, threads)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(engine, json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
