#include "tests/gpu/device_lab.hpp"

#include <algorithm>
#include <cstdio>
#include <future>
#include <utility>

#include "core/assert.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::test {
namespace {

constexpr std::int32_t kBlockStep = 7;  // blocks are handed out in steps, so that no table is contiguous by chance
constexpr std::int32_t kTestTicket = 0;
constexpr std::int32_t kModelTicket = 1;

slot_opening opening_of(const lab_sequence& sequence, std::uint32_t generation) {
  slot_opening opened;
  opened.slot = sequence.slot;
  opened.slot_gen = generation;
  opened.sampling = std::make_shared<const sampling_params>(sequence.sampling);
  opened.noise_key = sequence.noise_key;
  opened.rule = sequence.rule;
  opened.prompt_length = static_cast<std::int32_t>(sequence.prompt.size());
  opened.known = std::make_shared<const std::vector<token_id>>(sequence.known);
  opened.top_logprobs = sequence.top_logprobs;
  opened.prompt_logprobs = sequence.prompt_logprobs;
  return opened;
}

template <class Work>
void send_table(Work& work, const lab_sequence& sequence, std::int32_t& sent) {
  const auto size = static_cast<std::int32_t>(sequence.table.size());
  if (sent == size) return;
  work.table_deltas.push_back({sequence.slot, sent, {sequence.table.begin() + sent, sequence.table.end()}});
  sent = size;
}

bool finished(const lab_sequence& sequence) {
  return static_cast<std::int32_t>(sequence.known.size() - sequence.prompt.size()) >= sequence.max_tokens &&
         (sequence.max_tokens > 0 || sequence.computed == static_cast<std::int32_t>(sequence.known.size()));
}

}  // namespace

std::shared_ptr<const model::model> open_made(const made_model& made) {
  const temporary_folder folder;  // the mapping outlives the name
  write_gguf(made, folder / "made.gguf");
  auto opened = model::open_model(folder / "made.gguf");
  TANDEM_ASSERT(opened.has_value());
  return *opened;
}

std::shared_ptr<const model::model> open_made_folder(const made_model& made) {
  const temporary_folder folder;
  write_huggingface_folder(made, folder / "made");
  auto opened = model::open_model(folder / "made");
  if (!opened) std::fprintf(stderr, "%s\n", opened.error().message.c_str());
  TANDEM_ASSERT(opened.has_value());
  return *opened;
}

std::shared_ptr<const model::draft_heads> open_made_heads(const made_heads& made, const model::model& target) {
  const temporary_folder folder;
  write_heads(made, folder / "heads");
  auto opened = model::open_draft_heads(folder / "heads", target.describe());
  if (!opened) std::fprintf(stderr, "%s\n", opened.error().message.c_str());
  TANDEM_ASSERT(opened.has_value());
  return *opened;
}

gpu::host_options tiny_options(std::int32_t threads) {
  gpu::host_options options;
  options.threads = threads;
  options.dtype = gpu::compute_dtype::fp32;
  options.num_kv_blocks = 1000;
  options.max_num_seqs = 64;
  options.max_num_batched_tokens = 2048;
  return options;
}

std::unique_ptr<gpu::device> make_tiny(const gpu::host_options& options, const model::model& target,
                                       const model::model* draft, const model::draft_heads* heads) {
  auto device = gpu::make_host_device(options, target, draft, heads);
  if (!device) std::fprintf(stderr, "%s\n", device.error().message.c_str());
  TANDEM_ASSERT(device.has_value());
  return std::move(*device);
}

device_lab::device_lab(std::unique_ptr<gpu::device> device)
    : device_(std::move(device)), target_(device_->open_target_stream()), draft_(device_->open_draft_stream()) {
  if (!draft_) draft_ = device_->open_head_stream();
}

block_id device_lab::new_block() {
  TANDEM_ASSERT(next_block_ < device_->info().num_kv_blocks && device_->info().num_kv_blocks % kBlockStep != 0);
  return static_cast<block_id>(std::int64_t{next_block_++} * kBlockStep % device_->info().num_kv_blocks);
}

void device_lab::start(lab_sequence& sequence) {
  if (sequence.slot != kNoSlot) return;
  sequence.slot = next_slot_++;
  sequence.known.insert(sequence.known.begin(), sequence.prompt.begin(), sequence.prompt.end());
  sequence.table = sequence.shared_blocks;
  sequence.computed = static_cast<std::int32_t>(sequence.table.size()) * device_->info().block_size;
  sequence.computed_draft = sequence.shared_draft_valid ? sequence.computed : 0;
  TANDEM_ASSERT(sequence.computed < static_cast<std::int32_t>(sequence.known.size()));
}

void device_lab::cover(lab_sequence& sequence, std::int32_t tokens) {
  while (static_cast<std::int32_t>(sequence.table.size()) * device_->info().block_size < tokens)
    sequence.table.push_back(new_block());
}

bool device_lab::plan(lab_sequence& sequence, std::int32_t chunk, step_work& work, draft_work& drafts) {
  const auto known = static_cast<std::int32_t>(sequence.known.size());
  const std::int32_t pending = known - sequence.computed;
  const std::int32_t now = chunk == 0 ? pending : std::min(pending, chunk);
  const bool whole = now == pending;
  cover(sequence, sequence.computed + now + (whole ? sequence.k : 0));
  if (!std::exchange(sequence.opened, true)) work.opened.push_back(opening_of(sequence, ++last_gen_));
  send_table(work, sequence, sequence.table_sent);
  step_rows rows;
  rows.slot = sequence.slot;
  rows.slot_gen = static_cast<std::uint32_t>(sequence.slot) + 1;
  rows.first_position = sequence.computed;
  rows.tokens.assign(sequence.known.begin() + sequence.computed, sequence.known.begin() + sequence.computed + now);
  rows.yields_token = whole && sequence.max_tokens > 0;
  if (!whole) rows.following_token = sequence.known[static_cast<std::size_t>(sequence.computed + now)];
  if (whole && sequence.k > 0) plan_drafts(sequence, rows, work, drafts);
  work.rows.push_back(std::move(rows));
  stepping_.push_back(&sequence);
  return true;
}

void device_lab::plan_drafts(lab_sequence& sequence, step_rows& rows, step_work& work, draft_work& drafts) {
  rows.draft_rows = sequence.k;
  rows.offers[0] = {sequence.drafts ? kTestTicket : kModelTicket, static_cast<std::int32_t>(work.rows.size())};
  if (sequence.drafts) return;
  if (rebuild_draft_kv) sequence.computed_draft = 0;
  if (device_->info().head_method != draft_method::none)
    sequence.computed_draft = static_cast<std::int32_t>(sequence.known.size()) - 1;
  if (!std::exchange(sequence.opened_draft, true)) drafts.opened.push_back(opening_of(sequence, rows.slot_gen));
  send_table(drafts, sequence, sequence.table_sent_draft);
  proposal wanted;
  wanted.slot = sequence.slot;
  wanted.first_position = sequence.computed_draft;
  wanted.new_tokens.assign(sequence.known.begin() + sequence.computed_draft, sequence.known.end());
  wanted.k = sequence.k;
  wanted.ticket_row = rows.offers[0].row;
  drafts.proposals.push_back(std::move(wanted));
}

/// Ticket rows are numbered like the step's rows, in both tickets.
void device_lab::fill_tickets(step_work& work, draft_work& drafts) {
  auto given = std::make_shared<ticket>(work.rows.size());
  for (std::size_t i = 0; i < work.rows.size(); ++i)
    if (work.rows[i].offers[0].ticket == kTestTicket) given->fill(i).tokens = stepping_[i]->drafts(*stepping_[i]);
  given->seal();
  drafts.drafts = std::make_shared<ticket>(work.rows.size());
  if (drafts.proposals.empty()) drafts.drafts->seal();
  work.tickets = {given, drafts.drafts};
}

std::future<step_outcome> device_lab::launch(std::shared_ptr<const step_work> work) {
  auto promise = std::make_shared<std::promise<step_outcome>>();
  auto future = promise->get_future();
  target_->launch(std::move(work), [promise](step_outcome outcome) { promise->set_value(std::move(outcome)); });
  return future;
}

step_outcome device_lab::step(std::shared_ptr<const step_work> work) {
  return launch(std::move(work)).get();
}

void device_lab::settle(lab_sequence& sequence, const slot_outcome& outcome) {
  TANDEM_ASSERT(outcome.slot == sequence.slot);
  sequence.computed += outcome.rows_done + outcome.accepted;
  sequence.prompt_scores.insert(sequence.prompt_scores.end(), outcome.prompt_logprobs.begin(),
                                outcome.prompt_logprobs.end());
  sequence.drafted += outcome.drafted;
  sequence.accepted += outcome.accepted;
  ++sequence.steps;
  const std::size_t most = sequence.prompt.size() + static_cast<std::size_t>(sequence.max_tokens);
  for (std::size_t i = 0; i < outcome.tokens.size() && sequence.known.size() < most; ++i) {
    sequence.known.push_back(outcome.tokens[i]);
    if (i < outcome.logprobs.size()) sequence.logprobs.push_back(outcome.logprobs[i]);
  }
  if (!outcome.tokens.empty())  // cut at max_tokens: the last token kept is still to be computed
    sequence.computed = std::min(sequence.computed, static_cast<std::int32_t>(sequence.known.size()) - 1);
}

void device_lab::settle_draft(const draft_work& work, const draft_outcome& outcome) {
  TANDEM_ASSERT(outcome.ok && outcome.entries.size() == work.proposals.size());
  for (std::size_t i = 0; i < outcome.entries.size(); ++i) {
    lab_sequence& sequence = *drafting_[i].first;
    const auto& entry = outcome.entries[i];
    const std::int32_t valid = std::min(entry.draft_rows, drafting_[i].second);
    sequence.computed_draft = std::min(entry.known_rows + valid, static_cast<std::int32_t>(sequence.known.size()) - 1);
  }
}

void device_lab::run(std::vector<lab_sequence*> sequences, std::int32_t chunk) {
  for (lab_sequence* each : sequences) start(*each);
  while (true) {
    auto work = std::make_shared<step_work>();
    auto drafts = std::make_shared<draft_work>();
    work->step = drafts->step = ++last_step_;
    stepping_.clear();
    drafting_.clear();
    for (lab_sequence* each : sequences)
      if (!finished(*each)) plan(*each, chunk, *work, *drafts);
    if (work->rows.empty()) return;
    fill_tickets(*work, *drafts);
    std::promise<draft_outcome> drafted;
    auto stepped = launch(work);
    if (!drafts->proposals.empty())
      draft_->launch(drafts, [&](draft_outcome outcome) { drafted.set_value(std::move(outcome)); });
    const step_outcome outcome = stepped.get();
    TANDEM_ASSERT(outcome.ok && outcome.step == last_step_ && outcome.slots.size() == stepping_.size());
    for (std::size_t i = 0; i < stepping_.size(); ++i) {
      if (work->rows[i].offers[0].ticket == kModelTicket)
        drafting_.push_back({stepping_[i], outcome.slots[i].accepted});
      settle(*stepping_[i], outcome.slots[i]);
    }
    if (drafts->proposals.empty()) continue;
    settle_draft(*drafts, drafted.get_future().get());
    if (on_drafts) on_drafts(*drafts->drafts);
  }
}

}  // namespace tandem::test
