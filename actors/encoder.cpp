#include "actors/encoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <variant>

#include "core/assert.hpp"
#include "text/bad_words.hpp"

namespace tandem {
namespace {

text::chat_template::names names_of(const text::tokenizer& tokenizer) {
  const auto& spec = tokenizer.spec();
  const auto piece = [&](token_id id) {
    return id == kNoToken ? std::string{} : std::string{tokenizer.token_bytes(id, false)};
  };
  return {.bos_token = piece(spec.bos), .eos_token = piece(spec.eos)};
}

std::size_t bytes_of(const prompt_source& prompt) {
  if (const auto* ids = std::get_if<std::vector<token_id>>(&prompt)) return ids->size() * sizeof(token_id);
  if (const auto* text = std::get_if<prompt_text>(&prompt)) return text->text.size();
  const auto& chat = std::get<chat_prompt>(prompt);
  return chat.messages_json.size() + chat.tools_json.size() + chat.kwargs_json.size();
}

/// Composed characters are at most this many times shorter than their parts (a Hangul syllable: 9 bytes become 3).
constexpr std::size_t kMostComposed = 4;

std::size_t longest_token(const text::tokenizer& tokenizer) {
  std::size_t longest = 1;
  for (token_id id = 0; id < tokenizer.size(); ++id)
    longest = std::max(longest, tokenizer.token_bytes(id, false).size());
  return longest * (tokenizer.spec().normalize_nfc ? kMostComposed : 1);
}

}  // namespace

encoder::encoder(options opts) : options_(std::move(opts)) {
  TANDEM_ASSERT(options_.tokenizer);
  bytes_per_token_ = longest_token(*options_.tokenizer);
  for (std::size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
}

encoder::~encoder() {
  std::deque<job> dropped;
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    dropped.swap(queue_);
  }
  changed_.notify_all();
  threads_.clear();
  for (auto& left : dropped) left.done(fail(error_code::unavailable, "The server is shutting down; try again later."));
}

result<void> encoder::push(std::shared_ptr<const prompt_source> prompt, answer done, std::optional<request_id> who) {
  const std::size_t bytes = bytes_of(*prompt);
  if (options_.threads == 0) {
    done(encode(*prompt));
    return {};
  }
  {
    std::lock_guard lock(mutex_);
    if (closing_) return fail(error_code::unavailable, "The server is shutting down; try again later.");
    if (queue_.size() >= options_.max_queued)
      return fail(error_code::overloaded,
                  fmt::format("{} prompts wait to be encoded; try again later.", queue_.size()));
    if (queued_bytes_ > 0 && queued_bytes_ + bytes > options_.max_queued_bytes)
      return fail(error_code::overloaded,
                  fmt::format("{} bytes of prompts wait to be encoded; try again later.", queued_bytes_));
    queue_.push_back({std::move(prompt), bytes, std::move(done), who});
    queued_bytes_ += bytes;
  }
  changed_.notify_one();
  return {};
}

void encoder::withdraw(request_id who) {
  const std::lock_guard lock(mutex_);
  std::erase_if(queue_, [&](const job& each) {
    if (each.who != who) return false;
    queued_bytes_ -= each.bytes;
    return true;
  });
}

/// One text of many megabytes would keep everybody else's prompts waiting, only to be refused for its length.
result<std::vector<token_id>> encoder::encode_text(const prompt_text& prompt) const {
  const std::size_t fewest = prompt.text.size() / bytes_per_token_;
  const bool large = options_.max_tokens > 0 && prompt.text.size() > limits::kSmallTextBytes;
  if (large && fewest > static_cast<std::size_t>(options_.max_tokens))
    return fail(error_code::invalid_argument,
                fmt::format("The prompt has {} bytes, which are at least {} tokens, but the model takes at most {} "
                            "tokens (--max-model-len); shorten it.",
                            prompt.text.size(), fewest, options_.max_tokens),
                "prompt");
  return options_.tokenizer->encode(prompt);
}

result<std::vector<token_id>> encoder::encode_chat(const chat_prompt& chat) const {
  if (!options_.chat_template)
    return fail(error_code::invalid_argument,
                "This model has no chat template; send a plain prompt or start the server with --chat-template.",
                "messages");
  const auto rendered = options_.chat_template->render(chat, names_of(*options_.tokenizer));
  if (!rendered) return tl::unexpected(rendered.error());
  return encode_text(*rendered);
}

result<std::vector<token_id>> encoder::encode(const prompt_source& prompt) const {
  try {
    if (const auto* text = std::get_if<prompt_text>(&prompt)) return encode_text(*text);
    if (const auto* chat = std::get_if<chat_prompt>(&prompt)) return encode_chat(*chat);
    return std::get<std::vector<token_id>>(prompt);
  } catch (const std::exception& problem) {
    return fail(error_code::device_failed,
                fmt::format("The prompt could not be encoded ({}); send it again.", problem.what()), "prompt");
  }
}

result<std::vector<std::vector<token_id>>> encoder::encode_bad_words(std::span<const std::string> words) const {
  return text::encode_bad_words(*options_.tokenizer, words);
}

void encoder::work() {
  for (;;) {
    job next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (closing_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
      queued_bytes_ -= next.bytes;
    }
    next.done(encode(*next.prompt));
  }
}

}  // namespace tandem
