#pragma once
/// Drives a device directly, as a scheduler would but with everything in the test's hand: which rows a step has, where
/// the drafts come from, which pages hold what.

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "core/step.hpp"
#include "core/ticket.hpp"
#include "gpu/host/host_device.hpp"
#include "model/model.hpp"
#include "tests/support/made_heads.hpp"
#include "tests/support/made_models.hpp"

namespace tandem::test {

/// Writes the made model as GGUF into a folder that is removed at exit, and opens it.
std::shared_ptr<const model::model> open_made(const made_model& made);

/// The same as a Hugging Face folder, which can say more about rope.
std::shared_ptr<const model::model> open_made_folder(const made_model& made);

/// Writes the made heads into a folder that is removed at exit, and opens them.
std::shared_ptr<const model::draft_heads> open_made_heads(const made_heads& made, const model::model& target);

/// One sequence under test. `known` grows as tokens are committed.
struct lab_sequence {
  std::vector<token_id> prompt;
  sampling_params sampling;
  std::uint64_t noise_key = 1;
  acceptance_rule rule = acceptance_rule::coupled;
  std::int32_t max_tokens = 16;
  std::int32_t top_logprobs = 3;
  std::int32_t prompt_logprobs = -1;
  std::int32_t k = 0;  ///< drafts wanted per step
  /// Drafts from the test; empty function with k > 0: the device's draft model, or its heads.
  std::function<std::vector<token_id>(const lab_sequence&)> drafts;
  /// Computed tokens whose pages already hold them (a prefix hit) and their blocks.
  std::vector<block_id> shared_blocks;
  bool shared_draft_valid = true;

  // What came out.
  std::vector<token_id> known;
  std::vector<token_logprobs> logprobs;
  std::vector<token_logprobs> prompt_scores;
  std::vector<block_id> table;
  std::int32_t computed = 0;
  std::int32_t computed_draft = 0;
  std::int32_t drafted = 0;
  std::int32_t accepted = 0;
  std::int32_t steps = 0;

  std::vector<token_id> output() const {
    return {known.begin() + static_cast<std::ptrdiff_t>(prompt.size()), known.end()};
  }

  // Of the lab.
  slot_id slot = kNoSlot;
  bool opened = false;
  bool opened_draft = false;
  std::int32_t table_sent = 0;
  std::int32_t table_sent_draft = 0;
};

class device_lab {
 public:
  explicit device_lab(std::unique_ptr<gpu::device> device);

  /// Runs all sequences to their max_tokens, together. `chunk`: known rows a sequence gets per step, 0 = all.
  void run(std::vector<lab_sequence*> sequences, std::int32_t chunk = 0);
  void run(lab_sequence& sequence, std::int32_t chunk = 0) { run(std::vector{&sequence}, chunk); }

  /// Told of every ticket that the device filled, as the target's stream is about to use it.
  std::function<void(const ticket&)> on_drafts;

  /// Forget the draft's KV before every step, so that it is rebuilt from scratch.
  bool rebuild_draft_kv = false;

  gpu::device& device() { return *device_; }
  step_outcome step(std::shared_ptr<const step_work> work);
  std::future<step_outcome> launch(std::shared_ptr<const step_work> work);
  block_id new_block();

 private:
  void start(lab_sequence& sequence);
  void cover(lab_sequence& sequence, std::int32_t tokens);
  bool plan(lab_sequence& sequence, std::int32_t chunk, step_work& work, draft_work& drafts);
  void plan_drafts(lab_sequence& sequence, step_rows& rows, step_work& work, draft_work& drafts);
  void fill_tickets(step_work& work, draft_work& drafts);
  void settle(lab_sequence& sequence, const slot_outcome& outcome);
  void settle_draft(const draft_work& work, const draft_outcome& outcome);

  std::unique_ptr<gpu::device> device_;
  std::unique_ptr<gpu::target_stream> target_;
  std::unique_ptr<gpu::draft_stream> draft_;
  step_id last_step_ = 0;
  slot_id next_slot_ = 0;
  std::uint32_t last_gen_ = 0;
  block_id next_block_ = 0;
  std::vector<lab_sequence*> stepping_;                           // parallel to the step's rows
  std::vector<std::pair<lab_sequence*, std::int32_t>> drafting_;  // parallel to proposals; accepted drafts
};

/// A device on tiny pages; fp32 unless said.
gpu::host_options tiny_options(std::int32_t threads = 1);
std::unique_ptr<gpu::device> make_tiny(const gpu::host_options& options, const model::model& target,
                                       const model::model* draft = nullptr, const model::draft_heads* heads = nullptr);

}  // namespace tandem::test
