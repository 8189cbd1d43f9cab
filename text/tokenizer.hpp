#pragma once
/// Text ⇄ token ids. Byte-level BPE (Sennrich et al. 2016; GPT-2's byte alphabet), compiled from a tokenizer_spec.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "core/request.hpp"
#include "core/result.hpp"
#include "text/tokenizer_spec.hpp"

namespace tandem::text {

/// Immutable after make(); every method may be called from many threads at once.
class tokenizer {
 public:
  /// Errors: corrupt (a piece or merge that cannot be), unsupported.
  static result<std::shared_ptr<const tokenizer>> make(tokenizer_spec spec);
  ~tokenizer();

  /// Control tokens are recognised only where they lie wholly inside one trusted range. User-defined tokens are text
  /// like any other (they cannot forge a role or an end) and recognised everywhere, as the reference tokenizers do.
  /// Time is linear in the text up to a logarithm, also for long runs of one character. Invalid UTF-8 becomes U+FFFD.
  /// Errors: too_large (limits::kMaxEncodeBytes).
  result<std::vector<token_id>> encode(const prompt_text& prompt) const;
  /// The whole text trusted (`parse_special`) or none of it; BOS as `add_bos` says.
  result<std::vector<token_id>> encode(std::string_view text, bool parse_special, bool add_bos) const;

  /// Raw bytes of a token as they appear in text: possibly a part of a character. A control token gives its name
  /// (e.g. "<|im_end|>") unless `skip_special`, then nothing. Out-of-range and unused ids give nothing.
  std::string_view token_bytes(token_id id, bool skip_special) const;
  /// Bytes of all tokens joined; ill-formed UTF-8 replaced by U+FFFD.
  std::string decode(std::span<const token_id> ids, bool skip_special) const;

  bool is_special(token_id id) const;
  token_id find(std::string_view piece) const;  ///< id of a piece in plain text (special names too), or kNoToken
  std::int32_t size() const;
  const tokenizer_spec& spec() const;

 private:
  struct impl;
  explicit tokenizer(std::unique_ptr<const impl> state);
  std::unique_ptr<const impl> impl_;
};

/// Reads a Hugging Face tokenizer.json (and, when given, tokenizer_config.json, generation_config.json and a separate
/// chat_template.jinja; pass empty views for the missing ones). Untrusted input. Errors: corrupt, unsupported (names the
/// pre-tokenizer, normalizer or model type), too_large.
struct tokenizer_files {
  std::string_view tokenizer_json;
  std::string_view tokenizer_config_json;
  std::string_view generation_config_json;
  std::string_view config_json;
  std::string_view chat_template_jinja;
};
result<tokenizer_spec> parse_tokenizer_json(const tokenizer_files& files);

/// Two models can work as target and draft when every id of the smaller vocabulary means the same in both.
/// Error: invalid_argument naming the first differing id. Padding rows (unused) match anything.
result<void> check_same_vocabulary(const tokenizer& target, const tokenizer& draft);

}  // namespace tandem::text
