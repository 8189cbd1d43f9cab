#include "actors/custom_source.hpp"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

class whole_text final : public drafting_text {
 public:
  whole_text(const custom_source::options& options, std::uint64_t sequence, std::int32_t prompt_length)
      : options_(options), sequence_(sequence), prompt_length_(prompt_length) {}

  void append(std::span<const token_id> tokens, std::int32_t) override {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }

  ticket::row propose(std::int32_t k, const drafts_by_evidence& most) override {
    const std::int32_t wanted = std::min<std::int32_t>(k, most[kNoOpinion]);
    if (wanted <= 0) return {};
    try {
      std::vector<token_id> drafts =
          options_.drafts->propose({sequence_, tokens_, std::min(prompt_length_, length()), wanted});
      if (drafts.size() > static_cast<std::size_t>(wanted)) drafts.resize(static_cast<std::size_t>(wanted));
      cut_unknown(drafts);
      return {std::move(drafts), {}, kNoOpinion};
    } catch (...) {
      // Whatever it throws is its own affair; the model goes on without drafts.
      options_.on_fault(draft_fault::exception);
      return {};
    }
  }

 private:
  std::int32_t length() const { return static_cast<std::int32_t>(tokens_.size()); }
  void cut_unknown(std::vector<token_id>& drafts) const {
    const auto unknown = std::find_if(drafts.begin(), drafts.end(), [this](token_id token) {
      return token < 0 || token >= options_.vocabulary_size;
    });
    if (unknown == drafts.end()) return;
    options_.on_fault(draft_fault::unknown_token);
    drafts.erase(unknown, drafts.end());
  }

  const custom_source::options& options_;
  std::uint64_t sequence_;
  std::int32_t prompt_length_;
  std::vector<token_id> tokens_;  // at most limits::kMaxModelLength
};

}  // namespace

std::unique_ptr<drafting_text> custom_source::begin(const slot_opening& opening) {
  return std::make_unique<whole_text>(options_, ++sequences_begun_, opening.prompt_length);
}

}  // namespace tandem
