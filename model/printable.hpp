#pragma once
/// Text from files in messages and reports.

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem::model {

/// `text` cut to about `max_bytes`, with control characters and bytes that are not UTF-8 escaped: safe on a terminal.
std::string printable(std::string_view text, std::size_t max_bytes);

}  // namespace tandem::model
