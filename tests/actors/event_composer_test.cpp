#include "actors/event_composer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/stop_rules.hpp"

namespace tandem {
namespace {

/// A tokenizer whose token i has exactly the bytes pieces[i], through GPT-2's byte alphabet (bytes outside printable
/// Latin-1 are shifted to 256 and up, in order).
std::string alphabet(std::string_view bytes) {
  std::string out;
  const auto plain = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255); };
  for (const char c : bytes) {
    const int byte = static_cast<unsigned char>(c);
    int code = byte;
    if (!plain(byte)) {
      code = 256;
      for (int b = 0; b < byte; ++b) code += plain(b) ? 0 : 1;
    }
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else {
      out += static_cast<char>(0xC0 | (code >> 6));
      out += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return out;
}

std::shared_ptr<const text::tokenizer> tokenizer_of(const std::vector<std::string>& pieces) {
  text::tokenizer_spec spec;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    spec.pieces.push_back(alphabet(pieces[i]));

    spec.kinds.push_back(text::token_kind::normal);
  }
  auto made = text::tokenizer::make(std::move(spec));
  EXPECT_TRUE(made.has_value());
  return *made;
}

struct played {
  std::vector<std::string> pieces;
  std::string text;
  finish_reason reason = finish_reason::length;
};

/// Plays tokens 0, 1, 2, … in bursts through the stop automaton (as the scheduler does) and the composer.
played play(const std::vector<std::string>& bytes, const std::vector<std::string>& stops, std::size_t burst,
            std::int32_t interval = 1, finish_reason ending = finish_reason::length) {
  const auto tokenizer = tokenizer_of(bytes);
  const stop_automaton automaton(stops);
  stop_automaton::cursor cursor;
  event_composer composer({{1}, 0}, true, interval);
  played out;
  for (std::size_t at = 0; at < bytes.size() && !(at > 0 && out.reason == finish_reason::stop); at += burst) {
    tokens_committed::entry entry;
    entry.id = {{1}, 0};
    entry.first_index = static_cast<std::int32_t>(at);
    for (std::size_t i = at; i < std::min(at + burst, bytes.size()) && !entry.end; ++i) {
      entry.tokens.push_back(static_cast<token_id>(i));
      entry.accepted.push_back(0);
      const auto hit = automaton.push(cursor, bytes[i]);
      if (!hit) continue;
      entry.end = finish{.reason = finish_reason::stop, .text_bytes = hit->end - hit->length};
      out.reason = finish_reason::stop;
    }
    entry.held_bytes = automaton.held(cursor);
    if (!entry.end && at + burst >= bytes.size()) entry.end = finish{.reason = ending};
    const auto event = composer.add(entry, *tokenizer);
    if (!event) continue;
    out.pieces.push_back(event->text);
    out.text += event->text;
  }
  return out;
}

std::string joined(const std::vector<std::string>& bytes) {
  std::string all;
  for (const auto& piece : bytes) all += piece;
  return all;
}

std::vector<std::string> split_everywhere(const std::string& text) {
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  return bytes;
}

bool valid_utf8(const std::string& text) {
  return text.find("\xEF\xBF\xBD") == std::string::npos;
}

TEST(EventComposer, C1_CharactersSplitAcrossTokensComeOutWhole) {
  const std::vector<std::vector<std::string>> outputs = {
      {"\xF0\x9F\x91", "\xA8", "\xF0", "\x9F\x91\xA9"},       // two emoji that share bytes
      {"a\xF0", "\x9F\x98", "\x80 b", "\xC3", "\xA9"},        // a whole character and the start of the next
      {"\xF0\x9F\x87", "\xA9\xF0\x9F", "\x87\xAA"},           // a flag
      {" ", " \xC3", "\xA9", "  x"},                          // leading spaces
      {"e\xCC", "\x81", "\xE4\xBD", "\xA0\xE5", "\xA5\xBD"},  // a combining mark, CJK
  };
  for (const auto& bytes : outputs) {
    for (std::size_t burst : {1, 2, 3, 8}) {
      const auto got = play(bytes, {}, burst);
      EXPECT_EQ(got.text, joined(bytes));
      for (const auto& piece : got.pieces) EXPECT_TRUE(valid_utf8(piece));
    }
  }
}

TEST(EventComposer, C1_CompleteCharactersAreNotHeldBack) {
  const auto got = play({"a", "\xC3", "\xA9", "b"}, {}, 1);
  EXPECT_EQ(got.pieces, (std::vector<std::string>{"a", "", "\xC3\xA9", "b"}));
}

TEST(EventComposer, C1_AnUnfinishedCharacterAtTheEndBecomesOneReplacement) {
  EXPECT_EQ(play({"a", "\xF0\x9F"}, {}, 1).text, "a\xEF\xBF\xBD");
}

TEST(EventComposer, C3_NoPrefixOfAStopIsEverVisible) {
  const std::string output = "xxaaab and STOP here";
  for (const std::string stop : {"aab", "STOP", "ab and S", " ", "here", "xx"}) {
    for (std::size_t burst : {1, 2, 3, 5, 40}) {
      const auto got = play(split_everywhere(output), {stop}, burst);
      EXPECT_EQ(got.reason, finish_reason::stop) << stop;
      EXPECT_EQ(got.text, output.substr(0, output.find(stop))) << stop << " in bursts of " << burst;
    }
  }
}

TEST(EventComposer, C3_StopsInsideAndAcrossTokensAreCut) {
  const std::vector<std::string> bytes = {"one tw", "o thr", "ee \xF0\x9F", "\x91\xA8 fo", "ur"};
  for (const std::string stop : {"two", "o three", "thr", "\xF0\x9F\x91\xA8", "e \xF0\x9F\x91\xA8 f"}) {
    for (std::size_t burst : {1, 2, 5}) {
      const auto got = play(bytes, {stop}, burst);
      EXPECT_EQ(got.text, joined(bytes).substr(0, joined(bytes).find(stop))) << stop;
    }
  }
}

TEST(EventComposer, C3_NearMatchesAreFlushedHoweverItEnds) {
  for (const auto ending :
       {finish_reason::length, finish_reason::cancelled, finish_reason::timeout, finish_reason::error}) {
    for (std::size_t burst : {1, 2, 7}) {
      const auto got = play(split_everywhere("a near STO"), {"STOP", "near miss"}, burst, 1, ending);
      EXPECT_EQ(got.text, "a near STO");
    }
  }
}

TEST(EventComposer, C3_OnlyATruePossiblePrefixIsWithheld) {
  const auto got = play(split_everywhere("abSxST!"), {"STOP"}, 1);
  EXPECT_EQ(got.pieces, (std::vector<std::string>{"a", "b", "", "Sx", "", "", "ST!"}));
}

TEST(EventComposer, TheStreamIntervalChangesPiecesAndNothingElse) {
  const auto bytes = split_everywhere("0123456789");
  const auto got = play(bytes, {}, 1, 4);
  EXPECT_EQ(got.text, "0123456789");
  EXPECT_EQ(got.pieces, (std::vector<std::string>{"0", "1234", "5678", "9"}));
}

}  // namespace
}  // namespace tandem
