#include "actors/encoder.hpp"

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>
#include <variant>

#include "core/assert.hpp"

namespace tandem {
namespace {

text::chat_template::names names_of(const text::tokenizer& tokenizer) {
  const auto& spec = tokenizer.spec();
  const auto piece = [&](token_id id) {
    return id == kNoToken ? std::string{} : std::string{tokenizer.token_bytes(id, false)};
  };
  return {.bos_token = piece(spec.bos), .eos_token = piece(spec.eos)};
}

/// One alternative of prompt_source per overload.
struct encode_visitor {
  const text::tokenizer& tokenizer;
  const text::chat_template* chat_template;

  result<std::vector<token_id>> operator()(const std::vector<token_id>& ids) const { return ids; }
  result<std::vector<token_id>> operator()(const prompt_text& prompt) const { return tokenizer.encode(prompt); }
  result<std::vector<token_id>> operator()(const chat_prompt& chat) const {
    if (!chat_template)
      return fail(error_code::invalid_argument,
                  "This model has no chat template; send a plain prompt or start the server with --chat-template.",
                  "messages");
    auto rendered = chat_template->render(chat, names_of(tokenizer));
    if (!rendered) return tl::unexpected(rendered.error());
    return tokenizer.encode(*rendered);
  }
};

}  // namespace

encoder::encoder(options opts) : options_(std::move(opts)) {
  TANDEM_ASSERT(options_.tokenizer);
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

result<void> encoder::push(std::shared_ptr<const prompt_source> prompt, answer done) {
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
    queue_.push_back({std::move(prompt), std::move(done)});
  }
  changed_.notify_one();
  return {};
}

result<std::vector<token_id>> encoder::encode(const prompt_source& prompt) const {
  try {
    return std::visit(encode_visitor{*options_.tokenizer, options_.chat_template.get()}, prompt);
  } catch (const std::exception& problem) {
    return fail(error_code::device_failed,
                fmt::format("The prompt could not be encoded ({}); send it again.", problem.what()), "prompt");
  }
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
    }
    next.done(encode(*next.prompt));
  }
}

}  // namespace tandem
