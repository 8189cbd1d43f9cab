#pragma once
/// The only door between io threads and the runtime. One bridge per io thread.

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "actors/outlet.hpp"
#include "core/ids.hpp"

namespace tandem::net {

/// Who waits for a request's answer and events. Called on the bridge's io thread only.
class event_sink {
 public:
  virtual ~event_sink() = default;
  virtual void on_answer(submission_answer answer) = 0;
  virtual void on_event(generation_event event) = 0;
  /// After all events of one step.
  virtual void on_burst_end() = 0;
};

/// answer(), post() and run() may be called from any thread; each posts one task to the io thread. watch() and forget()
/// belong to the io thread. After close() nothing is posted any more, so the runtime may outlive the io threads.
class bridge final : public outlet, public std::enable_shared_from_this<bridge> {
 public:
  explicit bridge(boost::asio::io_context& context) : context_(&context) {}

  void answer(submission_answer answer) override;
  void post(std::vector<generation_event> events) override;
  void run(std::function<void()> task);
  void close();

  /// A request's events go to `sink` while that lives. Call in the same turn as runtime::submit.
  void watch(request_id id, std::weak_ptr<event_sink> sink);
  void forget(request_id id);
  std::size_t watched() const { return sinks_.size(); }

 private:
  void deliver(std::vector<generation_event> events);

  std::mutex mutex_;  // guards context_ against close() from another thread
  boost::asio::io_context* context_;
  std::unordered_map<request_id, std::weak_ptr<event_sink>> sinks_;
};

}  // namespace tandem::net
