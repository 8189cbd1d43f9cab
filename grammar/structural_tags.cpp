#include "grammar/structural_tags.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace tandem {

using nlohmann::json;

result<std::string> choice_tag(const std::vector<std::string>& choices) {
  json elements = json::array();
  for (const std::string& choice : choices) elements.push_back({{"type", "const_string"}, {"value", choice}});
  json format = elements.size() == 1 ? elements.front() : json{{"type", "or"}, {"elements", std::move(elements)}};
  try {
    return json{{"type", "structural_tag"}, {"format", std::move(format)}}.dump();
  } catch (const json::exception&) {
    return fail(error_code::invalid_argument, "a choice is not well-formed UTF-8");
  }
}

}  // namespace tandem
