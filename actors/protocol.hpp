#pragma once
/// Who may send what to whom: the typed interface of every actor, hot messages first (dispatch is a linear scan). The
/// messages themselves are core/messages.hpp; here are only those that carry actor handles. All messages are local: big
/// payloads travel as shared_ptr<const T>, nothing is serialised. This is the one header that declares types to CAF.

#include <caf/all.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/messages.hpp"

namespace tandem {

/// streamer → metrics. What one step delivered: one message per step.
struct stream_measured {
  std::vector<sequence_measured> sequences;
  std::vector<burst_measured> bursts;
};
/// streamer → intake. The terminal event of these sequences was posted: one message per step.
struct streams_ended {
  std::vector<sequence_id> ids;
};
/// runtime → intake. No new work from now on; what runs goes on.
struct begin_drain {};
/// runtime → intake. Every live request is to end as cancelled.
struct cancel_everything {};
/// supervisor or runtime → intake. The engine cannot go on: every live request ends with this error, new ones are
/// refused. `quit`: the actor ends afterwards.
struct fail_everything {
  std::string message;
  bool quit = false;
};
/// intake (or supervisor, when intake died) → streamer. Every open sequence ends with this error; what is committed for
/// it afterwards is ignored. While a streamer lives, nobody else posts last events. `quit`: the actor ends afterwards.
struct fail_streams {
  std::string message;
  bool quit = false;
};
/// scheduler and intake → themselves, every limits::kTick while there is something to watch.
struct tick {};
/// runtime → supervisor, for tests of supervision: kill the actor of that name as a fault would.
struct kill_actor {
  std::string name;
};

/// runtime → supervisor. End every actor, intake last told: what is still live there ends with an error.
struct stop_everything {};

using metrics_actor = caf::typed_actor<caf::reacts_to<step_measured>, caf::reacts_to<stream_measured>>;
using verifier_actor = caf::typed_actor<caf::reacts_to<run_step>>;
using drafter_actor = caf::typed_actor<caf::reacts_to<propose>, caf::reacts_to<outputs_closed>>;
using kv_allocator_actor =
    caf::typed_actor<caf::reacts_to<publish_blocks>, caf::reacts_to<share_blocks>, caf::reacts_to<release_blocks>,
                     caf::reacts_to<lease_blocks>, caf::reacts_to<match_prefix>, caf::reacts_to<adopt_blocks>>;
using streamer_actor =
    caf::typed_actor<caf::reacts_to<tokens_committed>, caf::reacts_to<open_stream>, caf::reacts_to<fail_streams>>;

/// supervisor → scheduler and intake. Where events go from now on. A second one means the first streamer died.
struct connect_streamer {
  streamer_actor streamer;
};

using intake_actor =
    caf::typed_actor<caf::reacts_to<submit_generation>, caf::reacts_to<prompt_encoded>, caf::reacts_to<grammar_compiled>, caf::reacts_to<request_retired>,
                     caf::reacts_to<streams_ended>, caf::reacts_to<cancel_generation>, caf::reacts_to<begin_drain>,
                     caf::reacts_to<tick>, caf::reacts_to<cancel_everything>, caf::reacts_to<connect_streamer>,
                     caf::reacts_to<fail_everything>>;

/// supervisor → scheduler. A drafter is there (again).
struct connect_drafter {
  draft_method method = draft_method::none;
  drafter_actor drafter;
};
/// supervisor → scheduler. The allocator to use. `restarted`: its predecessor died and its index is empty.
struct connect_allocator {
  kv_allocator_actor allocator;
  std::uint32_t pool_gen = 0;
  bool restarted = false;
};
/// pipeline → scheduler, once, before any work: the peers that are never replaced.
struct connect_peers {
  verifier_actor verifier;
  intake_actor intake;
  metrics_actor metrics;
};

using scheduler_actor =
    caf::typed_actor<caf::reacts_to<step_finished>, caf::reacts_to<draft_finished>, caf::reacts_to<prefix_matched>,
                     caf::reacts_to<blocks_leased>, caf::reacts_to<admit_sequence>, caf::reacts_to<cancel_generation>,
                     caf::reacts_to<tick>, caf::reacts_to<drafter_changed>, caf::reacts_to<connect_drafter>,
                     caf::reacts_to<connect_allocator>, caf::reacts_to<connect_streamer>,
                     caf::reacts_to<connect_peers>>;

using supervisor_actor = caf::typed_actor<caf::reacts_to<kill_actor>, caf::reacts_to<stop_everything>>;

}  // namespace tandem

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::submit_generation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::prompt_encoded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::grammar_compiled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::cancel_generation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::admit_sequence)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::match_prefix)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::prefix_matched)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::lease_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::blocks_leased)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::publish_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::share_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::release_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::propose)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::outputs_closed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::run_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::step_finished)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::draft_finished)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::drafter_changed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::adopt_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::tokens_committed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::open_stream)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::request_retired)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::step_measured)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::stream_measured)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::streams_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::begin_drain)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::cancel_everything)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::fail_everything)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::fail_streams)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::kill_actor)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::connect_streamer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::connect_drafter)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::connect_allocator)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::connect_peers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(tandem::stop_everything)
