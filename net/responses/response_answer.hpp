#pragma once
/// What a generation answers with when it works on a response.

#include <memory>

#include "net/openai_answers.hpp"
#include "net/responses/response_draft.hpp"

namespace tandem::net {

/// Streamed: lines of events. Whole: the response object.
std::unique_ptr<api_answer> make_response_answer(const answer_format& format, answer_context context,
                                                 std::shared_ptr<response_draft> draft);

}  // namespace tandem::net
