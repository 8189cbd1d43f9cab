// A draft head that has no memory for what the target computed costs drafts: no step, and no other token.
#include <gtest/gtest.h>

#include <new>
#include <random>

#include "gpu/host/eagle_runner.hpp"
#include "gpu/host/host_core.hpp"
#include "gpu/host/medusa_runner.hpp"
#include "gpu/host/settled_options.hpp"
#include "tests/gpu/device_lab.hpp"

namespace tandem::test {
namespace {

using namespace gpu::host;

/// Takes in some of every third step's rows and loses the others; of every fifth it loses all.
class forgetful_head final : public draft_head {
 public:
  forgetful_head(std::unique_ptr<draft_head> inner, bool loses) : inner_(std::move(inner)), loses_(loses) {}

  void take_in(std::span<const committed_rows> rows) override {
    ++steps_;
    if (loses_ && steps_ % 5 == 0) throw std::bad_alloc();
    if (!loses_ || steps_ % 3 != 0) return inner_->take_in(rows);
    inner_->take_in(rows.first(rows.size() / 2));
    throw std::bad_alloc();
  }
  void draft(std::span<head_run> runs, const std::function<bool()>& wanted) override { inner_->draft(runs, wanted); }
  draft_method method() const override { return inner_->method(); }
  std::int32_t most_drafts() const override { return inner_->most_drafts(); }
  std::uint64_t weight_bytes() const override { return inner_->weight_bytes(); }
  std::uint64_t kept_bytes() const override { return inner_->kept_bytes(); }

 private:
  std::unique_ptr<draft_head> inner_;
  bool loses_;
  int steps_ = 0;
};

class device_with_head final : public gpu::device {
 public:
  explicit device_with_head(std::shared_ptr<host_core> core) : core_(std::move(core)) {}
  const gpu::device_info& info() const override { return core_->info; }
  std::unique_ptr<gpu::target_stream> open_target_stream() override { return make_target_stream(core_); }
  std::unique_ptr<gpu::draft_stream> open_draft_stream() override { return nullptr; }
  std::unique_ptr<gpu::draft_stream> open_head_stream() override { return make_head_stream(core_); }

 private:
  std::shared_ptr<host_core> core_;
};

kv_cache pages_for(const model_shape& shape, std::size_t layers, const settled_options& options) {
  return *kv_cache::make({.layers = static_cast<std::int32_t>(layers),
                          .kv_heads = shape.kv_heads,
                          .head_dim = shape.head_dim,
                          .block_size = options.asked.block_size,
                          .blocks = options.asked.num_kv_blocks,
                          .format = options.kv});
}

void make_target(host_core& core, const model::model& target, const settled_options& options) {
  core.team = std::make_unique<compute_team>(options.threads);
  auto packed = *pack_model(target, options.how, options.set, *core.team, {});
  kv_cache pages = pages_for(packed.shape, packed.layers.size(), options);
  core.target = std::make_unique<model_executor>(
      std::move(packed), std::move(pages), *core.team,
      model_executor::options{options.set, options.asked.max_num_batched_tokens, options.asked.max_model_len});
  core.info.block_size = options.asked.block_size;
  core.info.num_kv_blocks = options.asked.num_kv_blocks;
  core.info.vocabulary_size = core.target->shape().vocabulary_size;
}

std::unique_ptr<draft_head> head_of(host_core& core, const model::draft_heads& heads, const settled_options& options) {
  auto packed = *pack_heads(heads, options.how, options.set, *core.team);
  const std::int32_t slots = options.asked.max_num_seqs;
  if (packed.kind == model::head_kind::medusa)
    return std::make_unique<medusa_runner>(std::move(packed), *core.target, *core.team, slots);
  kv_cache pages = pages_for(packed.eagle.shape, 1, options);
  return std::make_unique<eagle_runner>(std::move(packed), std::move(pages), *core.target, *core.team, slots);
}

std::unique_ptr<gpu::device> device_of(const model::model& target, const model::draft_heads& heads, bool loses) {
  const settled_options options = *settle(tiny_options(2), target);
  auto core = std::make_shared<host_core>();
  make_target(*core, target, options);
  core->head = std::make_unique<forgetful_head>(head_of(*core, heads, options), loses);
  core->info.head_method = core->head->method();
  core->info.head_draft_limit = core->head->most_drafts();
  const std::int32_t slots = options.asked.max_num_seqs;
  core->target_work =
      std::make_unique<target_runner>(*core->target, *core->team, slots, core->head.get(), std::span<std::int32_t>{});
  core->head_work =
      std::make_unique<head_runner>(*core->head, core->target_work->slots(), slots, options.asked.num_kv_blocks);
  return std::make_unique<device_with_head>(std::move(core));
}

std::vector<lab_sequence> sequences(std::int32_t k, float temperature) {
  std::vector<lab_sequence> all(4);
  std::mt19937 random(1);
  for (lab_sequence& each : all) {
    for (int i = 0; i < 40; ++i) each.prompt.push_back(static_cast<token_id>(random() % 256));
    each.sampling.temperature = temperature;
    each.sampling.repetition_penalty = 1.2F;
    each.noise_key = random();
    each.max_tokens = 60;
    each.k = k;
  }
  return all;
}

std::int32_t run_all(device_lab& lab, std::vector<lab_sequence>& all) {
  std::vector<lab_sequence*> pointers;
  for (lab_sequence& each : all) pointers.push_back(&each);
  lab.run(pointers, 16);
  std::int32_t drafted = 0;
  for (const lab_sequence& each : all) drafted += each.drafted;
  return drafted;
}

TEST(forgetful_head, costs_drafts_and_neither_a_step_nor_a_token) {
  rand_options sizes;
  sizes.layers = 3;
  const made_model made = make_rand(sizes);
  const auto target = open_made(made);
  device_lab plain(make_tiny(tiny_options(1), *target));
  for (const made_heads& each : {make_medusa(made), make_eagle(made), make_eagle(made, {.third = false})}) {
    const auto heads = open_made_heads(each, *target);
    for (const float temperature : {0.0F, 1.0F}) {
      device_lab whole(device_of(*target, *heads, false));
      device_lab lossy(device_of(*target, *heads, true));
      auto alone = sequences(0, temperature);
      auto drafted = sequences(4, temperature);
      auto lost = drafted;
      run_all(plain, alone);
      const std::int32_t all_drafts = run_all(whole, drafted);
      const std::int32_t some_drafts = run_all(lossy, lost);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_EQ(drafted[i].output(), alone[i].output());
        EXPECT_EQ(lost[i].output(), alone[i].output());
      }
      EXPECT_GT(some_drafts, 0);
      EXPECT_LT(some_drafts, all_drafts);
    }
  }
}

}  // namespace
}  // namespace tandem::test
