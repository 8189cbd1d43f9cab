#pragma once
/// Asks a program's own source on the thread that belongs to it. Owner: the drafter actor.

#include <functional>
#include <memory>

#include "actors/call_thread.hpp"
#include "actors/custom_source.hpp"

namespace tandem {

class custom_caller {
 public:
  using answer = std::function<void(const draft_work&, draft_outcome)>;

  custom_caller(custom_source::options options, std::shared_ptr<call_thread> thread);

  /// `done` is called once: on the thread when the source was asked, or at once where too many calls wait already. Then
  /// nothing new is known and nothing drafted, and the source is told later which slots were opened and closed: nobody
  /// says that again.
  void ask(std::shared_ptr<const draft_work> work, answer done);

 private:
  std::shared_ptr<custom_source> source_;  // shared with the calls under way; used by the thread only
  std::shared_ptr<call_thread> thread_;
  slot_changes missed_;  // of calls that were not made
};

}  // namespace tandem
