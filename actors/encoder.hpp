#pragma once
/// Renders chats and turns prompts into ids, on threads of its own: a long prompt never stops a stream.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "config/limits.hpp"
#include "core/request.hpp"
#include "core/result.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace tandem {

/// Thread-safe. Jobs are taken in order; with one thread they also finish in order.
class encoder {
 public:
  struct options {
    std::shared_ptr<const text::tokenizer> tokenizer;
    std::shared_ptr<const text::chat_template> chat_template;  ///< null: none
    std::size_t threads = 1;  ///< 0: push() encodes at once, in the caller's thread (tests with a simulated schedule)
    std::size_t max_queued = 0;
    std::size_t max_queued_bytes = limits::kMaxQueuedEncodeBytes;  ///< a single prompt may be larger
    std::int32_t max_tokens =
        0;  ///< large texts that cannot have this few are refused before they are encoded; 0: none
  };
  using answer = std::function<void(result<std::vector<token_id>>)>;

  explicit encoder(options opts);
  /// Runs no further job; those still queued are answered with `unavailable`.
  ~encoder();

  /// `done` is called once, on a thread of the encoder. Error: overloaded or unavailable, and `done` is never called.
  result<void> push(std::shared_ptr<const prompt_source> prompt, answer done,
                    std::optional<request_id> who = std::nullopt);
  /// The request's prompt waits no more, its place is free, and `done` is not called. One that is being encoded goes on.
  void withdraw(request_id who);

  /// What push() computes; in the caller's thread. Does not throw.
  result<std::vector<token_id>> encode(const prompt_source& prompt) const;
  /// As text/bad_words.hpp; in the caller's thread.
  result<std::vector<std::vector<token_id>>> encode_bad_words(std::span<const std::string> words) const;

 private:
  struct job {
    std::shared_ptr<const prompt_source> prompt;
    std::size_t bytes = 0;
    answer done;
    std::optional<request_id> who;
  };
  void work();
  result<std::vector<token_id>> encode_text(const prompt_text& prompt) const;
  result<std::vector<token_id>> encode_chat(const chat_prompt& chat) const;

  options options_;
  std::size_t bytes_per_token_ = 1;  // at most, of text before it is normalised
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<job> queue_;
  std::size_t queued_bytes_ = 0;
  bool closing_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace tandem
