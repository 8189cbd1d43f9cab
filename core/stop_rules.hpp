#pragma once
/// Stop strings as one automaton over bytes (Aho & Corasick 1975), so that a stop is found wherever it starts and ends,
/// inside tokens or across them.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// Immutable; shared by the choices of a request.
class stop_automaton {
 public:
  explicit stop_automaton(std::span<const std::string> stops);

  struct match {
    std::size_t stop_index = 0;   ///< which stop string
    std::size_t end = 0;          ///< all bytes the cursor has read, up to and including the match's last byte
    std::size_t length = 0;       ///< of the stop string
  };

  /// Position in the automaton plus bytes read. Value type: copy to try, assign to keep.
  struct cursor {
    std::int32_t node = 0;
    std::size_t bytes = 0;
  };

  /// Reads `text` on from the cursor; stops at the first byte that completes a stop string (of several that end there,
  /// the longest, so the earliest start). The cursor is left behind that byte.
  std::optional<match> push(cursor& at, std::string_view text) const;
  /// Trailing bytes read so far that are a proper prefix of some stop string.
  std::size_t held(const cursor& at) const;
  bool empty() const { return nodes_.size() <= 1; }

 private:
  struct node {
    std::vector<std::pair<unsigned char, std::int32_t>> next;  // sorted by byte
    std::int32_t fail = 0;
    std::int32_t depth = 0;
    std::int32_t match = -1;  // longest stop string that ends here
  };
  void insert(std::string_view stop, std::int32_t index);
  void link_failures();
  std::int32_t step(std::int32_t from, unsigned char byte) const;
  std::vector<node> nodes_;
  std::vector<std::size_t> lengths_;
};

}  // namespace tandem
