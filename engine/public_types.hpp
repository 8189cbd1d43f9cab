#pragma once
/// Between the words of include/tandem/engine.hpp and the engine's own.

#include "actors/outlet.hpp"
#include "config/options.hpp"
#include "core/request.hpp"
#include "core/result.hpp"
#include "engine/collected_answer.hpp"
#include "tandem/engine.hpp"

namespace tandem::engine {

result<config::engine_options> to_engine_options(const Options& options);
result<generation_request> to_generation_request(Request request);
Event to_event(generation_event event);
/// Of an answer that is complete and was not refused.
Output to_output(const collected_answer& answer);
std::string code_name(error_code code);

}  // namespace tandem::engine
