#pragma once
/// Which of a request's choices are shown when more were made than asked for. Pure.

#include <cstddef>
#include <span>
#include <vector>

#include "core/messages.hpp"

namespace tandem {

/// Adds what a sequence said next to what it said before; both are of the same sequence.
void append_entry(tokens_committed::entry& all, tokens_committed::entry next);

/// The places of the `count` choices with the highest mean log-probability per token in `choices`, best first; ties by
/// place. Choices without tokens come behind all others, failed ones last.
std::vector<std::size_t> best_choices(std::span<const tokens_committed::entry> choices, std::size_t count);

/// Adds tokens, steps and drafts of the choices that are not `shown` to the first that is; at least one is.
void add_unshown(std::span<tokens_committed::entry> choices, std::span<const std::size_t> shown);

}  // namespace tandem
