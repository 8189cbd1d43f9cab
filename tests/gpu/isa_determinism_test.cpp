// Invariant 4 on the fast path, for each instruction set this machine has: the bits of every logit are those of the
// sequence alone, whatever its company, chunks and threads. Narrow models have int8 activations in two terms, wide ones
// in one. Across instruction sets only the int8 kernels promise equal bits (gpu_kernels_test, matmul_bits): attention
// and row operations agree to a few ulp there.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <tuple>

#include "config/limits.hpp"
#include "gpu/host/packed_matrix.hpp"
#include "tests/gpu/device_lab.hpp"

namespace tandem::test {
namespace {

using gpu::host::isa;

constexpr token_id kBytes = 256;
constexpr std::int32_t kAllTokens = 259;  // the bytes and three special tokens
constexpr std::int32_t kOthers = 37;
constexpr std::size_t kPromptTokens = 71;  // a chunk of 64 and a rest; not a multiple of 7

struct made_case {
  const char* name;
  std::int32_t hidden;
  model::tensor_kind kind;
  gpu::weight_quantization quantization;
};

std::ostream& operator<<(std::ostream& out, const made_case& which) {
  return out << which.name;
}

constexpr std::int32_t kWide = limits::kPreciseBelowHidden;
constexpr made_case kCases[] = {
    {"narrow_q4_0", 64, model::tensor_kind::q4_0, gpu::weight_quantization::none},
    {"narrow_rounded_at_load", 64, model::tensor_kind::f32, gpu::weight_quantization::int8},
    {"narrow_bf16", 64, model::tensor_kind::bf16, gpu::weight_quantization::none},
    {"wide_q8_0", kWide, model::tensor_kind::q8_0, gpu::weight_quantization::none},
    {"wide_rounded_at_load", kWide, model::tensor_kind::bf16, gpu::weight_quantization::int8},
};

const model::model& model_of(const made_case& which) {
  static std::map<std::string, std::shared_ptr<const model::model>> opened;
  auto& found = opened[which.name];
  if (found) return *found;
  rand_options options;
  options.layers = which.hidden == kWide ? 1 : 2;
  options.hidden = which.hidden;
  options.intermediate = 128;
  options.heads = which.hidden == kWide ? 12 : 4;
  options.kind = which.kind;
  options.seed = 23;
  found = open_made(make_rand(options));
  return *found;
}

lab_sequence sequence_of(std::size_t length, std::uint32_t seed) {
  std::mt19937 random(seed);
  lab_sequence sequence;
  sequence.prompt.resize(length);
  for (token_id& token : sequence.prompt) token = static_cast<token_id>(random() % kBytes);
  sequence.sampling.temperature = 0.8F;
  sequence.noise_key = seed;
  sequence.max_tokens = 4;
  return sequence;
}

/// The whole distribution at every position of prompt and answer.
lab_sequence watched_sequence() {
  lab_sequence sequence = sequence_of(kPromptTokens, 1);
  sequence.top_logprobs = kAllTokens;
  sequence.prompt_logprobs = kAllTokens;
  return sequence;
}

std::vector<std::uint32_t> bits_of(const lab_sequence& sequence) {
  std::vector<std::uint32_t> bits;
  for (const auto* scores : {&sequence.prompt_scores, &sequence.logprobs}) {
    for (const token_logprobs& score : *scores) {
      bits.push_back(static_cast<std::uint32_t>(score.token));
      for (const auto& [token, logprob] : score.top) {
        bits.push_back(static_cast<std::uint32_t>(token));
        bits.push_back(std::bit_cast<std::uint32_t>(logprob));
      }
    }
  }
  return bits;
}

std::size_t differences(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  if (a.size() != b.size()) return std::max(a.size(), b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1U : 0U;
  return count;
}

class fast_path : public testing::TestWithParam<std::tuple<isa, made_case>> {
 protected:
  std::vector<std::uint32_t> bits(std::int32_t threads, std::int32_t others, std::int32_t chunk) const {
    const auto& [set, which] = GetParam();
    gpu::host_options options = tiny_options(threads);
    options.dtype = gpu::compute_dtype::automatic;
    options.quantization = which.quantization;
    options.isa = isa_name(set);
    device_lab lab(make_tiny(options, model_of(which)));
    lab_sequence watched = watched_sequence();
    std::vector<lab_sequence> company;
    for (std::int32_t i = 0; i < others; ++i)
      company.push_back(sequence_of(1 + 5 * static_cast<std::size_t>(i) % 17, 100 + static_cast<std::uint32_t>(i)));
    std::vector<lab_sequence*> all;
    for (lab_sequence& other : company) all.push_back(&other);
    all.insert(all.begin() + others / 2, &watched);
    lab.run(all, chunk);
    return bits_of(watched);
  }
};

TEST_P(fast_path, gives_the_bits_of_a_sequence_alone_in_any_company_chunking_and_on_any_threads) {
  const std::vector<std::uint32_t> alone = bits(1, 0, 0);
  // Each position: the token, then every id of the vocabulary with its log-probability.
  ASSERT_EQ(alone.size(), (kPromptTokens - 1 + 4) * (1 + 2 * kAllTokens));
  for (const std::int32_t threads : {1, 2}) {
    for (const std::int32_t chunk : {0, 1, 7, 64})
      EXPECT_EQ(differences(bits(threads, 0, chunk), alone), 0U) << threads << " threads, chunk " << chunk;
    for (const std::int32_t chunk : {0, 7})
      EXPECT_EQ(differences(bits(threads, kOthers, chunk), alone), 0U)
          << threads << " threads, in company, chunk " << chunk;
  }
}

std::vector<isa> machine_isas() {
  std::vector<isa> sets;
  for (const isa set : {isa::portable, isa::avx2, isa::avx512, isa::amx})
    if (gpu::host::choose_isa(gpu::host::isa_name(set))) sets.push_back(set);
  return sets;
}

INSTANTIATE_TEST_SUITE_P(on, fast_path, testing::Combine(testing::ValuesIn(machine_isas()), testing::ValuesIn(kCases)),
                         [](const auto& test) {
                           return std::string(isa_name(std::get<0>(test.param))) + "_" + std::get<1>(test.param).name;
                         });

TEST(quantization, to_int8_with_a_dtype_of_its_own_is_refused) {
  gpu::host_options options = tiny_options();
  options.dtype = gpu::compute_dtype::bf16;
  options.quantization = gpu::weight_quantization::int8;
  const auto refused = gpu::make_host_device(options, model_of(kCases[0]), nullptr);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, error_code::invalid_argument);
}

TEST(quantization, to_int8_keeps_about_a_byte_per_weight_and_nothing_else) {
  gpu::host_options options = tiny_options();
  options.dtype = gpu::compute_dtype::automatic;
  const model::model& wide = model_of(kCases[4]);
  const std::uint64_t as_it_is = make_tiny(options, wide)->info().weight_bytes;
  options.quantization = gpu::weight_quantization::int8;
  const std::uint64_t rounded = make_tiny(options, wide)->info().weight_bytes;
  // 34 bytes for 32 weights instead of 64, both in whole tiles.
  EXPECT_EQ(rounded * 64, as_it_is * 34);
}

}  // namespace
}  // namespace tandem::test
