#pragma once
/// A line on standard error that rewrites itself, only when standard error is a terminal.

#include <cstddef>
#include <cstdint>

namespace tandem::app {

class progress_bar {
 public:
  explicit progress_bar(std::size_t total);
  /// Leaves the line empty.
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void show(std::size_t done, std::int64_t tokens, double seconds);

 private:
  std::size_t total_;
  bool visible_;
};

}  // namespace tandem::app
