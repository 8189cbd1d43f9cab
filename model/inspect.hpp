#pragma once
/// What `tandem inspect` shows.

#include <string>

#include "model/model.hpp"

namespace tandem::model {

/// Plain text: architecture and sizes, memory, kinds of tensors, tokenizer, metadata. Safe on a terminal.
std::string inspect_report(const model& opened);

}  // namespace tandem::model
