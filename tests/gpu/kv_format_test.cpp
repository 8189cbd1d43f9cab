// Invariant 4 where attention is cut over threads, and with keys and values in every format.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "tests/gpu/device_lab.hpp"

namespace tandem::test {
namespace {

using gpu::kv_dtype;

const model::model& long_model() {
  rand_options options;
  options.layers = 2;
  options.context_length = 2048;
  options.seed = 21;
  static const auto opened = open_made(make_rand(options));
  return *opened;
}

std::unique_ptr<gpu::device> device_of(kv_dtype kv, std::int32_t threads, bool drafts = false) {
  gpu::host_options options = tiny_options(threads);
  options.kv = kv;
  options.max_num_batched_tokens = 4096;  // all prompts in one step
  return make_tiny(options, long_model(), drafts ? &long_model() : nullptr);
}

/// Prompts that end before, in and behind partitions of 256 positions.
lab_sequence sequence_of(std::size_t length) {
  lab_sequence sequence;
  std::mt19937 random(static_cast<std::uint32_t>(length));
  for (std::size_t i = 0; i < length; ++i) sequence.prompt.push_back(static_cast<token_id>(random() % 256));
  sequence.sampling.temperature = length % 2 == 0 ? 0.0F : 0.9F;
  sequence.noise_key = length;
  sequence.max_tokens = 16;
  return sequence;
}
constexpr std::size_t kLengths[] = {40, 250, 511, 700, 1300};

void expect_same(const lab_sequence& found, const lab_sequence& right) {
  ASSERT_EQ(found.output(), right.output()) << right.prompt.size();
  for (std::size_t i = 0; i < right.logprobs.size(); ++i)
    ASSERT_EQ(found.logprobs[i].logprob, right.logprobs[i].logprob) << right.prompt.size() << " token " << i;
}

class kv_format_of : public testing::TestWithParam<kv_dtype> {
 protected:
  /// Alone on one thread, where nothing is cut, the prompt in one piece.
  static std::vector<lab_sequence> oracle() {
    std::vector<lab_sequence> right;
    for (const std::size_t length : kLengths) {
      device_lab lab(device_of(GetParam(), 1));
      right.push_back(sequence_of(length));
      lab.run(right.back());
    }
    return right;
  }
};

TEST_P(kv_format_of, long_sequences_have_the_same_bits_alone_and_together_on_any_threads_in_any_chunks) {
  const auto right = oracle();
  for (const std::int32_t threads : {1, 2, 5, 16})
    for (const std::int32_t chunk : {0, 300}) {
      for (std::size_t i = 0; i < right.size(); ++i) {
        device_lab lab(device_of(GetParam(), threads));
        lab_sequence alone = sequence_of(kLengths[i]);
        lab.run(alone, chunk);
        expect_same(alone, right[i]);
      }
      device_lab lab(device_of(GetParam(), threads));
      std::vector<lab_sequence> sequences;
      for (const std::size_t length : kLengths) sequences.push_back(sequence_of(length));
      std::vector<lab_sequence*> all;
      for (lab_sequence& each : sequences) all.push_back(&each);
      lab.run(all, chunk);
      for (std::size_t i = 0; i < right.size(); ++i) expect_same(sequences[i], right[i]);
    }
}

TEST_P(kv_format_of, the_model_as_its_own_draft_is_always_right_and_changes_nothing) {
  const auto right = oracle();
  for (const std::int32_t k : {1, 5}) {
    device_lab lab(device_of(GetParam(), 3, true));
    for (std::size_t i = 0; i < right.size(); ++i) {
      lab_sequence drafted = sequence_of(kLengths[i]);
      drafted.k = k;
      lab.run(drafted, 500);
      expect_same(drafted, right[i]);
      EXPECT_GT(drafted.drafted, 0);
      EXPECT_EQ(drafted.accepted, drafted.drafted);
    }
  }
}

TEST_P(kv_format_of, pages_of_a_shared_prefix_serve_another_sequence) {
  const auto right = oracle();
  device_lab lab(device_of(GetParam(), 2));
  lab_sequence first = sequence_of(700);
  lab.run(first);
  for (const std::ptrdiff_t blocks : {1, 17, 43}) {
    lab_sequence second = sequence_of(700);
    second.shared_blocks.assign(first.table.begin(), first.table.begin() + blocks);
    lab.run(second);
    expect_same(second, right[3]);
  }
}

INSTANTIATE_TEST_SUITE_P(each, kv_format_of, testing::Values(kv_dtype::fp32, kv_dtype::bf16, kv_dtype::int8),
                         [](const auto& each) {
                           return each.param == kv_dtype::fp32 ? "fp32" : each.param == kv_dtype::bf16 ? "bf16" : "int8";
                         });

double mean_difference(const lab_sequence& a, const lab_sequence& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.prompt_scores.size(); ++i)
    sum += std::abs(static_cast<double>(a.prompt_scores[i].logprob) - b.prompt_scores[i].logprob);
  return sum / static_cast<double>(a.prompt_scores.size());
}

lab_sequence scored(kv_dtype kv) {
  device_lab lab(device_of(kv, 2));
  lab_sequence sequence = sequence_of(700);
  sequence.prompt_logprobs = 0;
  lab.run(sequence);
  return sequence;
}

/// A step of int8 is largest / 127, with 16 normal channels 1/70 of a usual one; a step of bf16 is 1/256 to 1/128: the
/// errors are a few times as large.
TEST(kv_format, int8_is_not_bf16_and_a_few_times_as_far_from_fp32) {
  const lab_sequence exact = scored(kv_dtype::fp32);
  const double of_bf16 = mean_difference(scored(kv_dtype::bf16), exact);
  const double of_int8 = mean_difference(scored(kv_dtype::int8), exact);
  std::printf("mean difference to fp32: bf16 %.5f, int8 %.5f\n", of_bf16, of_int8);
  EXPECT_GT(of_bf16, 0.0);
  EXPECT_GT(of_int8, of_bf16);
  EXPECT_LT(of_int8, 10 * of_bf16);
}

TEST(kv_format, the_same_memory_holds_more_int8_blocks) {
  const auto blocks = [](kv_dtype kv) {
    gpu::host_options options = tiny_options();
    options.kv = kv;
    options.num_kv_blocks = 0;
    options.kv_bytes = 1 << 20;
    const auto device = make_tiny(options, long_model());
    EXPECT_LE(device->info().kv_bytes, options.kv_bytes);
    EXPECT_GT(device->info().kv_bytes, options.kv_bytes * 9 / 10);
    return device->info().num_kv_blocks;
  };
  // heads of 16 channels: 16 bytes and a scale of 4 instead of 32 or 64 bytes
  EXPECT_NEAR(blocks(kv_dtype::int8), blocks(kv_dtype::bf16) * 32 / 20, 2);
  EXPECT_NEAR(blocks(kv_dtype::int8), blocks(kv_dtype::fp32) * 64 / 20, 3);
}

}  // namespace
}  // namespace tandem::test
