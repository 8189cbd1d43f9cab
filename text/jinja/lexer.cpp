#include "text/jinja/lexer.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "text/jinja/failure.hpp"
#include "text/utf8.hpp"

namespace tandem::text::jinja {
namespace {

constexpr std::string_view kSpace = " \t\n\v\f\r";

bool is_space(char c) {
  return kSpace.find(c) != std::string_view::npos;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
bool is_name_char(char c) {
  return is_name_start(c) || is_digit(c);
}

// One kind of line end, and the last one dropped: Jinja's keep_trailing_newline is off.
std::string with_plain_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class lexer {
 public:
  explicit lexer(std::string_view source) : source_(with_plain_newlines(source)) {}

  std::vector<token> run() {
    while (at_ < source_.size()) read_data();
    push(token_type::end, "");
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view text) const { return std::string_view(source_).substr(at_, text.size()) == text; }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  void push(token_type type, std::string text) { tokens_.push_back({type, std::move(text), line_}); }

  void advance(std::size_t count) {
    const auto from = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ += static_cast<int>(std::count(from, from + static_cast<std::ptrdiff_t>(count), '\n'));
    at_ += count;
  }

  std::size_t find_tag() const {
    for (std::size_t at = source_.find('{', at_); at + 1 < source_.size(); at = source_.find('{', at + 1)) {
      if (at == std::string::npos) break;
      const char next = source_[at + 1];
      if (next == '{' || next == '%' || next == '#') return at;
    }
    return std::string::npos;
  }

  // Text up to the next tag, trimmed as that tag asks, then the tag itself.
  void read_data() {
    const bool line_starts = at_ == 0 || swallowed_newline_;
    const std::size_t tag = find_tag();
    std::string data = source_.substr(at_, tag == std::string::npos ? std::string::npos : tag - at_);
    const int line = line_;
    advance(data.size());
    if (tag == std::string::npos) return push_data(std::move(data), line);
    trim_before_tag(data, line_starts);
    push_data(std::move(data), line);
    swallowed_newline_ = false;
    const char kind = peek(1);
    const bool marked = peek(2) == '-' || (kind == '%' && peek(2) == '+');
    advance(marked ? 3 : 2);
    if (kind == '#') return read_comment();
    if (kind == '%' && read_raw()) return;
    push(kind == '{' ? token_type::print_begin : token_type::block_begin, "");
    read_inside(kind == '{' ? "}}" : "%}");
  }

  void push_data(std::string data, int line) {
    if (!data.empty()) tokens_.push_back({token_type::data, std::move(data), line});
  }

  void trim_before_tag(std::string& data, bool line_starts) const {
    const char kind = peek(1);
    if (peek(2) == '-') {
      data.erase(data.find_last_not_of(kSpace) + 1);
      return;
    }
    if (kind == '{' || peek(2) == '+') return;
    const std::size_t newline = data.rfind('\n');
    if (newline == std::string::npos && !line_starts) return;
    const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
    if (data.find_first_not_of(kSpace, begin) == std::string::npos) data.erase(begin);
  }

  void skip_space() {
    std::size_t count = 0;
    while (at_ + count < source_.size() && is_space(source_[at_ + count])) ++count;
    advance(count);
  }

  // Behind a tag's end: `-` takes all space, else a block or comment takes one line end.
  void trim_after_tag(bool minus, bool plus, bool is_print) {
    if (minus) {
      skip_space();
    } else if (!plus && !is_print && peek() == '\n') {
      advance(1);
      swallowed_newline_ = true;
    }
  }

  void read_comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos) fail_syntax(line_, "a comment is not closed");
    const bool minus = end > at_ && source_[end - 1] == '-';
    const bool plus = end > at_ && source_[end - 1] == '+';
    advance(end + 2 - at_);
    trim_after_tag(minus, plus, false);
  }

  // "{%" is read. True when it was a whole raw section.
  bool read_raw() {
    const std::size_t before = at_;
    const int line = line_;
    skip_space();
    const bool raw = starts("raw") && !is_name_char(peek(3));
    if (raw) advance(3);
    skip_space();
    const bool minus = raw && starts("-%}");
    if (!raw || !(minus || starts("%}") || starts("+%}"))) {
      at_ = before;
      line_ = line;
      return false;
    }
    const bool plus = starts("+%}");
    advance(minus || plus ? 3 : 2);
    trim_after_tag(minus, plus, false);
    read_raw_body(line);
    return true;
  }

  void read_raw_body(int line) {
    for (std::size_t tag = source_.find("{%", at_); tag != std::string::npos; tag = source_.find("{%", tag + 2)) {
      std::size_t at = tag + 2;
      const bool minus_before = at < source_.size() && source_[at] == '-';
      if (minus_before || (at < source_.size() && source_[at] == '+')) ++at;
      at = std::min(source_.find_first_not_of(kSpace, at), source_.size());
      if (source_.compare(at, 6, "endraw") != 0) continue;
      at = std::min(source_.find_first_not_of(kSpace, at + 6), source_.size());
      const bool minus = source_.compare(at, 3, "-%}") == 0;
      const bool plus = source_.compare(at, 3, "+%}") == 0;
      if (!minus && !plus && source_.compare(at, 2, "%}") != 0) continue;
      std::string data = source_.substr(at_, tag - at_);
      const bool line_starts = swallowed_newline_;
      const int data_line = line_;
      advance(tag - at_);
      trim_before_tag(data, line_starts);
      push_data(std::move(data), data_line);
      swallowed_newline_ = false;
      advance(at + (minus || plus ? 3 : 2) - at_);
      trim_after_tag(minus, plus, false);
      return;
    }
    fail_syntax(line, "a raw section is not closed");
  }

  void read_inside(std::string_view closing) {
    std::size_t open_brackets = 0;
    const int line = line_;
    while (true) {
      skip_space();
      if (at_ >= source_.size()) fail_syntax(line, "a tag is not closed");
      if (open_brackets == 0 && read_closing(closing)) return;
      const char c = peek();
      if (c == '(' || c == '[' || c == '{') ++open_brackets;
      if ((c == ')' || c == ']' || c == '}') && open_brackets-- == 0) fail_syntax(line_, "a bracket closes nothing");
      read_token();
    }
  }

  bool read_closing(std::string_view closing) {
    const bool sign = (peek() == '-' || peek() == '+') && std::string_view(source_).substr(at_ + 1, 2) == closing;
    if (!sign && !starts(closing)) return false;
    const bool minus = sign && peek() == '-';
    const bool plus = sign && peek() == '+';
    const bool is_print = closing == "}}";
    advance(sign ? 3 : 2);
    push(is_print ? token_type::print_end : token_type::block_end, "");
    trim_after_tag(minus, plus, is_print);
    return true;
  }

  void read_token() {
    const char c = peek();
    if (is_name_start(c)) return read_name();
    if (is_digit(c)) return read_number();
    if (c == '\'' || c == '"') return read_string();
    for (const std::string_view symbol : {"**", "//", "==", "!=", "<=", ">="}) {
      if (!starts(symbol)) continue;
      push(token_type::symbol, std::string(symbol));
      return advance(2);
    }
    if (std::string_view("+-*/%~<>()[]{},.:|=").find(c) == std::string_view::npos) {
      fail_syntax(line_, "an unexpected character stands in a tag");
    }
    push(token_type::symbol, std::string(1, c));
    advance(1);
  }

  void read_name() {
    std::size_t count = 0;
    while (is_name_char(peek(count))) ++count;
    push(token_type::name, source_.substr(at_, count));
    advance(count);
  }

  void read_number() {
    std::size_t count = 0;
    const auto take_digits = [&] {
      while (is_digit(peek(count)) || (peek(count) == '_' && is_digit(peek(count + 1)))) ++count;
    };
    take_digits();
    bool real = false;
    if (peek(count) == '.' && is_digit(peek(count + 1))) {
      real = true;
      ++count;
      take_digits();
    }
    const bool exponent = peek(count) == 'e' || peek(count) == 'E';
    const std::size_t sign = exponent && (peek(count + 1) == '+' || peek(count + 1) == '-') ? 2 : 1;
    if (exponent && is_digit(peek(count + sign))) {
      real = true;
      count += sign;
      take_digits();
    }
    std::string digits = source_.substr(at_, count);
    std::erase(digits, '_');
    push(real ? token_type::real : token_type::integer, std::move(digits));
    advance(count);
  }

  void read_string() {
    const char quote = peek();
    const int line = line_;
    std::string text;
    advance(1);
    while (peek() != quote) {
      if (at_ >= source_.size()) fail_syntax(line, "a string is not closed");
      if (peek() == '\\' && at_ + 1 < source_.size()) {
        read_escape(text);
      } else {
        text += peek();
        advance(1);
      }
    }
    advance(1);
    if (!is_valid_utf8(text)) fail_syntax(line, "a string holds an escape that is no character");
    tokens_.push_back({token_type::string, std::move(text), line});
  }

  void read_escape(std::string& text) {
    static constexpr std::string_view kLetters = "ntrbfva0\\'\"";
    static constexpr std::string_view kMeanings{"\n\t\r\b\f\v\a\0\\'\"", 11};
    const char letter = peek(1);
    if (letter == '\n') return advance(2);
    if (const std::size_t found = kLetters.find(letter); found != std::string_view::npos) {
      text += kMeanings[found];
      return advance(2);
    }
    const std::size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    if (digits == 0) {  // Python keeps what it does not know
      text += '\\';
      return advance(1);
    }
    advance(2);
    read_code_point(text, digits);
  }

  void read_code_point(std::string& text, std::size_t digits) {
    std::uint32_t code_point = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const char c = peek(i);
      if (!std::isxdigit(static_cast<unsigned char>(c))) fail_syntax(line_, "a string holds an unfinished escape");
      const int low = std::tolower(static_cast<unsigned char>(c));
      code_point = code_point * 16 + static_cast<std::uint32_t>(is_digit(c) ? c - '0' : low - 'a' + 10);
    }
    if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) {
      fail_syntax(line_, "a string holds an escape that is no character");
    }
    append_utf8(text, code_point);
    advance(digits);
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool swallowed_newline_ = false;  // the tag before took the line end with it
  std::vector<token> tokens_;
};

}  // namespace

std::vector<token> tokenize(std::string_view source) {
  return lexer(source).run();
}

}  // namespace tandem::text::jinja
