#pragma once
/// Template source → tokens, with Hugging Face's settings (trim_blocks, lstrip_blocks).

#include <string>
#include <string_view>
#include <vector>

namespace tandem::text::jinja {

enum class token_type {
  data,
  print_begin,
  print_end,
  block_begin,
  block_end,
  name,
  integer,
  real,
  string,
  symbol,
  end
};

struct token {
  token_type type = token_type::end;
  std::string text;  ///< of data, names and strings (unescaped) and symbols; digits of numbers
  int line = 1;
};

/// Throws template_failure.
std::vector<token> tokenize(std::string_view source);

}  // namespace tandem::text::jinja
