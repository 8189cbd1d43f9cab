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

result<std::vector<std::string>> schemas_of_tag(const std::string& tag) {
  const json root = json::parse(tag, nullptr, false);
  if (root.is_discarded()) return fail(error_code::invalid_argument, "the structural tag is not JSON");
  std::vector<std::string> schemas;
  std::vector<const json*> open{&root};
  while (!open.empty()) {
    const json& part = *open.back();
    open.pop_back();
    if (part.is_object() && part.contains("json_schema")) {
      schemas.push_back(part["json_schema"].dump());
    } else if (part.is_structured()) {
      for (const json& member : part) open.push_back(&member);
    }
  }
  return schemas;
}

}  // namespace tandem
