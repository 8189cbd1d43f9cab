#include "model/hyperparameters.hpp"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>

#include "config/limits.hpp"

namespace tandem::model {
namespace {

tl::unexpected<error> wrong(const hyperparameters& numbers, const std::string& problem) {
  return fail(error_code::corrupt, fmt::format("{}: {}.", numbers.source, problem), numbers.source);
}

result<void> check_bounds(const hyperparameters& numbers) {
  struct bound {
    const char* what;
    std::int64_t value;
    std::int64_t most;
  };
  for (const bound& each : {
           bound{"the number of layers", numbers.layers, limits::kMaxLayers},
           bound{"the hidden size", numbers.hidden, limits::kMaxHidden},
           bound{"the intermediate size", numbers.intermediate, limits::kMaxIntermediate},
           bound{"the number of attention heads", numbers.heads, limits::kMaxHeads},
           bound{"the number of key-value heads", numbers.kv_heads, limits::kMaxHeads},
           bound{"the head size", numbers.head_dim, limits::kMaxHeadDim},
           bound{"the context length", numbers.context_length, INT32_MAX},
       }) {
    if (each.value >= 1 && each.value <= each.most) continue;
    return wrong(numbers, fmt::format("{} is {}, not between 1 and {}", each.what, each.value, each.most));
  }
  return {};
}

result<void> check_rope(const hyperparameters& numbers) {
  const rope_description& rope = numbers.rope;
  if (rope.dimensions < 2 || rope.dimensions % 2 != 0 || rope.dimensions > numbers.head_dim) {
    return wrong(numbers, fmt::format("{} rotating dimensions are not possible for heads of size {}", rope.dimensions,
                                      numbers.head_dim));
  }
  const auto usable = [](double value) { return std::isfinite(value) && value > 0.0; };
  if (!usable(rope.theta) || rope.theta <= 1.0) {
    return wrong(numbers, fmt::format("the RoPE base {} is not a number above 1", rope.theta));
  }
  if (rope.scaling == rope_description::scaling_kind::none) return {};
  for (const double factor :
       {rope.factor, rope.low_frequency_factor, rope.high_frequency_factor, rope.beta_fast, rope.beta_slow}) {
    if (!usable(factor)) return wrong(numbers, fmt::format("the RoPE scaling factor {} is not above 0", factor));
  }
  if (!std::isfinite(rope.attention_factor) || rope.attention_factor < 0.0) {
    return wrong(numbers, "the RoPE attention factor is negative or no number");
  }
  if (rope.scaling == rope_description::scaling_kind::linear) return {};
  if (rope.original_context < 1) return wrong(numbers, "the RoPE scaling lacks its original context length");
  const bool llama3 = rope.scaling == rope_description::scaling_kind::llama3;
  if (llama3 && rope.high_frequency_factor <= rope.low_frequency_factor) {
    return wrong(numbers, "the RoPE high frequency factor is not above the low one");
  }
  return {};
}

}  // namespace

result<void> check_hyperparameters(const hyperparameters& numbers) {
  if (auto bounds = check_bounds(numbers); !bounds) return bounds;
  if (numbers.heads % numbers.kv_heads != 0) {
    return wrong(numbers, fmt::format("{} attention heads cannot share {} key-value heads evenly", numbers.heads,
                                      numbers.kv_heads));
  }
  if (!std::isfinite(numbers.norm_epsilon) || numbers.norm_epsilon < 0.0 || numbers.norm_epsilon > 1.0) {
    return wrong(numbers, fmt::format("the norm epsilon {} is not between 0 and 1", numbers.norm_epsilon));
  }
  return check_rope(numbers);
}

}  // namespace tandem::model
