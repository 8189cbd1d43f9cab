#pragma once
/// What is kept of one response: its events while somebody may want them, its object and conversation when it is
/// stored.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "config/edge_limits.hpp"
#include "net/bridge.hpp"
#include "net/responses/input_items.hpp"

namespace tandem::net {

/// Bytes of the events of all responses together. Owner: the store; records keep it alive.
struct event_budget {
  std::atomic<std::size_t> used{0};
  std::size_t most = limits::kMaxAllEventBytes;
};

/// Thread-safe: made on one lane, read on any. Owner: shared by the run, the store and readers.
class response_record : public std::enable_shared_from_this<response_record> {
 public:
  response_record(std::string id, std::vector<input_item> input_items);
  ~response_record();

  const std::string& id() const { return id_; }
  const std::vector<input_item>& input_items() const { return input_items_; }

  /// Its events count in `budget` from now on. Before the first one.
  void count_in(std::shared_ptr<event_budget> budget);

  // --- the run's side -------------------------------------------------------------------------------------------
  /// Events, one JSON object a line: each gets the next sequence number.
  void append(std::string_view lines);
  void set_object(std::string json);
  /// The last events and the end at once: who has read them knows that there are no more. `conversation`: everything
  /// said so far, for the next response.
  void conclude(std::string_view last_events, std::string object_json, std::string conversation);
  std::int64_t next_number() const;

  // --- readers --------------------------------------------------------------------------------------------------
  class reader;
  /// Reads from the event numbered `from` on; `wake` is called on the bridge's lane when there is something new.
  /// Nothing when those events are gone.
  std::unique_ptr<reader> read_from(std::int64_t from, std::shared_ptr<bridge> door, std::function<void()> wake);
  bool has_readers() const;

  bool ended() const;
  std::string object_json() const;
  std::string conversation() const;
  /// Bytes of the events, and of the rest.
  std::size_t event_bytes() const;
  std::size_t kept_bytes() const;
  /// Lets go of the events of a response that ended; those who read get no more.
  void drop_events();

 private:
  struct attached {
    std::shared_ptr<bridge> door;
    std::function<void()> wake;
    std::int64_t next = 0;  // the event it reads next
    bool woken = false;     // and has not looked since
    bool behind = false;    // events it had not read are gone
  };
  void wake_all();
  void keep(std::string_view lines);
  void shed();
  void drop_oldest();
  void add_bytes(std::size_t bytes);
  void detach(const attached* one);

  const std::string id_;
  const std::vector<input_item> input_items_;
  mutable std::mutex mutex_;  // guards all below
  std::deque<std::string> events_;
  std::int64_t first_ = 0;  // number of events_.front()
  std::size_t event_bytes_ = 0;
  std::shared_ptr<event_budget> budget_;  // null: counted nowhere
  bool ended_ = false;
  std::string object_json_;
  std::string conversation_;
  std::vector<std::shared_ptr<attached>> readers_;
};

/// One who follows a response. Owner: a connection; must not outlive the record, which it keeps alive.
class response_record::reader {
 public:
  reader(std::shared_ptr<response_record> record, std::shared_ptr<attached> place)
      : record_(std::move(record)), place_(std::move(place)) {}
  ~reader();
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;

  enum class state { waiting, more, ended, behind };
  /// Adds events to `out` until it holds `max_bytes`, at least one if there is one. `more`: there are others to read
  /// now.
  state read(std::vector<std::string>& out, std::size_t max_bytes);
  std::int64_t next_number() const;

 private:
  std::shared_ptr<response_record> record_;
  std::shared_ptr<attached> place_;
};

/// The `type` of an event.
std::string_view event_type(std::string_view json);

}  // namespace tandem::net
