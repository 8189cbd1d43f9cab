#pragma once
/// Chat fields → what the template renders.

#include <string>

#include "core/request.hpp"
#include "net/field_reader.hpp"

namespace tandem::net {

/// messages, chat_template_kwargs and the flags of the prompt; mistakes stay in `fields`. Not the tools.
/// Text parts are joined in order, parts of other kinds refused, JSON texts in tool calls' arguments opened.
chat_prompt read_chat(field_reader& fields);

}  // namespace tandem::net
