#pragma once
/// Drafts from what this server said before: statistics of past outputs, shared by all requests with the same salt.
///
/// Every generated token is learned exactly once: those that come with a proposal at once, so that requests that run
/// beside each other profit; the rest, also of sequences this source was never asked about, when their slot closes.

#include <memory>

#include "actors/text_source.hpp"
#include "core/speculation/suffix_statistics.hpp"

namespace tandem {

class suffix_source final : public text_source {
 public:
  explicit suffix_source(suffix_statistics::options options) : statistics_(options) {}

  void learn(const outputs_closed& outputs) override;

  const suffix_statistics& statistics() const { return statistics_; }

 protected:
  std::unique_ptr<drafting_text> begin(const slot_opening& opening) override;

 private:
  suffix_statistics statistics_;
};

}  // namespace tandem
