// Real answers replayed under draft policies on made devices: how many times plain decoding. No computing, the same
// figures everywhere. Rows: answers; columns: fixed numbers of drafts, the adaptive policy, what no policy can beat.
#include <cstdio>
#include <memory>
#include <string>

#include "tests/core/recorded_answers.hpp"

namespace tandem::recorded {
namespace {

constexpr int kSeeds = 16;

/// Steps of one row; then what each further row adds, measured on Qwen2.5-Coder-1.5B.
synthetic::row_seconds through(std::vector<std::pair<double, double>> points) {
  return [points = std::move(points)](double rows) {
    for (std::size_t i = 1; i < points.size(); ++i) {
      const auto [r0, s0] = points[i - 1];
      const auto [r1, s1] = points[i];
      if (rows <= r1 || i + 1 == points.size()) return s0 + (s1 - s0) * (rows - r0) / (r1 - r0);
    }
    return points.front().second;
  };
}

speculation_settings adaptive() {
  return {draft_method::ngram, limits::kMaxDraftTokens, std::nullopt, true, true};
}

struct column {
  std::string name;
  draft_method method;
  std::int32_t k;
};

void print(const char* name, const device& on) {
  const std::vector<column> columns{
      {"n2", draft_method::ngram, 2},       {"n3", draft_method::ngram, 3},       {"n4", draft_method::ngram, 4},
      {"n8", draft_method::ngram, 8},       {"n16", draft_method::ngram, 16},     {"d1", draft_method::draft_model, 1},
      {"d2", draft_method::draft_model, 2}, {"d3", draft_method::draft_model, 3}, {"d4", draft_method::draft_model, 4},
      {"d6", draft_method::draft_model, 6}, {"d8", draft_method::draft_model, 8}};
  std::printf("\n%-8s", name);
  for (const column& each : columns) std::printf("  %-5s", each.name.c_str());
  std::printf("  auto   foreknown\n");
  std::vector<std::unique_ptr<speculation_policy>> policies;  // each from a cold start, its device's noise another
  for (int i = 0; i < kSeeds; ++i) policies.push_back(make_policy(adaptive()));
  std::vector<double> sums(columns.size() + 2, 0.0);
  for (const answer& each : answers()) {
    std::printf("%-8s", each.name.c_str());
    const double base = plain(each, on);
    std::size_t at = 0;
    const auto put = [&](double seconds) {
      sums[at++] += seconds / base;
      std::printf("  %-5.3f", base / seconds);
    };
    const device still{on.target, on.draft, 0};
    for (const column& one : columns) {
      fixed_policy policy({one.method, one.k, std::nullopt});
      put(on.draft || one.method == draft_method::ngram ? replay(each, still, policy, 1) : base);
    }
    double seconds = 0;
    for (int i = 0; i < kSeeds; ++i)
      seconds += replay(each, on, *policies[static_cast<std::size_t>(i)], static_cast<std::uint64_t>(i)) / kSeeds;
    put(seconds);
    put(foreknown(each, on));
    std::printf("\n");
  }
  std::printf("%-8s", "all");
  for (const double sum : sums) std::printf("  %-5.3f", static_cast<double>(answers().size()) / sum);
  std::printf("\n");
}

}  // namespace
}  // namespace tandem::recorded

int main() {
  using namespace tandem::recorded;
  const auto avx512 = through({{1, 1}, {2, 1.0}, {4, 1.08}, {8, 1.7}, {16, 3.3}, {32, 6.5}});
  const auto avx2 = through({{1, 1}, {2, 1.12}, {3, 1.38}, {4, 1.7}, {8, 3.4}, {16, 6.8}});
  const auto wide = through({{1, 1}, {16, 1.15}, {32, 1.5}});
  const auto small = [](const tandem::synthetic::row_seconds& target) {
    return [target](double rows) { return 0.38 * target(rows); };
  };
  print("avx512", {avx512, nullptr, 0.05});
  print("avx2", {avx2, nullptr, 0.05});
  print("wide", {wide, nullptr, 0.05});
  print("avx512+d", {avx512, small(avx512), 0.05});
  print("avx2+d", {avx2, small(avx2), 0.05});
  print("wide+d", {wide, small(wide), 0.05});
}
