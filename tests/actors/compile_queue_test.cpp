#include "actors/compile_queue.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
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

class huge_grammar final : public grammar {
 public:
  std::unique_ptr<grammar_matcher> start() const override { return nullptr; }
  std::size_t bytes() const override { return limits::kMaxGrammarBytes + 1; }
};

/// "bad" is refused, "throw" throws, "slow" waits until it is let go.
class scripted_compiler final : public grammar_compiler {
 public:
  result<std::shared_ptr<const grammar>> compile(const structured_spec& spec) const override {
    ++calls;
    if (spec.text == "bad") return fail(error_code::invalid_argument, "'" + spec.field + "' is bad.", spec.field);
    if (spec.text == "throw") throw std::runtime_error("no memory");
    if (spec.text.starts_with("slow")) released.wait();
    if (spec.text == "huge") return std::make_shared<huge_grammar>();
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
  queue.push({1}, spec, [&](compiled_grammar got) { answer.set_value(std::move(got)); });
  return answer.get_future().get();
}

std::unique_ptr<compile_queue> queue_of(std::shared_ptr<scripted_compiler> compiler,
                                        std::chrono::milliseconds patience = 60s, std::size_t max_queued = 8,
                                        std::chrono::milliseconds quick = 60s) {
  compile_queue::options options;
  options.compiler = std::move(compiler);
  options.patience = patience;
  options.quick = quick;
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
  EXPECT_EQ(thrown.error().code, error_code::device_failed) << "not the client's fault, and not remembered";
  ask(*queue, spec_of("throw"));
  EXPECT_EQ(compiler->calls, 3);
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

/// Waits until as many compilations have begun.
void wait_for_calls(const scripted_compiler& compiler, int calls) {
  while (compiler.calls < calls) std::this_thread::sleep_for(1ms);
}

TEST(CompileQueue, OnlySoManyAreLeftRunningAndItsStatusSaysSo) {
  const auto compiler = std::make_shared<scripted_compiler>();
  const auto queue = queue_of(compiler, 20ms);
  ASSERT_FALSE(ask(*queue, spec_of("bad")));  // known from here on
  for (std::size_t i = 0; i < limits::kMaxCompiles; ++i) {
    EXPECT_FALSE(queue->status().stuck);
    EXPECT_EQ(ask(*queue, spec_of("slow" + std::to_string(i))).error().code, error_code::invalid_argument);
    EXPECT_EQ(queue->status().abandoned, i + 1);
  }
  EXPECT_TRUE(queue->status().stuck);
  EXPECT_EQ(ask(*queue, spec_of("next")).error().code, error_code::unavailable);
  EXPECT_EQ(ask(*queue, spec_of("bad")).error().code, error_code::invalid_argument);
  compiler->release();
  // Not remembered: when the slow ones are through, it is compiled; and what they became is known, too.
  while (!ask(*queue, spec_of("next"))) std::this_thread::sleep_for(1ms);
  while (queue->status().running > 0) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(queue->status().stuck);
  EXPECT_TRUE(ask(*queue, spec_of("slow0")));
}

TEST(CompileQueue, ThatIsCheapOrKnownDoesNotWaitBehindTheSlow) {
  const auto compiler = std::make_shared<scripted_compiler>();
  const auto queue = queue_of(compiler, 60s, 8, 20ms);
  ASSERT_TRUE(ask(*queue, spec_of("known")));
  for (std::size_t i = 0; i < limits::kCompileLanes; ++i)
    queue->push({10 + i}, spec_of("slow" + std::to_string(i)), [](const auto&) {});
  wait_for_calls(*compiler, 1 + static_cast<int>(limits::kCompileLanes));
  EXPECT_TRUE(ask(*queue, spec_of("known")));
  EXPECT_TRUE(ask(*queue, spec_of("cheap")));  // when the slow ones have given up their lanes
  compiler->release();
}

TEST(CompileQueue, WhoAsksForTheSameWaitsForOneCompilation) {
  const auto compiler = std::make_shared<scripted_compiler>();
  const auto queue = queue_of(compiler);
  std::promise<compiled_grammar> first;
  std::promise<compiled_grammar> second;
  queue->push({1}, spec_of("slow"), [&](compiled_grammar got) { first.set_value(std::move(got)); });
  queue->push({2}, spec_of("slow"), [&](compiled_grammar got) { second.set_value(std::move(got)); });
  wait_for_calls(*compiler, 1);
  compiler->release();
  EXPECT_EQ(*first.get_future().get(), *second.get_future().get());
  EXPECT_EQ(compiler->calls, 1);
}

TEST(CompileQueue, WhoWithdrawsKeepsNoPlaceAndIsNotAnswered) {
  const auto compiler = std::make_shared<scripted_compiler>();
  const auto queue = queue_of(compiler, 60s, limits::kCompileLanes + 1);
  for (std::size_t i = 0; i < limits::kCompileLanes; ++i)
    queue->push({10 + i}, spec_of("slow" + std::to_string(i)), [](const auto&) {});
  wait_for_calls(*compiler, static_cast<int>(limits::kCompileLanes));
  queue->push({2}, spec_of("b"), [](const auto&) { FAIL(); });
  EXPECT_EQ(queue->status().waiting, limits::kCompileLanes + 1);
  EXPECT_EQ(ask(*queue, spec_of("c")).error().code, error_code::overloaded);
  queue->withdraw({2});
  queue->withdraw({10});  // of what compiles already
  EXPECT_EQ(queue->status().waiting, limits::kCompileLanes - 1);
  std::promise<compiled_grammar> last;
  queue->push({3}, spec_of("c"), [&](compiled_grammar got) { last.set_value(std::move(got)); });
  compiler->release();
  EXPECT_TRUE(last.get_future().get());
  EXPECT_FALSE(ask(*queue, spec_of("bad")));
  EXPECT_EQ(compiler->calls, static_cast<int>(limits::kCompileLanes) + 2) << "b was never compiled";
}

TEST(CompileQueue, AFullQueueRefusesAndClosingAnswersWhatIsLeft) {
  const auto compiler = std::make_shared<scripted_compiler>();
  std::atomic<std::size_t> unavailable{0};
  {
    const auto queue = queue_of(compiler, 20s, limits::kCompileLanes + 1);
    const auto count = [&](const compiled_grammar& got) {
      if (!got && got.error().code == error_code::unavailable) ++unavailable;
    };
    for (std::size_t i = 0; i < limits::kCompileLanes; ++i)
      queue->push({10 + i}, spec_of("slow" + std::to_string(i)), count);
    wait_for_calls(*compiler, static_cast<int>(limits::kCompileLanes));
    queue->push({2}, spec_of("b"), count);
    EXPECT_EQ(ask(*queue, spec_of("c")).error().code, error_code::overloaded);
    EXPECT_EQ(unavailable, 0u);
    std::jthread opener([&] {
      while (unavailable == 0) std::this_thread::sleep_for(1ms);
      compiler->release();
    });
    opener.detach();
  }
  EXPECT_EQ(unavailable, limits::kCompileLanes + 1);
}

TEST(CompileQueue, WhatIsTooLargeCompiledIsRefusedAndNotKept) {
  const auto compiler = std::make_shared<scripted_compiler>();
  const auto queue = queue_of(compiler);
  const auto refused = ask(*queue, spec_of("huge"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::invalid_argument);
  EXPECT_NE(refused.error().message.find("at most 64"), std::string::npos) << refused.error().message;
}

struct shouts_at_the_end {
  ~shouts_at_the_end() {
    std::fputs("a static was destroyed", stderr);
    _exit(1);
  }
};

void end_while_one_compiles() {
  static shouts_at_the_end a_static_that_compilers_use;
  const auto compiler = std::make_shared<scripted_compiler>();
  {
    const auto queue = queue_of(compiler, 20ms);
    ask(*queue, spec_of("slow"));
  }
  std::exit(3);
}

TEST(CompileQueueDeathTest, NoStaticIsDestroyedUnderACompilationThatOutlivesTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_while_one_compiles(), ::testing::ExitedWithCode(3), "");
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
}

TEST(GrammarCache, KeepsNothingThatIsTooLargeAloneAndTheLastThatWasSaidOfASpec) {
  const auto anything = std::make_shared<toy_grammar>(4, [](const auto&, token_id) { return true; });
  grammar_cache tiny(1);
  tiny.keep(spec_of("a"), anything);
  EXPECT_EQ(tiny.size(), 0u);
  grammar_cache cache;
  cache.keep(spec_of("a"), fail(error_code::invalid_argument, "no"));
  cache.keep(spec_of("a"), anything);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_TRUE(*cache.find(spec_of("a")));
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
