// Real answers replayed under draft policies on made devices: how many times plain decoding. No computing, the same
// figures everywhere. Rows: answers; columns: fixed numbers of drafts, the adaptive policy, what no policy can beat.
#include <cstdio>
#include <memory>
#include <string>

#include "tests/core/recorded_answers.hpp"

namespace tandem::recorded {
namespace {

constexpr int kSeeds = 16;

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
  for (int i = 0; i < kSeeds; ++i) policies.push_back(make_policy(automatic()));
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
  for (const auto& [name, on] : tandem::recorded::devices()) tandem::recorded::print(name.c_str(), on);
}
