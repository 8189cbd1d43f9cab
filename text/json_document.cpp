#include "text/json_document.hpp"

#include <algorithm>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem::text {

result<simdjson::dom::element> json_document::parse(std::string_view text, std::string_view file) {
  if (text.size() > limits::kMaxTokenizerJsonBytes) {
    return fail(error_code::too_large, std::string(file) + " is larger than such a file may be.", std::string(file));
  }
  simdjson::dom::element root;
  auto failed = parser_.allocate(std::max<std::size_t>(text.size(), 64), limits::kMaxTokenizerJsonDepth);
  if (!failed) failed = parser_.parse(text.data(), text.size()).get(root);
  if (failed) {
    return fail(error_code::corrupt,
                std::string(file) + " is not valid JSON: " + simdjson::error_message(failed) + " Fetch it again.",
                std::string(file));
  }
  return root;
}

json_field json_field::operator[](std::string_view key) const {
  simdjson::dom::element found;
  if (!is_object() || element_.at_key(key).get(found)) return {};
  return found;
}

std::string_view json_field::text_or(std::string_view fallback) const {
  std::string_view text;
  return present_ && !element_.get(text) ? text : fallback;
}

bool json_field::flag_or(bool fallback) const {
  bool flag = false;
  return present_ && !element_.get(flag) ? flag : fallback;
}

std::int64_t json_field::integer_or(std::int64_t fallback) const {
  std::int64_t number = 0;
  return present_ && !element_.get(number) ? number : fallback;
}

simdjson::dom::array json_field::items() const {
  TANDEM_ASSERT(is_array());
  return element_.get_array().value_unsafe();
}

simdjson::dom::object json_field::members() const {
  TANDEM_ASSERT(is_object());
  return element_.get_object().value_unsafe();
}

}  // namespace tandem::text
