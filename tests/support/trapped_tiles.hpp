#pragma once
/// Runs AMX machine code on a machine without AMX: each of its instructions raises SIGILL there, is decoded, carried out
/// by emulated_tiles and stepped over. So the compiled kernels themselves are tested, operands, addresses and all.

namespace tandem::test {

/// While it lives, AMX instructions of any thread are emulated; a machine that has AMX runs them itself. x86-64 Linux
/// only; one at a time.
class trapped_tiles {
 public:
  trapped_tiles();
  ~trapped_tiles();
  trapped_tiles(const trapped_tiles&) = delete;
  trapped_tiles& operator=(const trapped_tiles&) = delete;
  /// Instructions emulated since construction.
  long count() const;
};

}  // namespace tandem::test
