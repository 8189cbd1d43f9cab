#pragma once
/// What draft methods are called wherever people read or write them.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/request.hpp"

namespace tandem {

inline constexpr std::array<std::string_view, kDraftMethods> kDraftMethodNames{
    "none", "ngram", "suffix", "draft_model", "medusa", "eagle", "custom"};

inline std::string_view name_of(draft_method method) {
  return kDraftMethodNames[static_cast<std::size_t>(method)];
}

inline std::optional<draft_method> draft_method_named(std::string_view name) {
  for (std::size_t i = 0; i < kDraftMethodNames.size(); ++i) {
    if (kDraftMethodNames[i] == name) return static_cast<draft_method>(i);
  }
  return std::nullopt;
}

/// "auto, none, ngram": what a request may ask a server for that has these sources.
inline std::string list_methods(const std::array<bool, kDraftMethods>& sources) {
  std::string list = "auto, none";
  for (std::size_t i = 1; i < sources.size(); ++i) {
    if (sources[i]) list.append(", ").append(kDraftMethodNames[i]);
  }
  return list;
}

}  // namespace tandem
