#pragma once
/// A response being made: its generation, its record, and who hears of it.

#include <memory>
#include <string>

#include "net/generation.hpp"
#include "net/responses/response_draft.hpp"
#include "net/responses/response_record.hpp"
#include "net/responses/response_request.hpp"

namespace tandem::net {

class response_run;

/// The connection that asked. Called on its lane.
class response_listener {
 public:
  virtual ~response_listener() = default;
  /// The prompt was accepted and the record has its first events; streams only.
  virtual void on_begun(response_run& run) = 0;
  /// A stream ended. Events may still be appended to the record in this turn.
  virtual void on_ended(response_run& run) = 0;
  /// Instead of both: a refusal, or the whole answer.
  virtual void on_whole(response_run& run, http_response response) = 0;
};

/// Lives on its lane, which owns it while it runs, because it may outlive the socket that asked.
class response_run final : public generation_listener, public std::enable_shared_from_this<response_run> {
 public:
  /// `conversation`: what was said before, as chat messages.
  response_run(io_lane& lane, std::shared_ptr<const response_request> request, std::string conversation,
               std::string id);
  ~response_run() override;

  /// The listener must live until its last call or until let_go() or cancel(). False when the id is taken.
  bool start(response_listener& listener);
  const std::shared_ptr<response_record>& record() const { return record_; }
  const response_request& request() const { return *request_; }
  const response_draft& draft() const { return *draft_; }

  /// The engine ends it with what it has; the listener still hears the last words.
  void end() { work_->end(); }
  void end_for_steering();
  /// Nobody wants it: it is cancelled, and concluded if it had begun.
  void cancel();
  /// The listener is gone; the client may come back for a while.
  void let_go();
  /// The listener has heard enough: it goes on for whoever asks for it, and counts as its key's until it ends. From
  /// on_begun() on.
  void go_on(key_lease lease);

 private:
  void on_begin(std::string events) override;
  void on_bytes(std::string events) override { record_->append(events); }
  void on_finish(std::string events) override;
  void on_broken(std::string events) override { on_finish(std::move(events)); }
  void on_whole(http_response response) override;
  void prepare_only(response_listener& listener);
  void conclude(std::string_view last_events);
  void abandon_record();
  void leave();
  void watch_readers();

  io_lane& lane_;
  std::shared_ptr<const response_request> request_;
  std::string said_;  // the conversation with this request's input
  std::shared_ptr<response_draft> draft_;
  std::shared_ptr<response_record> record_;
  std::shared_ptr<generation> work_;
  response_listener* listener_ = nullptr;
  key_lease lease_;  // in the background, until it ends
  bool begun_ = false;
  bool done_ = false;
};

}  // namespace tandem::net
