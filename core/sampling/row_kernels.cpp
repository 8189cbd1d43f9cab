#include "core/sampling/row_kernels.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/assert.hpp"
#include "core/sampling/noise.hpp"
#include "core/sampling/philox.hpp"

#define TANDEM_INLINE [[gnu::always_inline]] inline

namespace tandem::row {
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kGroup = philox::kGroup;
constexpr float kLargestFinite = std::numeric_limits<float>::max();

TANDEM_INLINE float largest_body(const float* logits, std::size_t size) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = kMinusInfinity;
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] = logits[i + j] > lanes[j] ? logits[i + j] : lanes[j];
  }
  float best = kMinusInfinity;
  for (; i < size; ++i) best = logits[i] > best ? logits[i] : best;
  for (const float lane : lanes) best = lane > best ? lane : best;
  return best < kLargestFinite ? best : kLargestFinite;
}

TANDEM_INLINE std::size_t first_at_least_body(const float* logits, std::size_t size, float bound) {
  std::size_t i = 0;
  for (; i + kGroup <= size; i += kGroup) {
    std::uint32_t any = 0;
    for (std::size_t j = 0; j < kGroup; ++j) any |= logits[i + j] >= bound ? 1u : 0u;
    if (any != 0) break;
  }
  for (; i < size; ++i) {
    if (logits[i] >= bound) return i;
  }
  return size;
}

TANDEM_INLINE float distance(float logit, float maximum, float scale) {
  const auto bits = std::bit_cast<std::uint32_t>(logit);
  const float number = select((bits & 0x7FFFFFFFu) <= 0x7F800000u, logit, kMinusInfinity);  // NaN → -inf
  return (select(bits != 0x7F800000u, number, kLargestFinite) - maximum) * scale;
}

// The sums are one vector: as an array GCC 12 adds them one by one.
typedef float float_lanes __attribute__((vector_size(kLanes * sizeof(float))));
typedef double double_lanes __attribute__((vector_size(kLanes * sizeof(double))));

TANDEM_INLINE double sum_exp_body(const float* logits, std::size_t size, float maximum, float scale) {
  double_lanes lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    float terms[kLanes];
    for (std::size_t j = 0; j < kLanes; ++j) terms[j] = exp_nonpositive(distance(logits[i + j], maximum, scale));
    float_lanes together;
    std::memcpy(&together, terms, sizeof together);
    lanes += __builtin_convertvector(together, double_lanes);
  }
  for (; i < size; ++i) lanes[i % kLanes] += static_cast<double>(exp_nonpositive(distance(logits[i], maximum, scale)));
  double sum = 0;
  for (std::size_t j = 0; j < kLanes; ++j) sum += lanes[j];
  return sum;
}

TANDEM_INLINE void collect_body(const float* logits, std::size_t size, float maximum, float scale, float bound,
                                std::vector<token_id>& into) {
  for (std::size_t begin = 0; begin < size; begin += kGroup) {
    const std::size_t count = std::min(kGroup, size - begin);
    std::uint32_t any = 0;
    for (std::size_t j = 0; j < count; ++j) any |= distance(logits[begin + j], maximum, scale) >= bound ? 1u : 0u;
    if (any == 0) continue;
    for (std::size_t j = 0; j < count; ++j) {
      if (distance(logits[begin + j], maximum, scale) >= bound) into.push_back(static_cast<token_id>(begin + j));
    }
  }
}

// --- perturbed argmax ---
//
// The noise of every id is needed in principle, its logarithms are not: for u near 1, -log(-log u) ≤ -log(1 - u), and
// log2(1 - u) is bounded from below by the bits of the float read as an integer. Only ids whose bound reaches the best
// score so far (a few dozen per row) are scored exactly, so the result is that of the full computation.

// Above the rounding of the fp32 bound; scores that matter lie within (-30, 30).
constexpr float kBoundSlack = 2e-3F;
// The largest Gumbel value of a 32-bit u is 33 ln 2.
constexpr float kGumbelCeiling = 22.88F;

TANDEM_INLINE float gumbel_bound(std::uint32_t word) {
  const auto half = static_cast<std::int32_t>(~word >> 1);
  const float below = static_cast<float>(half) + 0.25F;  // 2 * below ≤ (1 - u) * 2^32
  const auto log2_scaled = static_cast<float>(std::bit_cast<std::int32_t>(below));
  return (31.0F + 127.0F - log2_scaled * 0x1p-23F) * std::numbers::ln2_v<float>;
}

struct group_noise {
  alignas(64) std::uint32_t words[kGroup];
};

TANDEM_INLINE void fill_group(std::size_t begin, const perturbation& noise, group_noise& out) {
  constexpr std::size_t lanes = philox::kLanes;
  const auto call = static_cast<std::uint32_t>(begin / kGroup * lanes);
  const auto place = static_cast<std::uint64_t>(noise.position);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    std::uint32_t c0 = call + static_cast<std::uint32_t>(lane);
    auto c1 = static_cast<std::uint32_t>(place);
    auto c2 = static_cast<std::uint32_t>(place >> 32);
    auto c3 = static_cast<std::uint32_t>(noise_purpose::gumbel);
    philox::scramble(c0, c1, c2, c3, static_cast<std::uint32_t>(noise.key),
                     static_cast<std::uint32_t>(noise.key >> 32));
    out.words[lane] = c0;
    out.words[lanes + lane] = c1;
    out.words[2 * lanes + lane] = c2;
    out.words[3 * lanes + lane] = c3;
  }
}

double score_of(const perturbation& noise, float logit, double u) {
  const double gap = static_cast<double>(cleaned(logit)) - static_cast<double>(noise.maximum);
  return gap * (1.0 / static_cast<double>(noise.temperature)) - std::log(-std::log(u));
}

[[gnu::noinline]] void offer_candidates(const float* logits, std::size_t begin, const group_noise& group,
                                        const float* bounds, const perturbation& noise, perturbed_best& best) {
  for (std::size_t j = 0; j < kGroup; ++j) {
    if (bounds[j] < static_cast<float>(best.score) - kBoundSlack || !(logits[j] > kMinusInfinity)) continue;
    const double u = (static_cast<double>(group.words[j]) + 0.5) * 0x1p-32;
    best.offer(static_cast<token_id>(begin + j), score_of(noise, logits[j], u));
  }
}

TANDEM_INLINE void argmax_group(const float* logits, std::size_t begin, float scale, const perturbation& noise,
                                perturbed_best& best) {
  const float threshold = static_cast<float>(best.score) - kBoundSlack;
  alignas(64) float bounds[kGroup];
  std::uint32_t any = 0;
  for (std::size_t j = 0; j < kGroup; ++j) {
    bounds[j] = distance(logits[j], noise.maximum, scale);
    any |= bounds[j] + kGumbelCeiling < threshold ? 0u : 1u;  // a NaN (infinite scale) must be scored exactly
  }
  if (any == 0) return;
  group_noise group;
  fill_group(begin, noise, group);
  any = 0;
  for (std::size_t j = 0; j < kGroup; ++j) {
    bounds[j] += gumbel_bound(group.words[j]);
    any |= bounds[j] < threshold ? 0u : 1u;
  }
  if (any != 0) offer_candidates(logits, begin, group, bounds, noise, best);
}

TANDEM_INLINE void argmax_body(const float* logits, std::size_t size, const perturbation& noise, perturbed_best& best) {
  const float scale = static_cast<float>(1.0 / static_cast<double>(noise.temperature));
  std::size_t begin = 0;
  for (; begin + kGroup <= size; begin += kGroup) argmax_group(logits + begin, begin, scale, noise, best);
  if (begin == size) return;
  float padded[kGroup];
  for (float& logit : padded) logit = kMinusInfinity;
  std::memcpy(padded, logits + begin, (size - begin) * sizeof(float));
  argmax_group(padded, begin, scale, noise, best);
}

// --- one instance per instruction set ---

struct kernels {
  float (*largest)(const float*, std::size_t);
  std::size_t (*first_at_least)(const float*, std::size_t, float);
  double (*sum_exp)(const float*, std::size_t, float, float);
  void (*collect)(const float*, std::size_t, float, float, float, std::vector<token_id>&);
  void (*argmax)(const float*, std::size_t, const perturbation&, perturbed_best&);
};

#define TANDEM_KERNELS(NAME, TARGET)                                                                               \
  TARGET float largest_##NAME(const float* row, std::size_t size) {                                                \
    return largest_body(row, size);                                                                                \
  }                                                                                                                \
  TARGET std::size_t first_##NAME(const float* row, std::size_t size, float bound) {                               \
    return first_at_least_body(row, size, bound);                                                                  \
  }                                                                                                                \
  TARGET double sum_exp_##NAME(const float* row, std::size_t size, float maximum, float scale) {                   \
    return sum_exp_body(row, size, maximum, scale);                                                                \
  }                                                                                                                \
  TARGET void collect_##NAME(const float* row, std::size_t size, float maximum, float scale, float bound,          \
                             std::vector<token_id>& into) {                                                        \
    collect_body(row, size, maximum, scale, bound, into);                                                          \
  }                                                                                                                \
  TARGET void argmax_##NAME(const float* row, std::size_t size, const perturbation& noise, perturbed_best& best) { \
    argmax_body(row, size, noise, best);                                                                           \
  }                                                                                                                \
  constexpr kernels k_##NAME{largest_##NAME, first_##NAME, sum_exp_##NAME, collect_##NAME, argmax_##NAME};

TANDEM_KERNELS(portable, )
#if defined(__x86_64__)
TANDEM_KERNELS(avx2, [[gnu::target("avx2")]])
TANDEM_KERNELS(avx512, [[gnu::target("avx512f,avx512vl,avx512bw,avx512dq")]])
#endif

isa best_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq")) {
    return isa::avx512;
  }
  if (__builtin_cpu_supports("avx2")) return isa::avx2;
#endif
  return isa::portable;
}

std::atomic<isa>& chosen_isa() {
  static std::atomic<isa> chosen{best_isa()};
  return chosen;
}

const kernels& chosen() {
#if defined(__x86_64__)
  switch (current_isa()) {
    case isa::avx512:
      return k_avx512;
    case isa::avx2:
      return k_avx2;
    case isa::portable:
      break;
  }
#endif
  return k_portable;
}

}  // namespace

isa current_isa() {
  return chosen_isa().load(std::memory_order_relaxed);
}
bool isa_supported(isa wanted) {
  return wanted <= best_isa();
}
void force_isa_for_test(isa wanted) {
  TANDEM_ASSERT(isa_supported(wanted));
  chosen_isa().store(wanted, std::memory_order_relaxed);
}

float largest(std::span<const float> logits) {
  return chosen().largest(logits.data(), logits.size());
}

std::size_t first_at_least(std::span<const float> logits, float bound) {
  return chosen().first_at_least(logits.data(), logits.size(), bound);
}

double sum_exp(std::span<const float> logits, float maximum, float scale) {
  return chosen().sum_exp(logits.data(), logits.size(), maximum, scale);
}

void collect_at_least(std::span<const float> logits, float maximum, float scale, float bound,
                      std::vector<token_id>& into) {
  chosen().collect(logits.data(), logits.size(), maximum, scale, bound, into);
}

double perturbed_score(const perturbation& noise, token_id id, float logit) {
  return score_of(noise, logit, uniform(noise.key, noise.position, id, noise_purpose::gumbel));
}

void perturbed_argmax(std::span<const float> logits, const perturbation& noise, perturbed_best& best) {
  TANDEM_ASSERT(best.id >= 0);
  chosen().argmax(logits.data(), logits.size(), noise, best);
}

}  // namespace tandem::row
