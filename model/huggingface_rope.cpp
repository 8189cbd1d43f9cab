#include "model/huggingface_rope.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/printable.hpp"

namespace tandem::model {
namespace {

using kind = rope_description::scaling_kind;
using text::json_field;

constexpr std::string_view kOriginal = "original_max_position_embeddings";

struct scaling_settings {
  std::string_view key;
  json_field object;
};

scaling_settings find_settings(const config_fields& fields) {
  if (fields["rope_parameters"]) return {"rope_parameters", fields["rope_parameters"]};
  return {"rope_scaling", fields["rope_scaling"]};
}

std::string_view type_of(const scaling_settings& settings) {
  const std::string_view fallback = settings.key == "rope_parameters" ? "default" : "";
  return settings.object["rope_type"].text_or(settings.object["type"].text_or(fallback));
}

// Paper: 0.1 ln(factor) + 1; DeepSeek's configs weight the logarithm.
double yarn_stretch(double factor, double weight) {
  return factor > 1.0 ? 0.1 * weight * std::log(factor) + 1.0 : 1.0;
}

void read_yarn(config_fields& fields, json_field object, hyperparameters& numbers) {
  rope_description& rope = numbers.rope;
  rope.beta_fast = fields.real_or(object, "beta_fast", 32.0);
  rope.beta_slow = fields.real_or(object, "beta_slow", 1.0);
  rope.attention_factor = fields.real_or(object, "attention_factor", 0.0);
  const double weight = fields.real_or(object, "mscale", 0.0);
  const double weight_all = fields.real_or(object, "mscale_all_dim", 0.0);
  if (rope.attention_factor == 0.0 && weight != 0.0 && weight_all != 0.0) {
    rope.attention_factor = yarn_stretch(rope.factor, weight) / yarn_stretch(rope.factor, weight_all);
  }
  if (!object["truncate"].flag_or(true)) {
    fields.refuse(error_code::unsupported, "truncate", "yarn without truncation is not supported");
  }
}

void read_scaling(config_fields& fields, const scaling_settings& settings, hyperparameters& numbers) {
  rope_description& rope = numbers.rope;
  const std::string_view type = type_of(settings);
  if (type == "default") return;
  if (type != "linear" && type != "llama3" && type != "yarn") {
    fields.refuse(error_code::unsupported, settings.key,
                  fmt::format("RoPE scaling \"{}\" is not supported, only default, linear, llama3 and yarn are",
                              printable(type, 40)));
    return;
  }
  rope.factor = fields.real(settings.object, "factor");
  if (type == "linear") {
    rope.scaling = kind::linear;
    return;
  }
  const bool llama3 = type == "llama3";
  rope.scaling = llama3 ? kind::llama3 : kind::yarn;
  const bool stated = llama3 || settings.object[kOriginal];
  rope.original_context = static_cast<std::int32_t>(stated ? fields.integer(settings.object, kOriginal, INT32_MAX)
                                                           : numbers.context_length);
  if (!llama3) return read_yarn(fields, settings.object, numbers);
  rope.low_frequency_factor = fields.real(settings.object, "low_freq_factor");
  rope.high_frequency_factor = fields.real(settings.object, "high_freq_factor");
}

bool holds_objects(json_field object) {
  for (const auto& member : object.members()) {
    if (member.value.is_object()) return true;
  }
  return false;
}

}  // namespace

void read_huggingface_rope(config_fields& fields, hyperparameters& numbers) {
  const scaling_settings settings = find_settings(fields);
  rope_description& rope = numbers.rope;
  rope.dimensions = static_cast<std::int32_t>(numbers.head_dim);
  rope.theta = fields["rope_theta"] ? fields.real(fields.root(), "rope_theta")
                                    : fields.real_or(settings.object, "rope_theta", 10000.0);
  if (fields.real_or(fields.root(), "partial_rotary_factor", 1.0) != 1.0 ||
      fields.real_or(settings.object, "partial_rotary_factor", 1.0) != 1.0) {
    fields.refuse(error_code::unsupported, "partial_rotary_factor", "partly rotated heads are not supported");
  }
  if (!settings.object) return;
  if (!settings.object.is_object()) {
    fields.refuse(error_code::corrupt, settings.key, "it is no object");
  } else if (holds_objects(settings.object)) {
    fields.refuse(error_code::unsupported, settings.key, "a RoPE setting per kind of layer is not supported");
  } else {
    read_scaling(fields, settings, numbers);
  }
}

}  // namespace tandem::model
