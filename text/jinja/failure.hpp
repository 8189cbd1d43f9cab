#pragma once
/// How a template fails inside the interpreter. Thrown only below chat_template::parse and ::render, caught there.

#include <string>

#include "core/result.hpp"

namespace tandem::text::jinja {

struct template_failure {
  error_code code = error_code::invalid_argument;
  int line = 0;                     ///< of the template; 0 = filled in by the evaluator
  std::string message;              ///< a sentence's middle: "'foo' is undefined"
  bool raised_by_template = false;  ///< raise_exception: the message is the template author's, shown as it is
};

/// A value the template cannot work with.
[[noreturn]] inline void fail_render(std::string message) {
  throw template_failure{error_code::invalid_argument, 0, std::move(message), false};
}
/// A bound of config/limits.hpp is reached.
[[noreturn]] inline void fail_bound(std::string message) {
  throw template_failure{error_code::too_large, 0, std::move(message), false};
}
/// The template's text breaks the language, or uses a part that is not offered.
[[noreturn]] inline void fail_syntax(int line, std::string message) {
  throw template_failure{error_code::corrupt, line, std::move(message), false};
}
[[noreturn]] inline void fail_unsupported(int line, std::string message) {
  throw template_failure{error_code::unsupported, line, std::move(message), false};
}

}  // namespace tandem::text::jinja
