#include <fmt/format.h>

#include "app/command.hpp"
#include "config/edit_distance.hpp"
#include "engine/model_store.hpp"

namespace tandem::app {
namespace {

int list_models() {
  for (const engine::known_model& entry : engine::known_models())
    fmt::print("{:<20} {:>7.0f} MB  {:<10}  {:<12}  {}\n", entry.name, static_cast<double>(entry.bytes) / 1e6,
               engine::is_fetched(entry) ? "fetched" : "not fetched", entry.licence, entry.summary);
  fmt::print("folder: {}\n", engine::models_folder().string());
  return kExitOk;
}

int refuse_unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const engine::known_model& entry : engine::known_models()) names.emplace_back(entry.name);
  const std::string near = config::nearest_name(name, names);
  return report_usage(fmt::format("There is no known model \"{}\"; {}", name,
                                  near.empty() ? "see tandem models list." : "did you mean \"" + near + "\"?"));
}

int act(const engine::known_model& entry, const std::string& action) {
  if (action == "fetch" && engine::is_fetched(entry)) {
    fmt::print("{} is there: {}\n", entry.name, engine::path_of(entry).string());
    return kExitOk;
  }
  const auto done = action == "fetch"    ? engine::fetch_model(entry)
                    : action == "verify" ? engine::verify_model(entry)
                                         : engine::remove_model(entry);
  if (!done) return report(done.error());
  fmt::print("{}: {} {}\n", action, entry.name, action == "verify" ? "is right" : "is done");
  return kExitOk;
}

}  // namespace

void add_models(CLI::App& root, command_table& commands) {
  CLI::App* command = declare(root, "models", "The models that have a name: list, fetch, verify, remove");
  const auto action = std::make_shared<std::string>("list");
  const auto name = std::make_shared<std::string>();
  command->add_option("action", *action, "list, fetch, verify or remove; default list");
  command->add_option("name", *name, "A name of the list");
  commands.emplace_back(command, [action, name] {
    if (*action == "list") return list_models();
    const bool known_action = *action == "fetch" || *action == "verify" || *action == "remove";
    if (!known_action) return report_usage(fmt::format("\"{}\" is not one of list|fetch|verify|remove.", *action));
    if (name->empty()) return report_usage(fmt::format("which model? tandem models {} NAME.", *action));
    const engine::known_model* entry = engine::find_known_model(*name);
    return entry == nullptr ? refuse_unknown(*name) : act(*entry, *action);
  });
}

}  // namespace tandem::app
