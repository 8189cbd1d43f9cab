#pragma once
/// How a step's row budget is divided. Pure arithmetic over a list of wishes; no sequences, no blocks.
///
/// Order: one row for each decoding sequence; a minimum share for prefill; drafts; the rest to prefill.

#include <cstdint>
#include <vector>

namespace tandem {

/// A running sequence's wish for the next step, in order of service (oldest first).
struct row_wish {
  std::int32_t pending = 1;  ///< known tokens without KV; 1 and `decoding` = one row yields the next token
  bool decoding = false;
  std::int32_t drafts = 0;      ///< k the policy asks for, already cut to what the sequence can use
  std::uint64_t last_step = 0;  ///< when it last had rows: the least recent goes first when rows are short
};

struct row_grant {
  std::int32_t rows = 0;  ///< of known tokens; 0 = not in this step
  std::int32_t drafts = 0;
};

struct row_budget {
  std::int32_t rows = 0;        ///< max_num_batched_tokens
  bool chunked_prefill = true;  ///< false: a prompt that fits a step is computed in one
};

/// Grants in the order of wishes. Σ rows + drafts ≤ budget.rows. At least one wish is granted when any exists.
std::vector<row_grant> divide_rows(const std::vector<row_wish>& wishes, row_budget budget);

}  // namespace tandem
