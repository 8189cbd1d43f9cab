#include "grammar/xgrammar_matcher.hpp"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "config/structured_limits.hpp"

namespace tandem {
namespace {

/// A row of one bit per token, as XGrammar takes it.
struct mask_tensor {
  std::int64_t words;
  DLTensor tensor{};

  explicit mask_tensor(std::span<std::uint32_t> bits) : words(static_cast<std::int64_t>(bits.size())) {
    tensor.data = bits.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 1;
    tensor.dtype = xgrammar::GetBitmaskDLType();
    tensor.shape = &words;
  }
};

/// Of this thread alone: on a busy machine it may be kept waiting, which is not the grammar's fault.
std::chrono::nanoseconds computing_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

std::unique_ptr<grammar_matcher> xgrammar_grammar::start() const {
  return std::make_unique<xgrammar_matcher>(compiled_);
}

std::size_t xgrammar_grammar::bytes() const {
  return compiled_.MemorySizeBytes();
}

template <class Work>
void xgrammar_matcher::guarded(const Work& work) {
  const std::chrono::nanoseconds started = computing_time();
  try {
    work();
  } catch (const std::exception&) {
    lose(stuck_reason::broken);
  }
  if (computing_time() - started > limits::kMaxMatcherTime) lose(stuck_reason::too_slow);
}

void xgrammar_matcher::lose(stuck_reason why) {
  matcher_.reset();
  if (!lost_) lost_ = why;
}

xgrammar_matcher::xgrammar_matcher(const xgrammar::CompiledGrammar& compiled) {
  guarded([&] { matcher_.emplace(compiled); });
}

bool xgrammar_matcher::accept(token_id token) {
  bool taken = false;
  if (matcher_) guarded([&] { taken = !matcher_->IsTerminated() && matcher_->AcceptToken(token); });
  return taken;
}

void xgrammar_matcher::rewind(std::int32_t count) {
  if (matcher_ && count > 0) guarded([&] { matcher_->Rollback(count); });
}

void xgrammar_matcher::fill_mask(std::span<std::uint32_t> bits) {
  if (matcher_) {
    mask_tensor mask(bits);
    guarded([&] { matcher_->FillNextTokenBitmask(&mask.tensor); });
  }
  if (!matcher_) std::fill(bits.begin(), bits.end(), 0u);
}

bool xgrammar_matcher::is_complete() const {
  return matcher_ && matcher_->IsCompleted();
}

bool xgrammar_matcher::has_ended() const {
  return matcher_ && matcher_->IsTerminated();
}

}  // namespace tandem
