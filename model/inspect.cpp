#include "model/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "model/printable.hpp"

namespace tandem::model {
namespace {

using output = std::back_insert_iterator<std::string>;

std::string in_units(double bytes) {
  constexpr double kMebi = 1024.0 * 1024.0;
  if (bytes >= 1024.0 * kMebi) return fmt::format("{:.2f} GiB", bytes / (1024.0 * kMebi));
  if (bytes >= kMebi) return fmt::format("{:.1f} MiB", bytes / kMebi);
  return fmt::format("{:.1f} KiB", bytes / 1024.0);
}

std::string scaling_text(const rope_description& rope) {
  using kind = rope_description::scaling_kind;
  const std::string divisors = rope.frequency_divisors.empty() ? "" : ", divisors from the file";
  switch (rope.scaling) {
    case kind::none:
      return divisors.empty() ? "no scaling" : "no scaling" + divisors;
    case kind::linear:
      return fmt::format("linear × {:g}{}", rope.factor, divisors);
    case kind::llama3:
      return fmt::format("llama3 × {:g} from {}{}", rope.factor, rope.original_context, divisors);
    case kind::yarn:
      return fmt::format("yarn × {:g} from {}{}", rope.factor, rope.original_context, divisors);
  }
  return "";
}

void write_sizes(output out, const description& sizes) {
  fmt::format_to(out, "architecture     {} ({})\n", sizes.architecture, sizes.format);
  if (!sizes.name.empty()) fmt::format_to(out, "name             {}\n", printable(sizes.name, 200));
  fmt::format_to(out, "parameters       {:.1f} M\n", static_cast<double>(sizes.parameters) / 1e6);
  fmt::format_to(out, "layers           {}\n", sizes.layers.size());
  fmt::format_to(out, "hidden size      {}\n", sizes.hidden_size);
  fmt::format_to(out, "intermediate     {}\n", sizes.intermediate_size);
  fmt::format_to(out, "attention        {} heads of {}, {} key-value heads{}\n", sizes.heads, sizes.head_dim,
                 sizes.kv_heads, sizes.layers.front().query_bias != nullptr ? ", with bias" : "");
  fmt::format_to(out, "context          {} positions\n", sizes.context_length);
  fmt::format_to(out, "vocabulary       {} rows, output {}\n", sizes.vocabulary_size,
                 sizes.output == sizes.embedding ? "tied to the embedding" : "on its own");
  fmt::format_to(out, "RoPE             base {:g}, {} dimensions, {} pairs, {}\n", sizes.rope.theta,
                 sizes.rope.dimensions, sizes.rope.interleaved ? "interleaved" : "split", scaling_text(sizes.rope));
}

void write_memory(output out, const description& sizes) {
  const double values_per_token =
      2.0 * static_cast<double>(sizes.layers.size()) * sizes.kv_heads * sizes.head_dim;  // keys and values
  fmt::format_to(out, "\nmemory\n  weights as stored        {}\n", in_units(static_cast<double>(sizes.weight_bytes)));
  fmt::format_to(out, "  KV of 1,000 tokens, bf16 {}\n", in_units(values_per_token * 2.0 * 1000.0));
  fmt::format_to(out, "  KV of 1,000 tokens, fp32 {}\n", in_units(values_per_token * 4.0 * 1000.0));
}

void write_kinds(output out, const model& opened) {
  struct total {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
  };
  std::map<tensor_kind, total> totals;
  for (const tensor& each : opened.tensors()) {
    total& of_kind = totals[each.kind];
    ++of_kind.count;
    of_kind.bytes += each.data.size();
  }
  fmt::format_to(out, "\ntensors\n  {:<6} {:>6} {:>14}\n", "kind", "count", "bytes");
  for (const auto& [kind, of_kind] : totals) {
    fmt::format_to(out, "  {:<6} {:>6} {:>14}\n", traits(kind).name, of_kind.count, of_kind.bytes);
  }
}

std::string token_text(const text::tokenizer_spec& spec, token_id id) {
  if (id == kNoToken) return "none";
  return fmt::format("{} \"{}\"", id, printable(spec.pieces[static_cast<std::size_t>(id)], 60));
}

void write_tokenizer(output out, const text::tokenizer_spec& spec) {
  const auto count = [&](text::token_kind kind) { return std::count(spec.kinds.begin(), spec.kinds.end(), kind); };
  fmt::format_to(out, "\ntokenizer\n  pre-tokenizer  {}\n",
                 spec.pre == text::pre_tokenizer::qwen2 ? "qwen2" : "smollm");
  fmt::format_to(out, "  tokens         {} ({} control, {} added, {} unused), {} merges\n", spec.pieces.size(),
                 count(text::token_kind::control), count(text::token_kind::user_defined),
                 count(text::token_kind::unused), spec.merges.size());
  fmt::format_to(out, "  BOS            {}{}\n", token_text(spec, spec.bos), spec.add_bos ? ", added to prompts" : "");
  fmt::format_to(out, "  ends on       ");
  for (const token_id id : spec.end_tokens) fmt::format_to(out, " {}", token_text(spec, id));
  if (spec.end_tokens.empty()) fmt::format_to(out, " none");
  const std::string chat = spec.chat_template.empty() ? "none" : fmt::format("{} bytes", spec.chat_template.size());
  fmt::format_to(out, "\n  chat template  {}\n", chat);
}

}  // namespace

std::string inspect_report(const model& opened) {
  std::string report;
  const output out(report);
  write_sizes(out, opened.describe());
  write_memory(out, opened.describe());
  write_kinds(out, opened);
  write_tokenizer(out, opened.tokenizer());
  fmt::format_to(out, "\nmetadata\n");
  for (const auto& [key, value] : opened.metadata()) fmt::format_to(out, "  {} = {}\n", key, value);
  return report;
}

}  // namespace tandem::model
