"""Writes heads as folders in the public layouts: config.json and model.safetensors, numpy alone. What is read of them:
docs/heads.md."""
import json
import os

import numpy as np

from . import safetensors_file, vocabulary


def half(array):
    return np.ascontiguousarray(array, dtype=np.float16)


def write_folder(folder, config, tensors):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")
    safetensors_file.write(os.path.join(folder, "model.safetensors"), tensors)
    return sum(os.path.getsize(os.path.join(folder, name)) for name in ("config.json", "model.safetensors"))


def write_medusa(folder, weights, target):
    """weights: of heads.Medusa, as arrays. Without output matrices in the folder the target's own is used."""
    heads = sum(name.endswith(".weight") for name in weights)
    tensors = {}
    for head in range(heads):
        tensors[f"{head}.0.linear.weight"] = half(weights[f"blocks.{head}.weight"])
        tensors[f"{head}.0.linear.bias"] = half(weights[f"blocks.{head}.bias"])
    config = {"architectures": ["MedusaModel"], "model_type": "medusa", "medusa_num_heads": heads, "medusa_num_layers": 1,
              "hidden_size": target.hidden, "vocab_size": target.vocabulary, "torch_dtype": "float16"}
    return write_folder(folder, config, tensors)


def write_eagle3(folder, weights, target, ids, layers, rope_theta):
    """weights: of heads.Eagle3; ids: its vocabulary, ascending; layers: whose input fc reads."""
    scaled_fc = weights["fc.weight"] / weights["feature_scale"][None, :]
    tensors = {"fc.weight": half(scaled_fc)}
    for name in ("input_layernorm", "hidden_norm", "post_attention_layernorm"):
        tensors[f"midlayer.{name}.weight"] = half(weights[f"{name}.weight"])
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        tensors[f"midlayer.self_attn.{name}.weight"] = half(weights[f"{name}.weight"])
    for name in ("gate_proj", "up_proj", "down_proj"):
        tensors[f"midlayer.mlp.{name}.weight"] = half(weights[f"{name}.weight"])
    tensors["norm.weight"] = half(weights["norm.weight"] * weights["output_scale"])
    tensors["lm_head.weight"] = half(target.output[ids])
    tensors["d2t"] = vocabulary.to_d2t(ids)
    tensors["t2d"] = vocabulary.to_t2d(ids, target.vocabulary)
    config = {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": target.hidden,
              "intermediate_size": int(weights["gate_proj.weight"].shape[0]), "num_hidden_layers": 1,
              "num_attention_heads": target.heads, "num_key_value_heads": target.kv_heads, "head_dim": target.head_dim,
              "hidden_act": "silu", "rms_norm_eps": target.epsilon, "rope_theta": rope_theta, "rope_scaling": None,
              "max_position_embeddings": target.context, "vocab_size": target.vocabulary, "draft_vocab_size": len(ids),
              "norm_before_residual": False, "tie_word_embeddings": False, "torch_dtype": "float16",
              "eagle_aux_hidden_state_layer_ids": list(layers),
              "eagle_config": {"eagle_aux_hidden_state_layer_ids": list(layers), "use_aux_hidden_state": True}}
    return write_folder(folder, config, tensors)
