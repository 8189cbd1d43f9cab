#pragma once
/// Rules that an output must follow, token by token. Abstract: the core, the actors and the devices know no grammar
/// library; grammar/ implements this with one.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/ids.hpp"
#include "core/request.hpp"
#include "core/result.hpp"
#include "core/stuck_reason.hpp"

namespace tandem {

/// Where one sequence stands. Owner: the sequence's slot on the target's device. Nothing throws.
class grammar_matcher {
 public:
  virtual ~grammar_matcher() = default;

  /// Takes the token when the grammar lets it follow; else nothing changes.
  virtual bool accept(token_id token) = 0;
  /// Takes back the last `count` accepted tokens.
  virtual void rewind(std::int32_t count) = 0;
  /// A bit per token id, ⌈vocabulary / 32⌉ words: which may follow. Not once has_ended().
  virtual void fill_mask(std::span<std::uint32_t> bits) = 0;
  /// What was accepted is a whole output: an end token may follow.
  virtual bool is_complete() const = 0;
  /// An end token was accepted.
  virtual bool has_ended() const = 0;
  /// Why it allows nothing any more although its grammar would (too_slow or broken). Nothing: it works.
  virtual std::optional<stuck_reason> lost() const { return std::nullopt; }
};

/// Compiled for one vocabulary. Immutable, shared by all sequences that follow it.
class grammar {
 public:
  virtual ~grammar() = default;
  virtual std::unique_ptr<grammar_matcher> start() const = 0;
  virtual std::size_t bytes() const = 0;  ///< memory it takes, about
};

/// Makes grammars for the vocabulary of one model. Any thread; may take long.
class grammar_compiler {
 public:
  virtual ~grammar_compiler() = default;
  /// Errors: invalid_argument or too_large, with the reason; `param` is spec.field. What it throws is no fault of the
  /// spec.
  virtual result<std::shared_ptr<const grammar>> compile(const structured_spec& spec) const = 0;
};

}  // namespace tandem
