#pragma once
/// From committed tokens to what one client sees of one sequence: whole characters, never a part of a stop string,
/// grouped by the stream interval. Pure; owner: the streamer, one per sequence.

#include <cstdint>
#include <memory>
#include <optional>

#include "actors/outlet.hpp"
#include "core/messages.hpp"
#include "text/detokenizer.hpp"
#include "text/tokenizer.hpp"

namespace tandem {

class event_composer {
 public:
  event_composer(sequence_id id, bool skip_special, std::int32_t stream_interval)
      : id_(id), skip_special_(skip_special), interval_(stream_interval) {}

  /// Takes one step's commit. Gives an event when one is due: for the first tokens, every `stream_interval` tokens, for
  /// prompt log-probabilities, and at the end. Indices must be contiguous and nothing may follow the end.
  std::optional<generation_event> add(const tokens_committed::entry& entry, const text::tokenizer& tokenizer);

  /// Output tokens taken so far.
  std::int32_t tokens() const { return tokens_; }

 private:
  void take_tokens(const tokens_committed::entry& entry);
  void take_text(const tokens_committed::entry& entry, const text::tokenizer& tokenizer);
  bool due() const;

  sequence_id id_;
  bool skip_special_;
  std::int32_t interval_;
  std::int32_t tokens_ = 0;
  bool started_ = false;
  bool ended_ = false;
  text::utf8_assembler assembler_;
  generation_event pending_;
};

}  // namespace tandem
