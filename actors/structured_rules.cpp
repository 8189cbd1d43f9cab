#include "actors/structured_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "config/structured_limits.hpp"

namespace tandem {
namespace {

tl::unexpected<error> refuse(std::string message, std::string param) {
  return fail(error_code::invalid_argument, std::move(message), std::move(param));
}

result<void> check_size(const structured_spec& spec) {
  if (spec.choices.size() > limits::kMaxStructuredChoices)
    return refuse(fmt::format("'{}' may hold at most {} strings, but it holds {}.", spec.field,
                              limits::kMaxStructuredChoices, spec.choices.size()),
                  spec.field);
  std::size_t bytes = spec.text.size();
  for (const std::string& choice : spec.choices) bytes += choice.size();
  if (bytes > limits::kMaxStructuredBytes)
    return refuse(
        fmt::format("'{}' may have at most {} bytes, but it has {}.", spec.field, limits::kMaxStructuredBytes, bytes),
        spec.field);
  const bool empty = spec.kind == structured_spec::form::choice ? spec.choices.empty() : spec.text.empty();
  if (empty && spec.kind != structured_spec::form::json_object)
    return refuse(fmt::format("'{}' must not be empty.", spec.field), spec.field);
  return {};
}

}  // namespace

result<void> check_structured(const generation_request& request, const request_bounds& bounds) {
  if (!request.structured) return {};
  const structured_spec& spec = *request.structured;
  if (!bounds.structured_output)
    return fail(error_code::unsupported,
                fmt::format("'{}' asks for structured output, which this tandem was built without "
                            "(-DTANDEM_GRAMMAR=OFF); leave it out.",
                            spec.field),
                spec.field);
  if (bounds.end_tokens.empty())
    return fail(
        error_code::unsupported,
        fmt::format("'{}' asks for structured output, but this model has no token that ends an answer.", spec.field),
        spec.field);
  if (auto fits = check_size(spec); !fits) return fits;
  if (request.stopping.ignore_eos)
    return refuse(
        fmt::format("ignore_eos contradicts '{}', whose output ends with the model's end token; leave out one "
                    "of them.",
                    spec.field),
        "ignore_eos");
  if (request.sampling.min_tokens > 0)
    return refuse(fmt::format("min_tokens contradicts '{}', whose output ends where it is complete; leave out one of "
                              "them.",
                              spec.field),
                  "min_tokens");
  return {};
}

}  // namespace tandem
