#pragma once
/// Renders chats and turns prompts into ids, on threads of its own: a long prompt never stops a stream.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

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
  };
  using answer = std::function<void(result<std::vector<token_id>>)>;

  explicit encoder(options opts);
  /// Runs no further job; those still queued are answered with `unavailable`.
  ~encoder();

  /// `done` is called once, on a thread of the encoder. Error: overloaded, and `done` is never called.
  result<void> push(std::shared_ptr<const prompt_source> prompt, answer done);

  /// What push() computes; in the caller's thread. Does not throw.
  result<std::vector<token_id>> encode(const prompt_source& prompt) const;

 private:
  struct job {
    std::shared_ptr<const prompt_source> prompt;
    answer done;
  };
  void work();

  options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<job> queue_;
  bool closing_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace tandem
