#include "text/tokenizer.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "text/bpe_merger.hpp"
#include "text/byte_alphabet.hpp"
#include "text/normalizer.hpp"
#include "text/special_matcher.hpp"
#include "text/utf8.hpp"
#include "text/word_splitter.hpp"

namespace tandem::text {

struct tokenizer::impl {
  explicit impl(word_splitter words) : splitter(std::move(words)) {}

  tokenizer_spec spec;
  std::vector<std::string> bytes;  // by id: what the token writes
  std::unordered_map<std::string, token_id> ids_by_bytes;
  bpe_merger merger;
  special_matcher specials;
  word_splitter splitter;

  result<void> encode_plain(std::string_view text, std::vector<token_id>& out) const;
  result<std::vector<token_id>> encode_all(const prompt_text& prompt) const;
};

namespace {

result<void> check_piece(const std::string& piece, std::size_t id) {
  if (piece.size() > limits::kMaxTokenBytes) {
    return fail(error_code::corrupt, "Token " + std::to_string(id) + " is longer than a token may be.");
  }
  if (!is_valid_utf8(piece)) {
    return fail(error_code::corrupt, "Token " + std::to_string(id) + " is not valid UTF-8.");
  }
  return {};
}

result<void> check_ids(const tokenizer_spec& spec) {
  const auto size = static_cast<token_id>(spec.pieces.size());
  const auto outside = [size](token_id id) { return id != kNoToken && (id < 0 || id >= size); };
  const bool bad_named = outside(spec.bos) || outside(spec.eos) || outside(spec.unknown) || outside(spec.padding);
  const bool bad_end = std::any_of(spec.end_tokens.begin(), spec.end_tokens.end(),
                                   [&](token_id id) { return id == kNoToken || outside(id); });
  if (bad_named || bad_end) {
    return fail(error_code::corrupt, "A special token's id lies outside the vocabulary of " + std::to_string(size) +
                                         " tokens; the model's files do not belong together.");
  }
  return {};
}

result<void> check_spec(const tokenizer_spec& spec) {
  if (spec.pieces.empty()) return fail(error_code::corrupt, "The vocabulary is empty.");
  if (spec.pieces.size() > limits::kMaxVocabulary || spec.merges.size() > limits::kMaxVocabulary) {
    return fail(error_code::too_large, "The vocabulary is larger than a vocabulary may be.");
  }
  if (spec.kinds.size() != spec.pieces.size()) {
    return fail(error_code::corrupt, "The vocabulary has " + std::to_string(spec.pieces.size()) + " tokens but " +
                                         std::to_string(spec.kinds.size()) + " token kinds.");
  }
  for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
    if (auto checked = check_piece(spec.pieces[id], id); !checked) return checked;
  }
  return check_ids(spec);
}

using piece_ids = std::unordered_map<std::string_view, token_id>;

piece_ids index_pieces(const tokenizer_spec& spec) {
  piece_ids ids;
  ids.reserve(spec.pieces.size());
  for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
    if (spec.kinds[id] == token_kind::normal) ids.try_emplace(spec.pieces[id], static_cast<token_id>(id));
  }
  return ids;
}

result<void> fill_merges(const tokenizer_spec& spec, bpe_merger& merger) {
  const piece_ids ids = index_pieces(spec);
  const auto find = [&](std::string_view piece) {
    const auto found = ids.find(piece);
    return found == ids.end() ? kNoToken : found->second;
  };
  // A control token must never come out of plain text, also where it doubles as the unknown token.
  const bool has_unknown =
      spec.unknown != kNoToken && spec.kinds[static_cast<std::size_t>(spec.unknown)] == token_kind::normal;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const token_id id = find(byte_characters()[byte]);
    merger.set_byte(static_cast<unsigned char>(byte), id == kNoToken && has_unknown ? spec.unknown : id);
  }
  merger.reserve(spec.merges.size());
  for (std::size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const auto& [left, right] = spec.merges[rank];
    const token_id left_id = find(left);
    const token_id right_id = find(right);
    const token_id merged = find(left + right);
    if (left_id == kNoToken || right_id == kNoToken || merged == kNoToken) {
      return fail(error_code::corrupt,
                  "Merge " + std::to_string(rank) + " of the tokenizer names a piece that is not in the vocabulary.");
    }
    merger.add_merge(left_id, right_id, merged);
  }
  return {};
}

// Replaces ill-formed parts; trusted offsets move along.
prompt_text with_valid_utf8(const prompt_text& prompt) {
  prompt_text out;
  out.add_bos = prompt.add_bos;
  out.trusted = prompt.trusted;
  std::vector<std::size_t*> edges;
  for (byte_range& range : out.trusted) {
    edges.push_back(&range.begin);
    edges.push_back(&range.end);
  }
  std::size_t edge = 0;
  std::size_t at = 0;
  while (at < prompt.text.size()) {
    const utf8_unit unit = read_utf8(prompt.text, at);
    while (edge < edges.size() && *edges[edge] <= at) *edges[edge++] = out.text.size();
    if (unit.valid) {
      out.text.append(prompt.text, at, unit.length);
    } else {
      out.text.append(kReplacementUtf8);
    }
    at += unit.length;
  }
  while (edge < edges.size()) *edges[edge++] = out.text.size();
  return out;
}

}  // namespace

tokenizer::tokenizer(std::unique_ptr<const impl> state) : impl_(std::move(state)) {}
tokenizer::~tokenizer() = default;

result<std::shared_ptr<const tokenizer>> tokenizer::make(tokenizer_spec spec) {
  if (auto checked = check_spec(spec); !checked) return tl::unexpected(checked.error());
  auto splitter = word_splitter::make(spec.pre);
  if (!splitter) return tl::unexpected(splitter.error());
  auto state = std::make_unique<impl>(std::move(*splitter));
  if (auto filled = fill_merges(spec, state->merger); !filled) return tl::unexpected(filled.error());
  state->bytes.resize(spec.pieces.size());
  for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
    const std::string& piece = spec.pieces[id];
    const token_kind kind = spec.kinds[id];
    if (kind == token_kind::unused || piece.empty()) continue;
    state->bytes[id] = kind == token_kind::normal ? bytes_of_piece(piece).value_or(piece) : piece;
    state->ids_by_bytes.try_emplace(state->bytes[id], static_cast<token_id>(id));
    if (kind != token_kind::normal) state->specials.add(piece, static_cast<token_id>(id), kind == token_kind::control);
  }
  state->spec = std::move(spec);
  return std::shared_ptr<const tokenizer>(new tokenizer(std::move(state)));
}

result<void> tokenizer::impl::encode_plain(std::string_view text, std::vector<token_id>& out) const {
  if (text.empty()) return {};
  std::string normalized;
  if (spec.normalize_nfc && !is_trivially_nfc(text)) {
    normalized = to_nfc(text);
    text = normalized;
  }
  struct slice {
    std::size_t begin;
    std::size_t end;
  };
  std::unordered_map<std::string_view, slice> seen;  // of this call: word → its ids within `out`
  word_splitter::cursor words(splitter, text);
  while (true) {
    const auto word = words.next();
    if (!word) return tl::unexpected(word.error());
    if (word->empty()) return {};
    const std::size_t begin = out.size();
    if (const auto known = seen.find(*word); known != seen.end()) {
      for (std::size_t i = known->second.begin; i < known->second.end; ++i) out.push_back(token_id{out[i]});
      continue;
    }
    merger.encode(*word, out);
    if (seen.size() < limits::kMaxCachedWords) seen.try_emplace(*word, slice{begin, out.size()});
  }
}

result<std::vector<token_id>> tokenizer::impl::encode_all(const prompt_text& prompt) const {
  const std::string_view text = prompt.text;
  std::vector<token_id> out;
  std::size_t done = 0;
  while (const auto special = specials.find(text, done, prompt.trusted)) {
    if (auto plain = encode_plain(text.substr(done, special->begin - done), out); !plain) {
      return tl::unexpected(plain.error());
    }
    out.push_back(special->id);
    done = special->end;
  }
  if (auto plain = encode_plain(text.substr(done), out); !plain) return tl::unexpected(plain.error());
  return out;
}

result<std::vector<token_id>> tokenizer::encode(const prompt_text& prompt) const {
  if (prompt.text.size() > limits::kMaxEncodeBytes) {
    return fail(error_code::too_large, "The text has " + std::to_string(prompt.text.size()) +
                                           " bytes, more than the tokenizer takes at once; send a shorter one.");
  }
  std::optional<prompt_text> repaired;
  if (!is_valid_utf8(prompt.text)) repaired = with_valid_utf8(prompt);
  const prompt_text& source = repaired ? *repaired : prompt;
  auto out = impl_->encode_all(source);
  if (!out) return out;
  const tokenizer_spec& known = impl_->spec;
  const bool wants_bos = prompt.add_bos && known.add_bos && known.bos != kNoToken;
  if (wants_bos && (out->empty() || out->front() != known.bos)) out->insert(out->begin(), known.bos);
  return out;
}

result<std::vector<token_id>> tokenizer::encode(std::string_view text, bool parse_special, bool add_bos) const {
  prompt_text prompt;
  prompt.text = std::string(text.substr(0, limits::kMaxEncodeBytes + 1));  // one more: refused there
  if (parse_special) prompt.trusted.push_back({0, prompt.text.size()});
  prompt.add_bos = add_bos;
  return encode(prompt);
}

std::string_view tokenizer::token_bytes(token_id id, bool skip_special) const {
  if (id < 0 || id >= size()) return {};
  if (skip_special && is_special(id)) return {};
  return impl_->bytes[static_cast<std::size_t>(id)];
}

std::string tokenizer::decode(std::span<const token_id> ids, bool skip_special) const {
  std::string bytes;
  for (const token_id id : ids) bytes.append(token_bytes(id, skip_special));
  if (is_valid_utf8(bytes)) return bytes;
  prompt_text raw;
  raw.text = std::move(bytes);
  return with_valid_utf8(raw).text;
}

bool tokenizer::is_special(token_id id) const {
  return id >= 0 && id < size() && impl_->spec.kinds[static_cast<std::size_t>(id)] == token_kind::control;
}

token_id tokenizer::find(std::string_view piece) const {
  const auto found = impl_->ids_by_bytes.find(std::string(piece));
  return found == impl_->ids_by_bytes.end() ? kNoToken : found->second;
}

std::int32_t tokenizer::size() const {
  return static_cast<std::int32_t>(impl_->spec.pieces.size());
}
const tokenizer_spec& tokenizer::spec() const {
  return impl_->spec;
}

}  // namespace tandem::text
