#include "actors/compile_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

#include "actors/structured_rules.hpp"
#include "tests/support/toy_grammar.hpp"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using testing::toy_grammar;

structured_spec spec_of(const std::string& text, const std::string& field = "field") {
  structured_spec spec;
  spec.kind = structured_spec::form::regex;
  spec.text = text;
  spec.field = field;
  return spec;
}

/// "bad" is refused, "throw" throws, "slow" waits until it is let go.
class scripted_compiler final : public grammar_compiler {
 public:
  result<std::shared_ptr<const grammar>> compile(const structured_spec& spec) const override {
    ++calls;
    if (spec.text == "bad") return fail(error_code::invalid_argument, "'" + spec.field + "' is bad.", spec.field);
    if (spec.text == "throw") throw std::runtime_error("no memory");
    if (spec.text.starts_with("slow")) released.wait();
    return std::make_shared<toy_grammar>(4, [](const auto&, token_id) { return true; });
  }
  void release() { gate_.set_value(); }
  mutable std::atomic<int> calls{0};

 private:
  std::promise<void> gate_;

 public:
  std::shared_future<void> released = gate_.get_future().share();
};

compiled_grammar ask(compile_queue& queue, const structured_spec& spec) {
  std::promise<compiled_grammar> answer;
  queue.push(spec, [&](compiled_grammar got) { answer.set_value(std::move(got)); });
  return answer.get_future().get();
}

std::unique_ptr<compile_queue> queue_of(std::shared_ptr<scripted_compiler> compiler,
                                        std::chrono::milliseconds patience = 60s, std::size_t max_queued = 8) {
  compile_queue::options options;
  options.compiler = std::move(compiler);
  options.patience = patience;
  options.max_queued = max_queued;
  return std::make_unique<compile_queue>(std::move(options));
}

TEST(CompileQueue, CompilesASpecOnceForAllWhoAskTheSame) {
  const auto compiler = std::make_shared<scripted_compiler>();
  const auto queue = queue_of(compiler);
  const auto first = ask(*queue, spec_of("a", "one name"));
  const auto second = ask(*queue, spec_of("a", "another name"));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(compiler->calls, 1);
  ASSERT_TRUE(ask(*queue, spec_of("b")));
  EXPECT_EQ(compiler->calls, 2);
}

TEST(CompileQueue, RefusalsAreRememberedUnderTheNameOfWhoAsks) {
  const auto compiler = std::make_shared<scripted_compiler>();
  const auto queue = queue_of(compiler);
  for (const char* field : {"one", "another"}) {
    const auto refused = ask(*queue, spec_of("bad", field));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().param, field);
  }
  EXPECT_EQ(compiler->calls, 1);
  const auto thrown = ask(*queue, spec_of("throw"));
  ASSERT_FALSE(thrown);
  EXPECT_NE(thrown.error().message.find("no memory"), std::string::npos);
}

TEST(CompileQueue, WhatTakesTooLongIsRefusedAndOthersAreServed) {
  const auto compiler = std::make_shared<scripted_compiler>();
  const auto queue = queue_of(compiler, 20ms);
  for (int turn = 0; turn < 2; ++turn) {
    const auto refused = ask(*queue, spec_of("slow"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, error_code::invalid_argument);
    EXPECT_NE(refused.error().message.find("longer than 0.02 s"), std::string::npos) << refused.error().message;
  }
  EXPECT_EQ(compiler->calls, 1) << "the second was known";
  compiler->release();
}

TEST(CompileQueue, OnlySoManyAreLeftRunning) {
  const auto compiler = std::make_shared<scripted_compiler>();
  const auto queue = queue_of(compiler, 20ms);
  ASSERT_FALSE(ask(*queue, spec_of("bad")));  // known from here on
  for (std::size_t i = 0; i < limits::kMaxAbandonedCompiles; ++i)
    EXPECT_EQ(ask(*queue, spec_of("slow" + std::to_string(i))).error().code, error_code::invalid_argument);
  EXPECT_EQ(ask(*queue, spec_of("next")).error().code, error_code::overloaded);
  EXPECT_EQ(ask(*queue, spec_of("bad")).error().code, error_code::invalid_argument);
  compiler->release();
  // Not remembered: when the slow ones are through, it is compiled.
  while (!ask(*queue, spec_of("next"))) std::this_thread::sleep_for(1ms);
}

TEST(CompileQueue, AFullQueueRefusesAndClosingAnswersWhatIsLeft) {
  const auto compiler = std::make_shared<scripted_compiler>();
  std::atomic<int> unavailable{0};
  {
    const auto queue = queue_of(compiler, 20s, 1);
    const auto count = [&](const compiled_grammar& got) {
      if (!got && got.error().code == error_code::unavailable) ++unavailable;
    };
    queue->push(spec_of("slow"), count);
    while (compiler->calls == 0) std::this_thread::sleep_for(1ms);
    queue->push(spec_of("b"), count);
    EXPECT_EQ(ask(*queue, spec_of("c")).error().code, error_code::overloaded);
    std::jthread opener([&] { compiler->release(); });
  }
  EXPECT_GE(unavailable + compiler->calls, 2);
}

TEST(GrammarCache, KeepsWhatWasUsedLastWithinItsBounds) {
  grammar_cache cache;
  const auto anything = std::make_shared<toy_grammar>(4, [](const auto&, token_id) { return true; });
  for (std::size_t i = 0; i < limits::kMaxCachedGrammars + 5; ++i) {
    cache.keep(spec_of(std::to_string(i)), anything);
    EXPECT_TRUE(cache.find(spec_of("0")));
  }
  EXPECT_EQ(cache.size(), limits::kMaxCachedGrammars);
  EXPECT_FALSE(cache.find(spec_of("1")));
  grammar_cache tiny(1);
  tiny.keep(spec_of("a"), anything);
  tiny.keep(spec_of("b"), anything);
  EXPECT_EQ(tiny.size(), 1u);
  EXPECT_TRUE(tiny.find(spec_of("b")));
}

TEST(GrammarCache, SpecsThatDifferInAnyPartAreNotTheSame) {
  grammar_cache cache;
  cache.keep(spec_of("a"), fail(error_code::invalid_argument, "no"));
  structured_spec other = spec_of("a");
  other.kind = structured_spec::form::ebnf;
  EXPECT_FALSE(cache.find(other));
  other = spec_of("a");
  other.strict = false;
  EXPECT_FALSE(cache.find(other));
  other = spec_of("a");
  other.choices = {"x"};
  EXPECT_FALSE(cache.find(other));
}

request_bounds bounds() {
  request_bounds all;
  all.structured_output = true;
  all.end_tokens = {3};
  return all;
}

generation_request asking(structured_spec spec) {
  generation_request request;
  request.structured = std::move(spec);
  return request;
}

TEST(StructuredRules, WhatContradictsAGrammarIsRefusedByName) {
  EXPECT_TRUE(check_structured(asking(spec_of("a")), bounds()));
  EXPECT_TRUE(check_structured({}, {}));
  generation_request request = asking(spec_of("a"));
  request.stopping.ignore_eos = true;
  EXPECT_EQ(check_structured(request, bounds()).error().param, "ignore_eos");
  request = asking(spec_of("a"));
  request.sampling.min_tokens = 1;
  EXPECT_EQ(check_structured(request, bounds()).error().param, "min_tokens");
}

TEST(StructuredRules, SizesHaveBounds) {
  for (const auto& text : {std::string(), std::string(limits::kMaxStructuredBytes + 1, 'a')})
    EXPECT_EQ(check_structured(asking(spec_of(text)), bounds()).error().param, "field");
  structured_spec choice = spec_of("");
  choice.kind = structured_spec::form::choice;
  EXPECT_FALSE(check_structured(asking(choice), bounds()));
  choice.choices.assign(limits::kMaxStructuredChoices, "a");
  EXPECT_TRUE(check_structured(asking(choice), bounds()));
  choice.choices.push_back("a");
  EXPECT_FALSE(check_structured(asking(choice), bounds()));
  choice.choices = {std::string(limits::kMaxStructuredBytes + 1, 'a')};
  EXPECT_FALSE(check_structured(asking(choice), bounds()));
  choice.kind = structured_spec::form::json_object;
  choice.choices.clear();
  EXPECT_TRUE(check_structured(asking(choice), bounds()));
}

TEST(StructuredRules, AServerThatCannotSaysSo) {
  request_bounds without = bounds();
  without.structured_output = false;
  EXPECT_EQ(check_structured(asking(spec_of("a")), without).error().code, error_code::unsupported);
  without = bounds();
  without.end_tokens.clear();
  EXPECT_EQ(check_structured(asking(spec_of("a")), without).error().code, error_code::unsupported);
}

}  // namespace
}  // namespace tandem
