// Invariant 4: tokens and log-probabilities are a function of (weights, prompt, parameters, seed), bit for bit.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/gpu/device_lab.hpp"

namespace tandem::test {
namespace {

constexpr token_id kVocabulary = 256;

const model::model& rand_model() {
  rand_options options;
  options.layers = 3;
  options.seed = 11;
  static const auto opened = open_made(make_rand(options));
  return *opened;
}

std::vector<token_id> random_prompt(std::size_t length, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<token_id> tokens(length);
  for (token_id& token : tokens) token = static_cast<token_id>(random() % kVocabulary);
  return tokens;
}

lab_sequence sequence_number(std::uint32_t number) {
  lab_sequence sequence;
  sequence.prompt = random_prompt(5 + 13 * number % 101, number);
  sequence.sampling.temperature = number % 3 == 0 ? 0.0F : 0.8F;
  if (number % 4 == 1) sequence.sampling.top_k = 20;
  if (number % 5 == 2) sequence.sampling.repetition_penalty = 1.3F;
  if (number % 5 == 3) sequence.sampling.frequency_penalty = 0.7F;
  sequence.noise_key = 77 + number;
  sequence.max_tokens = 24;
  return sequence;
}

struct answer {
  std::vector<token_id> tokens;
  std::vector<token_logprobs> logprobs;
};

/// Alone, one thread, prompt in one piece, no drafts.
const answer& oracle(std::uint32_t number) {
  static std::map<std::uint32_t, answer> known;
  const auto found = known.find(number);
  if (found != known.end()) return found->second;
  device_lab lab(make_tiny(tiny_options(1), rand_model()));
  lab_sequence sequence = sequence_number(number);
  lab.run(sequence);
  return known[number] = {sequence.output(), sequence.logprobs};
}

void expect_oracle(const lab_sequence& sequence, std::uint32_t number) {
  const answer& right = oracle(number);
  ASSERT_EQ(sequence.output(), right.tokens) << "sequence " << number;
  ASSERT_EQ(sequence.logprobs.size(), right.logprobs.size());
  for (std::size_t i = 0; i < right.logprobs.size(); ++i) {
    EXPECT_EQ(sequence.logprobs[i].logprob, right.logprobs[i].logprob) << "sequence " << number << " token " << i;
    EXPECT_EQ(sequence.logprobs[i].top, right.logprobs[i].top);
  }
}

std::vector<token_id> right_drafts(const lab_sequence& sequence, std::uint32_t number) {
  const auto& right = oracle(number).tokens;
  const std::size_t from = sequence.known.size() - sequence.prompt.size();
  const std::size_t count = std::min<std::size_t>(static_cast<std::size_t>(sequence.k), right.size() - from);
  return {right.begin() + static_cast<std::ptrdiff_t>(from), right.begin() + static_cast<std::ptrdiff_t>(from + count)};
}

TEST(determinism, a_sequence_in_a_batch_of_37_has_the_bits_it_has_alone) {
  for (const std::int32_t threads : {1, 2, 3}) {
    device_lab lab(make_tiny(tiny_options(threads), rand_model()));
    std::vector<lab_sequence> sequences;
    for (std::uint32_t number = 0; number < 37; ++number) sequences.push_back(sequence_number(number));
    std::vector<lab_sequence*> all;
    for (lab_sequence& each : sequences) all.push_back(&each);
    lab.run(all);
    for (std::uint32_t number = 0; number < 37; ++number) expect_oracle(sequences[number], number);
  }
}

TEST(determinism, chunks_of_the_prompt_do_not_change_a_bit) {
  for (const std::int32_t chunk : {1, 7, 64}) {
    device_lab lab(make_tiny(tiny_options(2), rand_model()));
    std::vector<lab_sequence> sequences;
    for (std::uint32_t number = 0; number < 9; ++number) sequences.push_back(sequence_number(number));
    std::vector<lab_sequence*> all;
    for (lab_sequence& each : sequences) all.push_back(&each);
    lab.run(all, chunk);
    for (std::uint32_t number = 0; number < 9; ++number) expect_oracle(sequences[number], number);
  }
}

TEST(determinism, right_drafts_change_nothing_and_all_are_accepted) {
  for (const std::int32_t k : {1, 4, 8}) {
    device_lab lab(make_tiny(tiny_options(2), rand_model()));
    for (std::uint32_t number = 0; number < 6; ++number) {
      lab_sequence sequence = sequence_number(number);
      sequence.k = k;
      sequence.drafts = [number](const lab_sequence& at) { return right_drafts(at, number); };
      lab.run(sequence);
      expect_oracle(sequence, number);
      EXPECT_EQ(sequence.accepted, sequence.drafted);
      EXPECT_GT(sequence.drafted, 0);
    }
  }
}

TEST(determinism, A8_wrong_drafts_leave_no_trace_in_the_pages_after_their_rejection) {
  device_lab lab(make_tiny(tiny_options(2), rand_model()));
  for (std::uint32_t number = 0; number < 12; ++number) {
    lab_sequence sequence = sequence_number(number);
    sequence.k = 5;
    sequence.drafts = [number](const lab_sequence& at) {  // right up to a changing point, wrong behind it
      auto drafts = right_drafts(at, number);
      const std::size_t wrong = static_cast<std::size_t>(at.steps) % 5;
      for (std::size_t i = wrong; i < drafts.size(); ++i) drafts[i] = (drafts[i] + 1) % kVocabulary;
      return drafts;
    };
    lab.run(sequence);
    expect_oracle(sequence, number);
    EXPECT_LT(sequence.accepted, sequence.drafted);
  }
}

TEST(determinism, drafts_that_do_not_exist_in_the_vocabulary_are_never_looked_up) {
  device_lab lab(make_tiny(tiny_options(1), rand_model()));
  lab_sequence sequence = sequence_number(1);
  sequence.k = 4;
  sequence.drafts = [](const lab_sequence& at) {
    auto drafts = right_drafts(at, 1);
    if (drafts.size() > 1) drafts[1] = at.known.size() % 2 == 0 ? 1'000'000 : -1;
    return drafts;
  };
  lab.run(sequence);
  expect_oracle(sequence, 1);
}

TEST(determinism, a_prefix_whose_pages_another_sequence_filled_gives_the_same_bits) {
  device_lab lab(make_tiny(tiny_options(2), rand_model()));
  lab_sequence first = sequence_number(7);  // a prompt of many blocks
  ASSERT_GT(first.prompt.size(), 32U);
  lab.run(first);
  for (const std::size_t blocks : {1U, 2U}) {
    lab_sequence second = sequence_number(7);
    second.shared_blocks.assign(first.table.begin(), first.table.begin() + static_cast<std::ptrdiff_t>(blocks));
    lab.run(second);
    expect_oracle(second, 7);
  }
}

TEST(determinism, a_sequence_resumed_from_its_committed_output_goes_on_with_the_same_bits) {
  device_lab lab(make_tiny(tiny_options(2), rand_model()));
  for (std::uint32_t number = 0; number < 6; ++number) {
    lab_sequence resumed = sequence_number(number);
    const auto& right = oracle(number);
    resumed.known.assign(right.tokens.begin(), right.tokens.begin() + 10);
    lab.run(resumed, 7);
    ASSERT_EQ(resumed.output(), right.tokens);
    for (std::size_t i = 10; i < right.logprobs.size(); ++i)
      EXPECT_EQ(resumed.logprobs[i - 10].logprob, right.logprobs[i].logprob);
  }
}

TEST(determinism, log_probabilities_of_the_prompt_are_complete_and_the_same_in_every_chunking) {
  std::vector<std::vector<token_logprobs>> all;
  for (const std::int32_t chunk : {0, 1, 7, 64}) {
    device_lab lab(make_tiny(tiny_options(2), rand_model()));
    lab_sequence sequence = sequence_number(7);
    sequence.prompt_logprobs = 2;
    lab.run(sequence, chunk);
    ASSERT_EQ(sequence.prompt_scores.size(), sequence.prompt.size() - 1);
    for (std::size_t i = 0; i < sequence.prompt_scores.size(); ++i)
      EXPECT_EQ(sequence.prompt_scores[i].token, sequence.prompt[i + 1]);
    all.push_back(sequence.prompt_scores);
  }
  for (const auto& other : all)
    for (std::size_t i = 0; i < other.size(); ++i) EXPECT_EQ(other[i].logprob, all[0][i].logprob);
}

}  // namespace
}  // namespace tandem::test
