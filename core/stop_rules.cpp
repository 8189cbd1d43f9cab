#include "core/stop_rules.hpp"

#include <algorithm>
#include <queue>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem {
namespace {

using edge = std::pair<unsigned char, std::int32_t>;

template <class Edges>
auto find_edge(Edges& edges, unsigned char byte) {
  return std::lower_bound(edges.begin(), edges.end(), byte, [](const edge& e, unsigned char b) { return e.first < b; });
}

}  // namespace

stop_automaton::stop_automaton(std::span<const std::string> stops) : nodes_(1) {
  TANDEM_ASSERT(stops.size() <= limits::kMaxStopStrings);
  for (std::size_t index = 0; index < stops.size(); ++index) {
    TANDEM_ASSERT(!stops[index].empty() && stops[index].size() <= limits::kMaxStopStringBytes);
    lengths_.push_back(stops[index].size());
    insert(stops[index], static_cast<std::int32_t>(index));
  }
  link_failures();
}

void stop_automaton::insert(std::string_view stop, std::int32_t index) {
  std::int32_t at = 0;
  for (const char c : stop) {
    const auto byte = static_cast<unsigned char>(c);
    auto& edges = nodes_[static_cast<std::size_t>(at)].next;
    const auto found = find_edge(edges, byte);
    if (found != edges.end() && found->first == byte) {
      at = found->second;
      continue;
    }
    const auto fresh = static_cast<std::int32_t>(nodes_.size());
    edges.insert(found, {byte, fresh});
    nodes_.push_back({{}, 0, nodes_[static_cast<std::size_t>(at)].depth + 1, -1});
    at = fresh;
  }
  node& last = nodes_[static_cast<std::size_t>(at)];
  if (last.match < 0) last.match = index;
}

// Breadth first, so that a node's failure (always shallower) is complete before the node is.
void stop_automaton::link_failures() {
  std::queue<std::int32_t> waiting;
  for (const auto& [byte, child] : nodes_[0].next) waiting.push(child);
  while (!waiting.empty()) {
    const auto parent = static_cast<std::size_t>(waiting.front());
    waiting.pop();
    for (const auto& [byte, child] : nodes_[parent].next) {
      node& target = nodes_[static_cast<std::size_t>(child)];
      target.fail = step(nodes_[parent].fail, byte);
      // A node's own stop string is longer than any that ends in its failure.
      if (target.match < 0) target.match = nodes_[static_cast<std::size_t>(target.fail)].match;
      waiting.push(child);
    }
  }
}

std::int32_t stop_automaton::step(std::int32_t from, unsigned char byte) const {
  while (true) {
    const auto& current = nodes_[static_cast<std::size_t>(from)];
    const auto found = find_edge(current.next, byte);
    if (found != current.next.end() && found->first == byte) return found->second;
    if (from == 0) return 0;
    from = current.fail;
  }
}

std::optional<stop_automaton::match> stop_automaton::push(cursor& at, std::string_view text) const {
  if (empty()) {
    at.bytes += text.size();
    return std::nullopt;
  }
  for (const char c : text) {
    at.node = step(at.node, static_cast<unsigned char>(c));
    ++at.bytes;
    const std::int32_t found = nodes_[static_cast<std::size_t>(at.node)].match;
    if (found < 0) continue;
    const auto index = static_cast<std::size_t>(found);
    return match{index, at.bytes, lengths_[index]};
  }
  return std::nullopt;
}

std::size_t stop_automaton::held(const cursor& at) const {
  std::int32_t node_index = at.node;
  // A leaf is a whole stop string, not a proper prefix of one.
  while (node_index != 0 && nodes_[static_cast<std::size_t>(node_index)].next.empty()) {
    node_index = nodes_[static_cast<std::size_t>(node_index)].fail;
  }
  return static_cast<std::size_t>(nodes_[static_cast<std::size_t>(node_index)].depth);
}

}  // namespace tandem
