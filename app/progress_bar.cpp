#include "app/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

namespace tandem::app {

progress_bar::progress_bar(std::size_t total) : total_(total), visible_(total > 1 && isatty(STDERR_FILENO) != 0) {}

progress_bar::~progress_bar() {
  if (visible_) fmt::print(stderr, "\r\x1b[K");
}

void progress_bar::show(std::size_t done, std::int64_t tokens, double seconds) {
  if (!visible_) return;
  constexpr std::size_t kWidth = 30;
  const std::size_t filled = kWidth * done / total_;
  const double rate = seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  fmt::print(stderr, "\r[{}{}] {}/{} prompts, {:.1f} tokens/s\x1b[K", std::string(filled, '#'),
             std::string(kWidth - filled, ' '), done, total_, rate);
  std::fflush(stderr);
}

}  // namespace tandem::app
