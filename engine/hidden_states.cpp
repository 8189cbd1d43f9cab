#include "engine/hidden_states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <numeric>

#include "model/draft_heads.hpp"

namespace tandem::engine {
namespace {

constexpr slot_id kSlot = 0;  // the only one

slot_opening opening_of(std::span<const token_id> tokens, std::uint32_t generation) {
  slot_opening opened;
  opened.slot = kSlot;
  opened.slot_gen = generation;
  opened.sampling = std::make_shared<const sampling_params>();
  opened.prompt_length = static_cast<std::int32_t>(tokens.size());
  opened.known = std::make_shared<const std::vector<token_id>>(tokens.begin(), tokens.end());
  return opened;
}

}  // namespace

result<hidden_state_reader> hidden_state_reader::open(const config::engine_options& options, const load_log& log) {
  config::engine_options alone = options;
  alone.speculation = {};
  alone.max_num_seqs = 1;
  const auto target = open_with_tokenizer(alone.model);
  if (!target) return tl::unexpected(target.error());
  const model::description& described = target->model->describe();
  hidden_state_reader reader;
  reader.layers_ = model::usual_feature_layers(static_cast<std::int32_t>(described.layers.size()));
  reader.hidden_size_ = described.hidden_size;
  reader.rows_per_step_ = alone.max_num_batched_tokens;
  gpu::host_options wanted = device_options(alone);
  wanted.feature_layers = reader.layers_;
  auto device = gpu::make_host_device(wanted, *target->model, nullptr);
  if (!device) return tl::unexpected(device.error());
  if (log)
    log(fmt::format("hidden states: layers {}, of {} values", fmt::join(reader.layers_, ", "), described.hidden_size));
  reader.device_ = std::move(*device);
  reader.stream_ = reader.device_->open_target_stream();
  return reader;
}

std::shared_ptr<step_work> hidden_state_reader::work_for(std::span<const token_id> tokens, std::int32_t first) {
  const auto count = std::min(static_cast<std::int32_t>(tokens.size()) - first, rows_per_step_);
  auto work = std::make_shared<step_work>();
  work->step = ++last_step_;
  if (first == 0) {
    if (last_generation_ > 0) work->closed.push_back(kSlot);
    work->opened.push_back(opening_of(tokens, ++last_generation_));
    const auto block_size = static_cast<std::size_t>(device_->info().block_size);
    std::vector<block_id> table((tokens.size() + block_size - 1) / block_size);
    std::iota(table.begin(), table.end(), 0);
    work->table_deltas.push_back({kSlot, 0, std::move(table)});
  }
  step_rows rows;
  rows.slot = kSlot;
  rows.slot_gen = last_generation_;
  rows.first_position = first;
  rows.tokens.assign(tokens.begin() + first, tokens.begin() + first + count);
  rows.wants_features = true;
  work->rows.push_back(std::move(rows));
  return work;
}

step_outcome hidden_state_reader::run(std::shared_ptr<const step_work> work) {
  const auto promise = std::make_shared<std::promise<step_outcome>>();  // the device's thread may leave it last
  auto future = promise->get_future();
  stream_->launch(std::move(work), [promise](step_outcome outcome) { promise->set_value(std::move(outcome)); });
  return future.get();
}

result<void> hidden_state_reader::read(std::span<const token_id> tokens, const row_consumer& consume) {
  const gpu::device_info& info = device_->info();
  if (tokens.size() > static_cast<std::size_t>(info.num_kv_blocks) * static_cast<std::size_t>(info.block_size))
    return fail(
        error_code::invalid_argument,
        fmt::format("a sequence has {} tokens, but the KV cache holds {} blocks of {}; raise --kv-cache-memory or "
                    "--num-kv-blocks.",
                    tokens.size(), info.num_kv_blocks, info.block_size),
        "--num-kv-blocks");
  for (std::int32_t first = 0; first < static_cast<std::int32_t>(tokens.size());) {
    const step_outcome outcome = run(work_for(tokens, first));
    if (!outcome.ok) return fail(error_code::device_failed, outcome.error_message);
    const slot_outcome& rows = outcome.slots.front();
    if (auto consumed = consume(rows.features, rows.rows_done); !consumed) return consumed;
    first += rows.rows_done;
  }
  return {};
}

}  // namespace tandem::engine
