#pragma once
/// A weight matrix in the layout its kernel streams, and the one GEMM family over it. Packed once at load; immutable
/// and shared by all threads afterwards.
///
/// out[m][n] = Σ_k x[m][k] · w[n][k]. The order of summation of an output element depends on (n, k) only: never on the
/// number of rows m, the tile range, the thread or its neighbours. So a sequence's numbers do not depend on its company
/// (invariant 4), bit for bit, for one instruction set.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "model/model.hpp"

namespace tandem::gpu::host {

/// Instruction sets, each a superset of the one before.
enum class isa : std::uint8_t { portable, avx2, avx512, amx };
std::string_view isa_name(isa set);
/// The best this machine offers (cpuid, and for AMX the kernel's permission).
isa detect_isa();
/// "" = detect; TANDEM_ISA in the environment overrides "". Error: unsupported, naming what the machine lacks.
result<isa> choose_isa(std::string_view name);

/// The form in which a matrix wants its input rows.
enum class activation_kind : std::uint8_t {
  fp32,          ///< as it is
  bf16,          ///< rounded to nearest even
  bf16_columns,  ///< the same, rows interleaved for AMX
  int8,       ///< int8 with one fp32 scale and one int32 sum per 32 values (round half to even, scale = max|x| / 127)
  int8_pair,  ///< the same, and a second term of what rounding left, where a block stands out of its row
};

struct kernel_table;
struct panel_sums;
struct row_ops;

/// M rows of K inputs, converted once and used by several matrices (e.g. query, key and value). Owner: the step's
/// arena.
class activations {
 public:
  activations(activation_kind kind, std::int32_t max_rows, std::int32_t columns);
  ~activations();
  activations(activations&&) noexcept;

  /// How many rows come before they are multiplied, at most max_rows: fewer than 16 lie closer together where the kind
  /// interleaves rows, and no row may be read before all are converted. What was converted before is lost.
  void expect(std::int32_t rows);

  /// Converts rows [begin, end) of `input` (row-major, `columns` wide). Different rows may be converted by different
  /// threads. Values of a row depend on that row only. NaN and infinity stay confined to their row.
  void convert(isa set, const float* input, std::int32_t begin, std::int32_t end);
  /// Instead of convert(): columns [32 · panel, 32 · panel + 32) of rows [row, row + rows), `row` the first of a group,
  /// from sums of gates and ups. bf16_columns only.
  void take_gated(const row_ops& ops, const panel_sums& gate, const panel_sums& up, std::int32_t row, std::int32_t rows,
                  std::int32_t panel);
  activation_kind kind() const;
  std::int32_t columns() const;

  struct impl;
  const impl& data() const { return *impl_; }

 private:
  void convert_to_columns(const kernel_table& kernels, const float* from, std::int32_t row);

  std::unique_ptr<impl> impl_;
};

/// How to turn a file's kind into a packed one.
enum class packing : std::uint8_t {
  native,  ///< block-quantised kinds stay quantised (int8 activations; bf16 with AMX), f16/bf16 → bf16, f32 → fp32
  native_precise,  ///< the same weights with int8_pair activations
  int8,          ///< as native, but f32/f16/bf16 → 8 bits with a scale per 32 inputs, where those divide the columns
  int8_precise,  ///< the same weights with int8_pair activations
  bf16,          ///< everything → bf16 weights and activations
  fp32,          ///< everything dequantised to fp32
};

class packed_matrix {
 public:
  /// Calls body(begin, end) over [0, count) on whatever threads the caller has.
  using parallel_for = std::function<void(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>&)>;

  /// `weights` are stacked row-wise (query, key, value → one matrix); all share `columns`. With mixed kinds each part
  /// keeps its own. Errors: unsupported, io (memory).
  static result<packed_matrix> pack(std::span<const model::tensor* const> weights, packing how, isa set,
                                    const parallel_for& parallel);
  packed_matrix();
  ~packed_matrix();
  packed_matrix(packed_matrix&&) noexcept;
  packed_matrix& operator=(packed_matrix&&) noexcept;

  std::int64_t rows() const;     ///< outputs
  std::int64_t columns() const;  ///< inputs
  std::size_t bytes() const;
  /// What `activations` multiply() takes. One kind for the whole matrix (mixed parts: those that need another kind are
  /// repacked to the matrix's).
  activation_kind wants() const;
  /// Work is split into tiles of consecutive outputs; a tile is the unit a thread claims.
  std::int32_t tiles() const;

  /// Outputs of tiles [tile_begin, tile_end) for the first `m` rows of x: out[row * out_stride + output].
  /// Writes only its own tiles' outputs. m ≥ 1.
  void multiply(const activations& x, std::int32_t m, std::int32_t tile_begin, std::int32_t tile_end, float* out,
                std::int64_t out_stride) const;

  /// Whether the matrix, gates first and as many ups behind them, can do multiply_gated(): it is made of panels.
  bool can_gate() const;
  /// silu(gate) · up for all `m` rows that `x` expects, straight into the form the next matrix reads: `out` has
  /// rows() / 2 columns in bf16_columns and expects `m` rows, too. The bits are those of multiply(), gate and
  /// convert(). Panels [panel_begin, panel_end) of tiles() / 2, 32 columns each, are the unit a thread claims.
  void multiply_gated(const activations& x, std::int32_t m, std::int32_t panel_begin, std::int32_t panel_end,
                      const row_ops& ops, activations& out) const;

  /// Dequantised row of the packed form (what multiply works with; with AMX before it is rounded to bf16), for
  /// embedding look-ups and tests.
  void row(std::int64_t index, float* out) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace tandem::gpu::host
