#pragma once
/// A runtime without actors: answers come from a script, on a thread of its own, as a real one's would.

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "actors/runtime.hpp"

namespace tandem::net::test {

/// A byte-level tokenizer without merges: id = byte; 256 is the end token, 257 a second special one.
std::shared_ptr<const text::tokenizer> byte_tokenizer();

/// One event of the script, for every choice.
struct scripted_piece {
  std::string text;
  bool ends = false;
  finish_reason reason = finish_reason::stop;
  std::string drafted{};  ///< '1' for each byte that was an accepted draft; empty: none
};

class fake_runtime final : public runtime {
 public:
  fake_runtime();
  ~fake_runtime() override;

  // --- the script; set before requests come -----------------------------------------------------------------------
  std::vector<scripted_piece> script{{"Hello", false}, {", world", false}, {"!", true}};
  bool hold = false;  ///< accepts and then says nothing until release() or cancel()
  std::vector<scripted_piece> on_cancel{{"", true, finish_reason::cancelled}};  ///< a held request's last pieces
  bool hold_answers = false;    ///< does not even accept; cancel() then refuses
  std::optional<error> refuse;  ///< every submission
  std::string failure_message;  ///< of pieces that end in an error
  runtime_status state;
  runtime_options chosen;
  batch_view seen;
  bool chat_template = true;
  std::string template_source;

  /// Changes the above while requests run.
  void change(const std::function<void()>& edit) {
    std::lock_guard lock(mutex_);
    edit();
  }
  /// Sends the rest of the script of every held request.
  void release();

  // --- what was seen ----------------------------------------------------------------------------------------------
  std::vector<generation_request> submitted() const;
  std::set<std::uint64_t> cancelled() const;
  /// Waits until `count` requests were cancelled (or submitted); false when that takes over ten seconds.
  bool wait_for_cancelled(std::size_t count) const;
  bool wait_for_submitted(std::size_t count) const;
  int websockets() const;
  int rejected() const;

  // --- runtime ----------------------------------------------------------------------------------------------------
  request_id submit(generation_request request, std::shared_ptr<outlet> client) override;
  void cancel(request_id id) override;
  void encode(prompt_source prompt, std::function<void(result<std::vector<token_id>>)> answer) override;
  runtime_status status() const override;
  std::string metrics_text() const override { return "# TYPE tandem:num_requests_running gauge\n"; }
  batch_view batch() const override { return seen; }
  void count_rejected(const std::string& reason) override;
  void count_websocket(int delta) override;
  const runtime_options& options() const override { return chosen; }
  const text::tokenizer& tokenizer() const override { return *tokenizer_; }
  std::array<bool, kDraftMethods> draft_methods() const override {
    std::array<bool, kDraftMethods> methods{true, chosen.ngram_drafter};
    methods[index_of(draft_method::draft_model)] = device_.draft_context_limit > 0;
    return methods;
  }
  bool has_chat_template() const override { return chat_template; }
  std::string_view chat_template_source() const override { return template_source; }
  const gpu::device_info& device() const override { return device_; }
  void drain(std::chrono::milliseconds) override {}
  void kill_for_test(const std::string&) override {}

 private:
  struct live {
    std::int32_t n = 1;
    std::size_t prompt_tokens = 0;
    std::shared_ptr<outlet> client;
    generation_request request;
  };
  void run();
  void enqueue(std::function<void()> task);
  void play_script(request_id id, const live& entry);
  void play(request_id id, const live& entry, const std::vector<scripted_piece>& pieces);
  generation_event event_of(request_id id, const live& entry, std::int32_t choice, const scripted_piece& piece,
                            std::int32_t so_far) const;
  std::vector<token_id> tokens_of(const prompt_source& prompt) const;
  bool wait_for(const std::function<bool()>& reached) const;

  std::shared_ptr<const text::tokenizer> tokenizer_ = byte_tokenizer();
  gpu::device_info device_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::map<std::uint64_t, live> held_;
  std::map<std::uint64_t, std::shared_ptr<outlet>> unanswered_;
  std::vector<generation_request> submitted_;
  std::set<std::uint64_t> cancelled_;
  std::uint64_t last_id_ = 0;
  int websockets_ = 0;
  int rejected_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tandem::net::test
