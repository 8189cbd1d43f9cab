/// custom_drafts MODEL QUESTION=ANSWER... : drafts from a database of known answers. Asks every question, with the
/// database and without, and prints both answers and how many steps of the model each took: the answers are the same,
/// and where the database was right the steps are few.

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <tandem/engine.hpp>

namespace {

using ids = std::vector<std::int32_t>;

/// Written before the engine starts asking and never again, so that no lock is needed.
class KnownAnswers final : public tandem::DraftSource {
 public:
  void learn(const ids& question, ids answer) { answers_[question] = std::move(answer); }

  ids propose(const tandem::DraftQuestion& at) override {
    const auto prompt = at.tokens.first(static_cast<std::size_t>(at.prompt_length));
    const auto said = at.tokens.subspan(static_cast<std::size_t>(at.prompt_length));
    const auto found = answers_.find(ids(prompt.begin(), prompt.end()));
    if (found == answers_.end()) return {};
    const ids& known = found->second;
    const bool agrees = said.size() < known.size() && std::equal(said.begin(), said.end(), known.begin());
    if (!agrees) return {};  // the model says something else: it knows better
    const auto next = known.begin() + static_cast<std::ptrdiff_t>(said.size());
    return {next, next + std::min<std::ptrdiff_t>(at.k, known.end() - next)};
  }

 private:
  std::map<ids, ids> answers_;
};

void ask(tandem::Engine& engine, const std::string& question, const std::string& method) {
  tandem::Request request;
  request.prompt = question;
  request.sampling.temperature = 0;
  request.sampling.max_tokens = 12;
  request.sampling.speculative_method = method;
  const tandem::Output output = engine.generate(request);
  const tandem::Choice& choice = output.choices.front();
  std::cout << method << ": " << choice.text << " (" << choice.usage.completion_tokens << " tokens in "
            << choice.usage.steps << " steps)\n";
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 3) {
    std::cerr << "usage: custom_drafts MODEL QUESTION=ANSWER...\n";
    return 2;
  }
  try {
    const auto known = std::make_shared<KnownAnswers>();
    tandem::Options options;
    options.model = arguments[1];
    options.draft_source = known;
    tandem::Engine engine(options);
    const std::vector<std::string> pairs(arguments + 2, arguments + argument_count);
    for (const std::string& pair : pairs)
      known->learn(engine.tokenize(pair.substr(0, pair.find('='))), engine.tokenize(pair.substr(pair.find('=') + 1)));
    for (const std::string& pair : pairs) {
      ask(engine, pair.substr(0, pair.find('=')), "none");
      ask(engine, pair.substr(0, pair.find('=')), "custom");
    }
    return 0;
  } catch (const tandem::Error& problem) {
    std::cerr << "custom_drafts: " << problem.what() << '\n';
    return 1;
  }
}
