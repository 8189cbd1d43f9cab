// GET /v1/batch: what runs, without a word of whose it is.

#include "core/speculation/method_names.hpp"
#include "net/endpoints.hpp"
#include "net/json_text.hpp"

namespace tandem::net {
namespace {

void write_last_step(json_writer& out, const batch_view::step& step) {
  out.begin_object().key("rows").integer(step.rows).key("prompt_tokens").integer(step.prompt_tokens);
  out.key("generated_tokens").integer(step.generated_tokens);
  out.key("step_ms").number(step.step_seconds * 1e3).key("device_ms").number(step.device_seconds * 1e3);
  out.key("undrafted").integer(step.undrafted).key("drafting").integer(step.drafting);
  out.key("sequences").begin_array();
  for (const auto& one : step.sequences) {
    out.begin_object().key("method").string(name_of(one.method)).key("k").integer(one.k);
    out.key("draft_n").integer(one.drafted).key("draft_n_accepted").integer(one.accepted).end_object();
  }
  out.end_array().end_object();
}

void write_methods(json_writer& out, const runtime& engine) {
  out.key("methods").begin_array();
  const auto offered = engine.draft_methods();
  for (std::size_t i = 0; i < offered.size(); ++i) {
    if (offered[i]) out.string(kDraftMethodNames[i]);
  }
  out.end_array().key("max_speculative_tokens").integer(engine.options().max_draft_tokens);
}

std::string batch_json(const runtime& engine) {
  const runtime_status now = engine.status();
  const batch_view batch = engine.batch();
  json_writer out;
  out.begin_object().key("running").integer(now.running).key("waiting").integer(now.waiting);
  out.key("max_num_seqs").integer(engine.options().max_num_seqs);
  out.key("kv_blocks").begin_object().key("used").integer(now.blocks_used).key("total").integer(now.blocks_total);
  out.key("block_size").integer(engine.device().block_size).end_object();
  write_methods(out, engine);
  out.key("totals").begin_object().key("steps").integer(static_cast<std::int64_t>(batch.steps));
  out.key("prompt_tokens").integer(static_cast<std::int64_t>(batch.prompt_tokens));
  out.key("generation_tokens").integer(static_cast<std::int64_t>(batch.generated_tokens)).end_object();
  out.key("last_step");
  if (now.running > 0 && batch.last) {
    write_last_step(out, *batch.last);
  } else {
    out.null();
  }
  out.end_object();
  return out.take();
}

}  // namespace

answered answer_batch(io_lane& lane, http_request&, std::weak_ptr<response_channel> channel) {
  http_response response;
  response.headers.emplace_back("Cache-Control", "no-store");
  response.body = batch_json(*lane.engine);
  if (const auto open = channel.lock()) open->send(std::move(response));
  return nullptr;
}

}  // namespace tandem::net
