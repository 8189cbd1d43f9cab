#include "app/hidden_dump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "app/progress_bar.hpp"
#include "config/limits.hpp"
#include "gpu/host/bf16.hpp"
#include "model/safetensors_writer.hpp"

namespace tandem::app {
namespace {

using clock = std::chrono::steady_clock;

std::uint64_t bytes_per_token(const engine::hidden_state_reader& reader) {
  return sizeof(token_id) + sizeof(std::uint16_t) * static_cast<std::uint64_t>(reader.width());
}

std::vector<model::planned_tensor> plan(std::span<const dumped_sequence> shard,
                                        const engine::hidden_state_reader& reader) {
  std::vector<model::planned_tensor> tensors;
  for (const dumped_sequence& each : shard) {
    const std::uint64_t states = reader.layers().size() + 1;
    tensors.push_back({each.name + ".prompt_tokens", model::stored_dtype::i32, {1}});
    tensors.push_back({each.name + ".tokens", model::stored_dtype::i32, {each.tokens.size()}});
    tensors.push_back({each.name + ".states",
                       model::stored_dtype::bf16,
                       {each.tokens.size(), states, static_cast<std::uint64_t>(reader.hidden_size())}});
  }
  return tensors;
}

result<void> write_sequence(const dumped_sequence& sequence, engine::hidden_state_reader& reader,
                            model::safetensors_writer& file) {
  const std::int32_t prompt_tokens = sequence.prompt_tokens;
  if (auto written = file.write(std::as_bytes(std::span(&prompt_tokens, 1))); !written) return written;
  if (auto written = file.write(std::as_bytes(std::span(sequence.tokens))); !written) return written;
  std::vector<std::uint16_t> rounded;
  return reader.read(sequence.tokens, [&](std::span<const float> states, std::int32_t) {
    rounded.resize(states.size());
    std::ranges::transform(states, rounded.begin(), gpu::host::float_to_bf16);
    return file.write(std::as_bytes(std::span(rounded)));
  });
}

}  // namespace

std::vector<dumped_sequence> sequences_of(std::size_t place, const engine::collected_answer& answer) {
  std::vector<dumped_sequence> sequences;
  if (answer.refused || !answer.prompt) return sequences;
  for (std::size_t choice = 0; choice < answer.choices.size(); ++choice) {
    const std::vector<token_id>& output = answer.choices[choice].tokens;
    if (output.empty()) continue;
    dumped_sequence sequence;
    sequence.name = fmt::format("{}.{}", place, choice);
    sequence.tokens = *answer.prompt;
    sequence.tokens.insert(sequence.tokens.end(), output.begin(), output.end());
    sequence.prompt_tokens = static_cast<std::int32_t>(answer.prompt->size());
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

std::size_t shard_length(std::span<const dumped_sequence> sequences, std::uint64_t bytes_per_token,
                         std::uint64_t bytes) {
  std::uint64_t used = 0;
  std::size_t count = 0;
  for (const dumped_sequence& each : sequences) {
    used += each.tokens.size() * bytes_per_token;
    if (used > bytes && count > 0) break;
    ++count;
  }
  return count;
}

result<void> write_hidden_states(const std::string& prefix, const std::string& model_name,
                                 std::span<const dumped_sequence> sequences, engine::hidden_state_reader& reader,
                                 const std::atomic<bool>& stop) {
  const std::vector<std::pair<std::string, std::string>> metadata = {
      {"format", "tandem hidden states 1"},
      {"model", model_name},
      {"layers", fmt::format("{}", fmt::join(reader.layers(), ","))},
      {"hidden_size", std::to_string(reader.hidden_size())}};
  progress_bar bar(sequences.size());
  const auto started = clock::now();
  std::size_t done = 0;
  std::int64_t tokens = 0;
  for (std::size_t number = 1; done < sequences.size(); ++number) {
    const auto rest = sequences.subspan(done);
    const auto shard = rest.first(shard_length(rest, bytes_per_token(reader), limits::kHiddenShardBytes));
    auto file = model::safetensors_writer::create(fmt::format("{}-{:05}.safetensors", prefix, number),
                                                  plan(shard, reader), metadata);
    if (!file) return tl::unexpected(file.error());
    for (const dumped_sequence& each : shard) {
      if (stop) return fail(error_code::cancelled, "interrupted: the last file of hidden states is not whole.", prefix);
      if (auto written = write_sequence(each, reader, *file); !written) return written;
      tokens += static_cast<std::int64_t>(each.tokens.size());
      bar.show(++done, tokens, std::chrono::duration<double>(clock::now() - started).count());
    }
    if (auto whole = file->finish(); !whole) return whole;
  }
  return {};
}

}  // namespace tandem::app
