#pragma once
/// The decisions of intake without the actor: who may come in, which requests are live, who still has to be told an
/// end. Owner: intake. Single-threaded.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/outlet.hpp"
#include "actors/request_rules.hpp"
#include "core/messages.hpp"

namespace tandem {

class admission_desk {
 public:
  struct options {
    request_bounds bounds;
    std::size_t max_live_requests = 0;
    std::size_t max_live_tokens = 0;
    std::uint64_t seed = 0;
  };
  explicit admission_desk(options opts) : options_(std::move(opts)) {}

  /// Takes a request in, to be encoded next. Error: why not (`param` or code say the kind).
  result<void> open(const submit_generation& message);
  /// What to send for an encoded request: one sequence per choice that is made, one stream per choice that is shown.
  struct admission {
    std::vector<open_stream> streams;
    std::vector<admit_sequence> sequences;
  };
  /// What the prompt of a pending() request became, and the ids of its bad words. It counts from now on, also while its
  /// grammar is compiled. Error: the request is refused and forgotten.
  result<void> take_prompt(request_id id, std::vector<token_id> prompt,
                           std::vector<std::vector<token_id>> bad_words = {});
  /// Of a pending() request whose prompt was taken in. `structure`: what its structured_spec became.
  admission admit(request_id id, std::shared_ptr<const grammar> structure = nullptr);
  /// Forgets a request that is still pending; gives back where its refusal goes.
  std::shared_ptr<outlet> refuse(request_id id);

  bool live(request_id id) const { return requests_.contains(id); }
  /// Its prompt is encoded or its grammar compiled.
  bool pending(request_id id) const;
  /// Pending requests whose deadline is not after `now`.
  std::vector<request_id> late(time_point now) const;
  /// Some pending request has a deadline.
  bool has_deadlines() const;
  const generation_request& wanted(request_id id) const { return *requests_.at(id).submission.request; }
  std::shared_ptr<outlet> client(request_id id) const;
  std::vector<request_id> live_requests() const;
  std::size_t size() const { return requests_.size(); }

  /// The scheduler let go of the sequence.
  void retire(sequence_id id);
  /// The sequence's last event was posted. False: it had been already.
  bool end(sequence_id id);
  /// Choices of a request whose last event was not posted yet.
  std::vector<sequence_id> unended(request_id id) const;

  /// Called with the number of requests that were just forgotten, whatever the reason.
  std::function<void(std::size_t)> on_forgotten;

 private:
  struct choice_state {
    bool retired = false;
    bool ended = false;  ///< or never told
  };
  struct live_request {
    submit_generation submission;
    std::size_t tokens = 0;
    std::shared_ptr<const std::vector<token_id>> prompt;  ///< between take_prompt() and admit()
    resolved_request resolved;                            ///< as well
    std::vector<choice_state> choices;                    ///< empty while it is pending
    std::optional<time_point> deadline() const;
    bool pending() const { return choices.empty(); }
  };
  void forget(request_id id);
  void forget_when_done(request_id id);
  result<void> make_room(std::size_t tokens) const;

  options options_;
  std::unordered_map<request_id, live_request> requests_;
  std::size_t live_tokens_ = 0;
  std::uint64_t drawn_seeds_ = 0;
  std::uint64_t arrivals_ = 0;
};

}  // namespace tandem
