#include <gtest/gtest.h>

#include <random>

#include "tests/grammar/grammar_lab.hpp"

namespace tandem::testing {
namespace {

const std::pair<form, std::string> kGrammars[] = {
    {form::json_object, ""},
    {form::json_schema, R"({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"},
                           "c": {"enum": ["abcabc", "é", "€"]}}, "required": ["a"]})"},
    {form::regex, "(ab|abc|[0-9]{2,5}é?)*z"},
    {form::ebnf, "root ::= \"(\" root \")\" | [^()\\n] \"ab\"*"},
    {form::structural_tag, R"({"type": "structural_tag", "format": {"type": "or", "elements": [
                              {"type": "const_string", "value": "ab"}, {"type": "const_string", "value": "abcabc12"}]}})"},
};

/// A random token that may follow, or the end token where there is no other.
token_id random_step(const grammar_lab& lab, grammar_matcher& matcher, std::mt19937& random) {
  const auto bits = lab.mask(matcher);
  std::vector<token_id> allowed;
  for (token_id id = 0; id < static_cast<token_id>(lab.tokens.tokens.size()); ++id)
    if (lab.bit(bits, id)) allowed.push_back(id);
  EXPECT_FALSE(allowed.empty());
  return allowed.empty() ? lab.tokens.eos : allowed[random() % allowed.size()];
}

/// The mask against asking for every token.
void expect_mask_tells_what_is_accepted(const grammar_lab& lab, grammar_matcher& matcher) {
  const auto bits = lab.mask(matcher);
  for (token_id id = 0; id < static_cast<token_id>(lab.tokens.tokens.size()); ++id) {
    const bool taken = matcher.accept(id);
    ASSERT_EQ(taken, lab.bit(bits, id)) << "token " << id << " \""
                                        << lab.tokens.tokens[static_cast<std::size_t>(id)].bytes << '"';
    if (taken) matcher.rewind(1);
  }
  ASSERT_EQ(lab.mask(matcher), bits);
}

TEST(grammar_matcher, the_mask_is_what_accept_takes_on_random_walks) {
  const grammar_lab lab;
  std::mt19937 random(7);
  for (const auto& [kind, text] : kGrammars) {
    const auto rules = lab.compile(kind, text).value();
    for (int walk = 0; walk < 6; ++walk) {
      const auto matcher = rules->start();
      for (int step = 0; step < 25 && !matcher->has_ended(); ++step) {
        expect_mask_tells_what_is_accepted(lab, *matcher);
        ASSERT_TRUE(matcher->accept(random_step(lab, *matcher, random)));
      }
    }
  }
}

TEST(grammar_matcher, end_tokens_follow_only_a_whole_output_and_control_tokens_never) {
  const grammar_lab lab;
  std::mt19937 random(8);
  const token_id other_end = lab.tokens.find("<|endoftext|>");
  for (const auto& [kind, text] : kGrammars) {
    const auto matcher = lab.compile(kind, text).value()->start();
    for (int step = 0; step < 60 && !matcher->has_ended(); ++step) {
      const auto bits = lab.mask(*matcher);
      EXPECT_EQ(lab.bit(bits, lab.tokens.eos), matcher->is_complete());
      EXPECT_EQ(lab.bit(bits, other_end), matcher->is_complete());
      EXPECT_FALSE(lab.bit(bits, lab.tokens.find("<|im_start|>")));
      ASSERT_TRUE(matcher->accept(random_step(lab, *matcher, random)));
    }
  }
}

TEST(grammar_matcher, rewinding_any_number_of_tokens_leaves_no_trace) {
  const grammar_lab lab;
  std::mt19937 random(9);
  for (const auto& [kind, text] : kGrammars) {
    const auto rules = lab.compile(kind, text).value();
    const auto matcher = rules->start();
    std::vector<std::vector<std::uint32_t>> masks{lab.mask(*matcher)};
    std::vector<token_id> taken;
    for (int turn = 0; turn < 80; ++turn) {
      for (int ahead = static_cast<int>(random() % 6); ahead > 0 && !matcher->has_ended(); --ahead) {
        taken.push_back(random_step(lab, *matcher, random));
        ASSERT_TRUE(matcher->accept(taken.back()));
        if (!matcher->has_ended()) masks.push_back(lab.mask(*matcher));
      }
      const auto back = matcher->has_ended() ? 1 + random() % taken.size() : random() % (taken.size() + 1);
      matcher->rewind(static_cast<std::int32_t>(back));
      taken.resize(taken.size() - back);
      masks.resize(taken.size() + 1);
      ASSERT_EQ(lab.mask(*matcher), masks.back());
    }
    const auto fresh = rules->start();
    for (const token_id token : taken) ASSERT_TRUE(fresh->accept(token));
    EXPECT_EQ(lab.mask(*fresh), masks.back());
  }
}

TEST(grammar_matcher, an_ended_one_takes_nothing_until_it_is_rewound) {
  const grammar_lab lab;
  const auto matcher = lab.compile(form::regex, "ab?").value()->start();
  ASSERT_TRUE(matcher->accept('a'));
  ASSERT_TRUE(matcher->accept(lab.tokens.eos));
  EXPECT_TRUE(matcher->has_ended());
  EXPECT_FALSE(matcher->accept('b'));
  EXPECT_FALSE(matcher->accept(lab.tokens.eos));
  matcher->rewind(1);
  EXPECT_FALSE(matcher->has_ended());
  EXPECT_TRUE(matcher->accept('b'));
}

TEST(grammar_matcher, matchers_of_one_grammar_do_not_know_of_each_other) {
  const grammar_lab lab;
  auto rules = lab.compile(form::regex, "(ab|cd)e").value();
  const auto first = rules->start();
  const auto second = rules->start();
  rules.reset();
  ASSERT_TRUE(first->accept('a'));
  ASSERT_TRUE(second->accept('c'));
  EXPECT_FALSE(first->accept('d'));
  EXPECT_TRUE(first->accept('b'));
  EXPECT_TRUE(second->accept('d'));
}

TEST(grammar_matcher, ids_outside_the_vocabulary_are_refused) {
  const grammar_lab lab;
  const auto matcher = lab.compile(form::regex, "a+").value()->start();
  for (const token_id id : {-1, static_cast<token_id>(lab.tokens.tokens.size()), 1 << 30})
    EXPECT_FALSE(matcher->accept(id));
  EXPECT_TRUE(matcher->accept('a'));
}

}  // namespace
}  // namespace tandem::testing
