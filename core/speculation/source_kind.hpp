#pragma once
/// What kinds of draft sources there are, as far as the scheduler and the policy must tell them apart.

#include <array>
#include <cstdint>

#include "core/request.hpp"

namespace tandem {

/// `text`  takes in tokens on the host and costs no forwards.
/// `model` computes on a device and keeps KV of its own, which must catch up with the target's.
/// `head`  computes on the target's device from the target's hidden states; the target's own steps keep it up to date,
///         so it never has to catch up. It may write pages of the sequence's blocks while it drafts.
enum class source_kind : std::uint8_t { text, model, head };

inline constexpr std::array kDraftSources{draft_method::ngram,  draft_method::suffix, draft_method::draft_model,
                                          draft_method::medusa, draft_method::eagle,  draft_method::custom};
static_assert(kDraftSources.size() + 1 == kDraftMethods);

constexpr source_kind kind_of(draft_method method) {
  switch (method) {
    case draft_method::draft_model:
      return source_kind::model;
    case draft_method::medusa:
    case draft_method::eagle:
      return source_kind::head;
    case draft_method::none:
    case draft_method::ngram:
    case draft_method::suffix:
    case draft_method::custom:
      break;
  }
  return source_kind::text;
}

/// Its drafts cost forwards on a device.
constexpr bool computes(draft_method method) {
  return kind_of(method) != source_kind::text;
}

}  // namespace tandem
