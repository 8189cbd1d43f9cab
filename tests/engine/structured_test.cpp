// Structured output through the C++ library: the answer fits, whatever drafts, and drafts change no token of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "tandem/engine.hpp"
#include "tests/support/made_heads.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem {
namespace {

using nlohmann::json;
using ids = std::vector<std::int32_t>;
constexpr std::int32_t kEnd = 257;  // <|im_end|> of BYTES

/// What a request asks for, and whether a text is that.
struct wanted_structure {
  const char* name;
  StructuredOutput structured;
  std::function<bool(const std::string&)> fits;
};

bool is_record(const std::string& text) {
  const json value = json::parse(text, nullptr, false);
  if (!value.is_object() || value.size() < 2 || value.size() > 3 || !value.contains("kind") || !value.contains("list"))
    return false;
  return (value["kind"] == "cat" || value["kind"] == "dög") && value["list"].is_array() && value["list"].size() <= 3 &&
         std::all_of(value["list"].begin(), value["list"].end(), [](const json& n) { return n.is_number_integer(); });
}

/// Five groups of two lower letters and a digit.
bool is_groups(const std::string& text) {
  if (text.size() != 15) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (i % 3 == 2 ? text[i] < '0' || text[i] > '9' : text[i] < 'a' || text[i] > 'z') return false;
  return true;
}

std::vector<wanted_structure> structures() {
  std::vector<wanted_structure> all(4);
  all[0].name = "schema";
  all[0].structured.json_schema = R"({"type": "object", "properties": {"kind": {"enum": ["cat", "dög"]},
      "list": {"type": "array", "items": {"type": "integer", "minimum": -99, "maximum": 999}, "maxItems": 3},
      "note": {"type": "string", "maxLength": 6}}, "required": ["kind", "list"]})";
  all[0].fits = is_record;
  all[1].name = "regex";
  all[1].structured.regex = "([a-z]{2}[0-9]){5}";
  all[1].fits = is_groups;
  all[2].name = "choice";
  all[2].structured.choice = {"no", "no way", "perhaps", "yes \"indeed\"\n"};
  all[2].fits = [choices = all[2].structured.choice](const std::string& text) {
    return std::find(choices.begin(), choices.end(), text) != choices.end();
  };
  all[3].name = "grammar";
  all[3].structured.grammar = "root ::= pair{2,3}\npair ::= \"<\" [x-z] pair? \">\"";
  all[3].fits = [](const std::string& text) {
    int depth = 0;
    for (const char c : text) depth += c == '<' ? 1 : c == '>' ? -1 : 0;
    return depth == 0 && text.size() >= 6 && text.front() == '<' && text.back() == '>';
  };
  return all;
}

/// Proposes a known answer, wrong at every fourth place.
class known_answer final : public DraftSource {
 public:
  explicit known_answer(ids answer) : answer_(std::move(answer)) {}
  ids propose(const DraftQuestion& question) override {
    ids drafts;
    for (auto at = question.tokens.size() - static_cast<std::size_t>(question.prompt_length);
         at < answer_.size() && static_cast<std::int32_t>(drafts.size()) < question.k; ++at)
      drafts.push_back(at % 4 == 3 ? (answer_[at] + 1) % 256 : answer_[at]);
    return drafts;
  }

 private:
  ids answer_;
};

class structured_output : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::temporary_folder;
    const test::made_model rand = test::make_rand();
    test::rand_options noisy;
    noisy.noise = 0.1F;
    test::write_gguf(rand, *folder_ / "rand.gguf");
    test::write_gguf(test::make_rand(noisy), *folder_ / "noisy.gguf");
    test::write_heads(test::make_medusa(rand), *folder_ / "medusa");
    test::write_heads(test::make_eagle(rand), *folder_ / "eagle");
  }
  static void TearDownTestSuite() { delete folder_; }

  static Options options(const std::string& speculative_config = {}) {
    Options all;
    all.model = (*folder_ / "rand.gguf").string();
    all.speculative_config = speculative_config;
    all.dtype = "fp32";
    all.kv_cache_dtype = "fp32";
    all.threads = 1;
    return all;
  }
  static Options drafting(const std::string& method, const std::string& rule = "coupled") {
    Options all =
        options(R"({"method": ")" + method + R"(", "num_speculative_tokens": 4, "sampling": ")" + rule + "\"}");
    if (method == "draft_model") all.draft_model = (*folder_ / "noisy.gguf").string();
    if (method == "medusa" || method == "eagle") all.draft_heads = (*folder_ / method).string();
    return all;
  }

  static Request question(const StructuredOutput& structured, float temperature, std::uint64_t seed) {
    Request request;
    request.prompt = "one two one two abcabc, what then?";
    request.sampling.structured = structured;
    request.sampling.temperature = temperature;
    request.sampling.seed = seed;
    request.sampling.max_tokens = 400;
    return request;
  }
  static void expect_fits(const wanted_structure& wanted, const Choice& choice) {
    EXPECT_EQ(choice.finish_reason, "stop") << wanted.name << ": " << choice.text;
    EXPECT_TRUE(wanted.fits(choice.text)) << wanted.name << ": " << choice.text;
    ASSERT_FALSE(choice.token_ids.empty());
    EXPECT_TRUE(choice.token_ids.back() == kEnd || choice.token_ids.back() == kEnd + 1);
    EXPECT_EQ(choice.usage.completion_tokens, static_cast<std::int32_t>(choice.token_ids.size()));
  }

  static test::temporary_folder* folder_;
};
test::temporary_folder* structured_output::folder_ = nullptr;

TEST_F(structured_output, the_answer_fits_and_ends_with_an_end_token_that_is_not_in_its_text) {
  Engine engine(options());
  for (const wanted_structure& wanted : structures()) {
    for (const float temperature : {0.0F, 1.0F, 5.0F}) {
      Request request = question(wanted.structured, temperature, 3);
      request.sampling.n = 5;
      for (const Choice& choice : engine.generate(request).choices) expect_fits(wanted, choice);
    }
  }
}

TEST_F(structured_output, drafts_of_every_method_change_no_token) {
  Engine plain(options());
  for (const char* method : {"ngram", "suffix", "draft_model", "medusa", "eagle"}) {
    Engine engine(drafting(method));
    for (const wanted_structure& wanted : structures()) {
      for (int variant = 0; variant < 4; ++variant) {
        Request request = question(wanted.structured, variant % 2 == 0 ? 0.0F : 1.1F, 11);
        request.sampling.n = variant % 2 == 0 ? 1 : 3;
        if (variant >= 2) request.sampling.repetition_penalty = 1.3F;
        if (variant >= 2) request.sampling.top_p = 0.9F;
        const Output expected = plain.generate(request);
        for (int turn = 0; turn < 2; ++turn) {  // the second time the suffix source knows it
          const Output got = engine.generate(request);
          for (std::size_t i = 0; i < got.choices.size(); ++i) {
            EXPECT_EQ(got.choices[i].token_ids, expected.choices[i].token_ids) << method << ", " << wanted.name;
            expect_fits(wanted, got.choices[i]);
          }
        }
      }
    }
  }
}

TEST_F(structured_output, rejected_drafts_leave_no_trace_in_the_grammar) {
  Engine plain(options());
  for (const wanted_structure& wanted : structures()) {
    const Choice expected = plain.generate(question(wanted.structured, 0.9F, 4)).choices[0];
    for (const char* rule : {"coupled", "rejection"}) {
      Options with_source = options(std::string(R"({"num_speculative_tokens": 6, "sampling": ")") + rule + "\"}");
      with_source.draft_source = std::make_shared<known_answer>(expected.token_ids);
      Engine engine(with_source);
      const Choice got = engine.generate(question(wanted.structured, 0.9F, 4)).choices[0];
      expect_fits(wanted, got);
      if (std::string(rule) == "rejection") continue;
      EXPECT_EQ(got.token_ids, expected.token_ids) << wanted.name;
      if (expected.token_ids.size() < 8) continue;
      EXPECT_GT(got.usage.accepted_tokens, 0) << wanted.name;
      EXPECT_LT(got.usage.accepted_tokens, got.usage.draft_tokens) << wanted.name;
    }
  }
}

TEST_F(structured_output, under_the_rejection_rule_every_answer_fits) {
  Engine engine(drafting("draft_model", "rejection"));
  for (const wanted_structure& wanted : structures()) {
    Request request = question(wanted.structured, 1.0F, 21);
    request.sampling.n = 20;
    std::int32_t drafted = 0;
    for (const Choice& choice : engine.generate(request).choices) {
      expect_fits(wanted, choice);
      drafted += choice.usage.draft_tokens;
    }
    EXPECT_GT(drafted, 0) << wanted.name;
  }
}

TEST_F(structured_output, company_preemption_and_prefix_hits_change_no_token) {
  Options small = drafting("draft_model");
  small.num_kv_blocks = 24;  // of 16 tokens: three of the sequences below fit at once
  small.max_model_len = 256;
  Engine plain(options());
  Engine crowded(small);
  const std::vector<wanted_structure> all = structures();
  std::vector<std::pair<Request, std::future<Output>>> pending;
  for (std::uint64_t i = 0; i < 16; ++i) {
    Request request = question(i % 4 == 3 ? StructuredOutput{} : all[i % all.size()].structured, 1.0F, i);
    request.prompt += std::string(i % 5 * 7, 'x');
    request.sampling.max_tokens = 100;
    std::future<Output> answer = crowded.submit(request);
    pending.emplace_back(std::move(request), std::move(answer));
  }
  std::int32_t cached = 0;
  for (auto& [request, answer] : pending) {
    const Choice got = answer.get().choices[0];
    EXPECT_EQ(got.token_ids, plain.generate(request).choices[0].token_ids);
    cached += got.usage.cached_tokens;
  }
  EXPECT_GT(cached, 0);
  const std::string metrics = crowded.metrics();
  const std::size_t at = metrics.find("\ntandem:num_preemptions_total");
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(std::stod(metrics.substr(metrics.find(' ', at))), 0.0);
}

TEST_F(structured_output, log_probabilities_are_the_models_own) {
  Engine engine(options());
  Request request = question(structures()[1].structured, 0.0F, 1);
  request.sampling.logprobs = 5;
  const Choice constrained = engine.generate(request).choices[0];
  request.sampling.structured = {};
  request.sampling.max_tokens = 1;
  const Choice free = engine.generate(request).choices[0];
  ASSERT_EQ(constrained.logprobs.size(), constrained.token_ids.size());
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(constrained.logprobs[0].top[i], free.logprobs[0].top[i]);
}

TEST_F(structured_output, what_cannot_be_is_refused_and_the_engine_goes_on) {
  Engine engine(options());
  const auto refused = [&](const std::function<void(SamplingParams&)>& change, const char* part) {
    Request request = question(structures()[2].structured, 0.0F, 1);
    change(request.sampling);
    try {
      engine.generate(request);
      ADD_FAILURE() << part;
    } catch (const Error& problem) {
      EXPECT_EQ(problem.code(), "invalid_argument");
      EXPECT_NE(std::string(problem.what()).find(part), std::string::npos) << problem.what();
    }
  };
  refused([](SamplingParams& s) { s.structured.regex = "a"; }, "not several");
  refused([](SamplingParams& s) { s.structured = {.regex = "(a"}; }, "structured.regex");
  refused([](SamplingParams& s) { s.structured = {.json_schema = "{"}; }, "structured.json_schema");
  refused([](SamplingParams& s) { s.structured = {.json_schema = R"({"not": {}})"}; }, "'not'");
  refused([](SamplingParams& s) { s.ignore_eos = true; }, "ignore_eos");
  refused([](SamplingParams& s) { s.min_tokens = 2; }, "min_tokens");
  expect_fits(structures()[2], engine.generate(question(structures()[2].structured, 0.0F, 1)).choices[0]);
}

TEST_F(structured_output, the_cap_and_stop_strings_end_an_answer_that_is_not_whole) {
  Engine engine(options());
  Request request = question(structures()[1].structured, 0.0F, 1);
  const std::string whole = engine.generate(request).choices[0].text;
  request.sampling.max_tokens = 4;
  const Choice capped = engine.generate(request).choices[0];
  EXPECT_EQ(capped.finish_reason, "length");
  EXPECT_EQ(capped.text, whole.substr(0, 4));
  request.sampling.max_tokens = 100;
  request.sampling.stop = {whole.substr(5, 3)};
  const Choice stopped = engine.generate(request).choices[0];
  EXPECT_EQ(stopped.finish_reason, "stop");
  EXPECT_EQ(stopped.text, whole.substr(0, whole.find(request.sampling.stop[0])));
}

}  // namespace
}  // namespace tandem
