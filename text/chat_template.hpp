#pragma once
/// Chat templates: the subset of Jinja that the templates inside model files use, bounded in time and memory.

#include <memory>
#include <string>
#include <string_view>

#include "core/request.hpp"
#include "core/result.hpp"

namespace tandem::text {

/// Immutable after parse(); render() may be called from many threads at once.
class chat_template {
 public:
  /// Errors: corrupt or unsupported, with the line of the template; too_large.
  static result<chat_template> parse(std::string_view source);

  /// Names the template may use besides messages, tools and add_generation_prompt.
  struct names {
    std::string bos_token;
    std::string eos_token;
  };
  /// What the template itself wrote is trusted; what came from messages, tools or kwargs is not, through every filter
  /// and operator. Errors: invalid_argument (the template's own raise_exception, with its message; malformed messages),
  /// too_large (steps, output).
  result<prompt_text> render(const chat_prompt& chat, const names& names) const;
  /// What parse() was given.
  std::string_view source() const;

  chat_template(chat_template&&) noexcept;
  chat_template& operator=(chat_template&&) noexcept;
  ~chat_template();

 private:
  struct impl;
  explicit chat_template(std::unique_ptr<const impl> state);
  std::unique_ptr<const impl> impl_;
};

}  // namespace tandem::text
