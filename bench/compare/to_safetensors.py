#!/usr/bin/env python3
"""A GGUF file as a folder that vLLM reads: config.json and the same weights, dequantised to bf16, as safetensors.

to_safetensors.py FILE.gguf [FOLDER]       FOLDER: default beside the file, its name without .gguf

Needs the packages torch, transformers, gguf, safetensors and accelerate; memory for the weights in fp32 and bf16.
There is no tokenizer in the folder: bench/compare feeds token ids.
"""
import argparse
import os

import torch
from transformers import AutoModelForCausalLM


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("folder", nargs="?")
    args = parser.parse_args()
    source, name = os.path.split(os.path.abspath(args.file))
    folder = args.folder or os.path.splitext(os.path.abspath(args.file))[0]
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=name, dtype=torch.float32).to(torch.bfloat16)
    # What was read is quantised; what is written is not, and must not say so.
    model.hf_quantizer, model.is_quantized = None, False
    model.config.__dict__.pop("quantization_config", None)
    model.save_pretrained(folder)
    print(f"wrote {folder}: {', '.join(sorted(os.listdir(folder)))}")


if __name__ == "__main__":
    main()
