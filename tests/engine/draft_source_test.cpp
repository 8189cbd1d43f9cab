// A program's own draft source, and the one that learns from outputs, through the C++ library.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tandem/engine.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem {
namespace {

using ids = std::vector<std::int32_t>;
constexpr std::int32_t kLength = 40;

/// A source whose answer is a function of the question.
class function_source final : public DraftSource {
 public:
  using function = std::function<ids(const DraftQuestion&)>;
  explicit function_source(function answer) : answer_(std::move(answer)) {}
  ids propose(const DraftQuestion& question) override {
    ++calls;
    return answer_(question);
  }
  std::atomic<int> calls = 0;

 private:
  function answer_;
};

/// What CYCLE says next, k times.
ids counting_on(const DraftQuestion& question) {
  ids drafts;
  for (std::int32_t i = 1; i <= question.k; ++i) drafts.push_back((question.tokens.back() + i) % 256);
  return drafts;
}

/// Value of a counter in the metrics' text; 0 where it was never counted.
double counted(const std::string& metrics, const std::string& name, const std::string& label) {
  std::istringstream lines(metrics);
  double sum = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + "{") || line.find(label) == std::string::npos) continue;
    sum += std::stod(line.substr(line.rfind(' ')));
  }
  return sum;
}

class draft_sources : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::temporary_folder;
    test::write_gguf(test::make_cycle(), *folder_ / "cycle.gguf");
    test::write_gguf(test::make_rand(), *folder_ / "rand.gguf");
  }
  static void TearDownTestSuite() { delete folder_; }

  static Options options_of(const char* model, std::shared_ptr<DraftSource> source = nullptr) {
    Options options;
    options.model = (*folder_ / model).string();
    options.dtype = "fp32";
    options.kv_cache_dtype = "fp32";
    options.threads = 1;
    options.draft_source = std::move(source);
    return options;
  }
  static std::shared_ptr<function_source> source_of(function_source::function answer) {
    return std::make_shared<function_source>(std::move(answer));
  }
  static Request question(ids prompt = {97, 98, 99}) {
    Request request;
    request.prompt_token_ids = std::move(prompt);
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = kLength;
    return request;
  }
  static Choice ask(Engine& engine, Request request, const std::string& method = "", std::int32_t k = -1) {
    request.sampling.speculative_method = method;
    request.sampling.num_speculative_tokens = k;
    return engine.generate(std::move(request)).choices[0];
  }
  static test::temporary_folder* folder_;
};
test::temporary_folder* draft_sources::folder_ = nullptr;

TEST_F(draft_sources, a_source_that_knows_the_answer_saves_steps_and_is_counted) {
  const auto source = source_of(counting_on);
  Engine engine(options_of("cycle.gguf", source));
  const Choice plain = ask(engine, question(), "none");
  EXPECT_EQ(source->calls, 0);
  for (const std::int32_t k : {1, 3, 7}) {
    const Choice drafted = ask(engine, question(), "", k);
    EXPECT_EQ(drafted.token_ids, plain.token_ids);
    EXPECT_EQ(drafted.usage.accepted_tokens, drafted.usage.draft_tokens);
    EXPECT_EQ(drafted.usage.steps, 1 + (kLength - 1 + k) / (k + 1));
  }
  EXPECT_EQ(ask(engine, question(), "custom", 3).usage.steps, 11);
  const std::string metrics = engine.metrics();
  EXPECT_GT(counted(metrics, "tandem:spec_decode_num_accepted_tokens_total", "method=\"custom\""), 100);
  EXPECT_EQ(counted(metrics, "tandem:draft_source_faults_total", ""), 0);
}

TEST_F(draft_sources, a_source_of_text_drafts_in_every_step_also_after_accepted_drafts) {
  Options options = options_of("cycle.gguf");
  options.speculative_config = R"({"suffix": true})";
  Engine engine(options);
  // CYCLE goes round in 256 steps; its prompt is one round and a half.
  Request request = question();
  request.prompt_token_ids.clear();
  for (int i = 0; i < 400; ++i) request.prompt_token_ids.push_back(i % 256);
  ask(engine, request, "none");  // teaches suffix
  for (const char* method : {"ngram", "suffix"}) {
    for (const std::int32_t k : {1, 3, 7}) {
      const Choice drafted = ask(engine, request, method, k);
      EXPECT_EQ(drafted.usage.accepted_tokens, drafted.usage.draft_tokens);
      EXPECT_EQ(drafted.usage.steps, 1 + (kLength - 1 + k) / (k + 1)) << method << ", k = " << k;
    }
  }
}

TEST_F(draft_sources, questions_say_where_each_sequence_stands) {
  std::mutex mutex;
  std::map<std::uint64_t, ids> known;
  const auto source = source_of([&](const DraftQuestion& at) {
    const std::lock_guard lock(mutex);
    ids& before = known[at.sequence];
    EXPECT_GT(at.k, 0);
    EXPECT_LE(at.k, 5);
    EXPECT_EQ(at.prompt_length, 3);
    EXPECT_GT(at.tokens.size(), before.size());
    EXPECT_TRUE(std::equal(before.begin(), before.end(), at.tokens.begin()));
    before.assign(at.tokens.begin(), at.tokens.end());
    return ids{};
  });
  Engine engine(options_of("rand.gguf", source));
  Request request = question();
  request.sampling.n = 4;
  request.sampling.temperature = 1;
  const Output output = engine.generate(request);
  std::multiset<ids> seen;
  for (const auto& [sequence, tokens] : known) seen.insert(tokens);
  EXPECT_EQ(known.size(), 4u);
  for (const Choice& choice : output.choices) {
    ids asked = {97, 98, 99};  // the last question comes before the last two tokens: a single one is not drafted for
    asked.insert(asked.end(), choice.token_ids.begin(), choice.token_ids.end() - 2);
    EXPECT_TRUE(seen.contains(asked));
  }
}

TEST_F(draft_sources, whatever_a_source_says_changes_no_token) {
  std::mt19937 random(1);
  const auto source = source_of([&random](const DraftQuestion& at) {
    ids drafts(random() % 12);  // also more than were wanted
    for (auto& draft : drafts) draft = static_cast<std::int32_t>(random() % 300) - 20;
    if (random() % 7 == 0) throw std::runtime_error("not today");
    if (random() % 11 == 0) throw 5;
    if (!drafts.empty()) drafts[0] = at.tokens.back();
    return drafts;
  });
  Engine engine(options_of("rand.gguf", source));
  for (const float temperature : {0.0F, 0.9F}) {
    for (std::int32_t seed = 0; seed < 8; ++seed) {
      Request request = question({seed, 2, 3, 4 * seed});
      request.sampling.temperature = temperature;
      request.sampling.seed = static_cast<std::uint64_t>(seed);
      const Choice plain = ask(engine, request, "none");
      for (const std::int32_t k : {1, 4, 8}) EXPECT_EQ(ask(engine, request, "custom", k).token_ids, plain.token_ids);
    }
  }
  const std::string metrics = engine.metrics();
  EXPECT_GT(counted(metrics, "tandem:draft_source_faults_total", "fault=\"exception\""), 10);
  EXPECT_GT(counted(metrics, "tandem:draft_source_faults_total", "fault=\"unknown_token\""), 10);
}

TEST_F(draft_sources, a_late_answer_is_none_and_the_source_is_not_asked_meanwhile) {
  std::promise<void> release;
  std::atomic<bool> first = true;
  std::atomic<bool> returned = false;
  const auto source = source_of([&](const DraftQuestion& at) {
    if (first.exchange(false)) {
      release.get_future().wait();
      returned = true;
    }
    return counting_on(at);
  });
  Engine engine(options_of("cycle.gguf", source));
  const Choice late = ask(engine, question());  // would never come if it waited for the source
  EXPECT_EQ(late.token_ids.size(), static_cast<std::size_t>(kLength));
  EXPECT_EQ(late.usage.draft_tokens, 0);
  EXPECT_EQ(source->calls, 1);
  release.set_value();
  while (!returned) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  Choice after = ask(engine, question());
  for (int i = 0; i < 20 && after.usage.draft_tokens == 0; ++i) after = ask(engine, question());
  EXPECT_EQ(after.usage.accepted_tokens, after.usage.draft_tokens);
  EXPECT_GT(after.usage.draft_tokens, 0);
  EXPECT_EQ(counted(engine.metrics(), "tandem:draft_source_faults_total", "fault=\"late\""), 1);
}

TEST_F(draft_sources, an_engine_that_goes_waits_for_the_call_under_way) {
  std::atomic<bool> asked = false;
  std::atomic<bool> returned = false;
  const auto source = source_of([&](const DraftQuestion&) {
    asked = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    returned = true;
    return ids{};
  });
  {
    Engine engine(options_of("cycle.gguf", source));
    const auto pending = engine.submit(question());
    while (!asked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(returned);
}

TEST_F(draft_sources, a_method_without_its_source_is_refused_by_name) {
  Options options = options_of("cycle.gguf");
  options.speculative_config = R"({"method": "custom"})";
  try {
    const Engine engine(options);
    FAIL() << "was accepted";
  } catch (const Error& problem) {
    EXPECT_NE(std::string(problem.what()).find("draft_source"), std::string::npos) << problem.what();
  }
  options.speculative_config = R"({"method": "none"})";
  Engine plain(options);
  for (const char* method : {"custom", "suffix"}) {
    try {
      ask(plain, question(), method);
      FAIL() << method;
    } catch (const Error& problem) {
      EXPECT_NE(std::string(problem.what()).find(method), std::string::npos) << problem.what();
    }
  }
}

TEST_F(draft_sources, suffix_drafts_what_the_engine_said_before) {
  Options options = options_of("rand.gguf");
  options.speculative_config = R"({"method": "suffix"})";
  Engine engine(options);
  const Choice first = ask(engine, question());
  const Choice second = ask(engine, question());
  EXPECT_EQ(second.token_ids, first.token_ids);
  EXPECT_GT(second.usage.accepted_tokens, kLength / 2);
  EXPECT_LT(second.usage.steps, first.usage.steps);
  // What others drafted or none did is learned too.
  const Choice undrafted = ask(engine, question({5, 6, 7, 8, 9, 10}), "none");
  const Choice ngrams = ask(engine, question({50, 60, 70, 80, 90, 100}), "ngram", 3);
  EXPECT_GT(ask(engine, question({5, 6, 7, 8, 9, 10})).usage.accepted_tokens, kLength / 2);
  EXPECT_GT(ask(engine, question({50, 60, 70, 80, 90, 100})).usage.accepted_tokens, kLength / 2);
  EXPECT_GT(counted(engine.metrics(), "tandem:spec_decode_num_accepted_tokens_total", "method=\"suffix\""), kLength);
}

TEST_F(draft_sources, each_of_a_crowd_with_different_methods_and_numbers_is_what_it_would_be_alone) {
  Options options =
      options_of("rand.gguf", source_of([](const DraftQuestion& at) { return ids(2, at.tokens.back()); }));
  options.speculative_config = R"({"suffix": true})";
  options.draft_model = (*folder_ / "rand.gguf").string();
  options.num_kv_blocks = 40;
  options.max_model_len = 128;
  options.max_num_batched_tokens = 48;
  Engine engine(options);
  std::vector<Request> requests;
  std::vector<ids> expected;
  const char* methods[] = {"none", "ngram", "suffix", "draft_model", "custom"};
  for (int i = 0; i < 40; ++i) {
    Request request = question(ids(static_cast<std::size_t>(1 + i % 30), 3 * (i % 8)));
    request.sampling.temperature = i % 2 == 0 ? 0.0F : 0.8F;
    request.sampling.seed = static_cast<std::uint64_t>(i);
    expected.push_back(ask(engine, request, "none").token_ids);
    request.sampling.speculative_method = methods[i % 5];
    request.sampling.num_speculative_tokens = i % 5 == 0 ? -1 : i % 9;
    requests.push_back(request);
  }
  std::vector<std::future<Output>> pending;
  for (const Request& request : requests) pending.push_back(engine.submit(request));
  std::int32_t drafted = 0;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const Choice choice = pending[i].get().choices[0];
    EXPECT_EQ(choice.token_ids, expected[i]) << methods[i % 5];
    drafted += choice.usage.draft_tokens;
  }
  EXPECT_GT(drafted, 200);
}

}  // namespace
}  // namespace tandem
