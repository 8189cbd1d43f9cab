#include "grammar/xgrammar_log.hpp"

#include <stdexcept>

#include "core/assert.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostWarnings = 8;  // more would say nothing new

thread_local xgrammar_warnings* listener = nullptr;

}  // namespace

xgrammar_warnings::xgrammar_warnings() {
  TANDEM_ASSERT(listener == nullptr);
  listener = this;
}

xgrammar_warnings::~xgrammar_warnings() {
  listener = nullptr;
}

void xgrammar_warnings::add(const std::string& text) {
  if (texts_.size() < kMostWarnings) texts_.push_back(text);
}

}  // namespace tandem

// The functions that XGrammar calls when it is built with XGRAMMAR_LOG_CUSTOMIZE.
namespace xgrammar {

[[noreturn]] void LogFatalImpl(const std::string&, int, const std::string& message);
void LogMessageImpl(const std::string&, int, int level, const std::string& message);

void LogFatalImpl(const std::string&, int, const std::string& message) {
  throw std::runtime_error(message);
}

void LogMessageImpl(const std::string&, int, int level, const std::string& message) {
  constexpr int kWarning = 2;
  if (level >= kWarning && tandem::listener != nullptr) tandem::listener->add(message);
}

}  // namespace xgrammar
