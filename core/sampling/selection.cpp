#include "core/sampling/selection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/sampling/row_kernels.hpp"

namespace tandem::row {
namespace {

// Beyond this share of the row a heap loses against partitioning everything once.
constexpr std::size_t kHeapShare = 8;

std::vector<scored_id> partition_all(std::span<const float> logits, std::size_t count) {
  std::vector<scored_id> all;
  all.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float logit = cleaned(logits[i]);
    if (logit > kMinusInfinity) all.push_back({logit, static_cast<token_id>(i)});
  }
  if (count < all.size()) {
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(), comes_before);
    all.resize(count);
  }
  return all;
}

// Ids come in ascending order, so an equal logit never displaces one in the heap: only larger ones enter.
std::vector<scored_id> heap_scan(std::span<const float> logits, std::size_t count) {
  std::vector<scored_id> heap;
  heap.reserve(count);
  std::size_t i = 0;
  for (; i < logits.size() && heap.size() < count; ++i) {
    const float logit = cleaned(logits[i]);
    if (logit > kMinusInfinity) heap.push_back({logit, static_cast<token_id>(i)});
  }
  std::make_heap(heap.begin(), heap.end(), comes_before);
  while (heap.size() == count && heap.front().logit < std::numeric_limits<float>::max()) {
    const float bound = std::nextafter(heap.front().logit, std::numeric_limits<float>::infinity());
    i += first_at_least(logits.subspan(i), bound);
    if (i == logits.size()) break;
    std::pop_heap(heap.begin(), heap.end(), comes_before);
    heap.back() = {cleaned(logits[i]), static_cast<token_id>(i)};
    std::push_heap(heap.begin(), heap.end(), comes_before);
    ++i;
  }
  return heap;
}

}  // namespace

std::vector<scored_id> select_largest(std::span<const float> logits, std::size_t count) {
  if (count == 0) return {};
  const bool few = count < logits.size() / kHeapShare;
  std::vector<scored_id> chosen = few ? heap_scan(logits, count) : partition_all(logits, count);
  std::sort(chosen.begin(), chosen.end(), comes_before);
  return chosen;
}

}  // namespace tandem::row
