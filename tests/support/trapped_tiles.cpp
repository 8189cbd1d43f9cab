#include "tests/support/trapped_tiles.hpp"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <ucontext.h>

#include "tests/support/emulated_tiles.hpp"

namespace tandem::test {
namespace {

struct sigaction former;
volatile std::sig_atomic_t emulated_count = 0;

/// The fields of a three-byte-VEX instruction of map 0F38 (SDM volume 2, section 2.3).
struct vex_instruction {
  int prefix;  ///< 0 none, 1: 66, 2: F3, 3: F2
  int opcode;
  int other;  ///< the register in vvvv
  int mode, reg, rm;
  bool base_extended, index_extended;
  const std::uint8_t* after_modrm;
};

bool decode(const std::uint8_t* at, vex_instruction& out) {
  if (at[0] != 0xC4 || (at[1] & 0x1F) != 2 || (at[2] & 0x84) != 0) return false;
  out.index_extended = (at[1] & 0x40) == 0;
  out.base_extended = (at[1] & 0x20) == 0;
  out.prefix = at[2] & 3;
  out.other = ~(at[2] >> 3) & 15;
  out.opcode = at[3];
  out.mode = at[4] >> 6;
  out.reg = at[4] >> 3 & 7;
  out.rm = at[4] & 7;
  out.after_modrm = at + 5;
  return true;
}

/// General registers by their number in an instruction.
std::int64_t register_value(const ucontext_t& context, int number) {
  constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return context.uc_mcontext.gregs[kOrder[number]];
}

struct memory_operand {
  std::byte* base = nullptr;
  std::size_t stride = 0;
  const std::uint8_t* end = nullptr;  ///< of the instruction
};

std::int32_t displacement(int mode, const std::uint8_t*& at) {
  if (mode == 1) return static_cast<std::int8_t>(*at++);
  std::int32_t value = 0;
  if (mode == 0) return value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

memory_operand memory_of(const ucontext_t& context, const vex_instruction& in) {
  memory_operand out;
  const std::uint8_t* at = in.after_modrm;
  std::int64_t address = 0;
  if (in.rm == 4) {
    const int sib = *at++;
    const int base = (sib & 7) | (in.base_extended ? 8 : 0);
    const int index = (sib >> 3 & 7) | (in.index_extended ? 8 : 0);
    address = in.mode == 0 && (sib & 7) == 5 ? displacement(2, at)
                                             : register_value(context, base) + displacement(in.mode, at);
    out.stride = index == 4 ? 0 : static_cast<std::size_t>(register_value(context, index)) << (sib >> 6);
  } else if (in.mode == 0 && in.rm == 5) {
    const std::int32_t from_end = displacement(2, at);
    address = reinterpret_cast<std::int64_t>(at) + from_end;
  } else {
    address = register_value(context, in.rm | (in.base_extended ? 8 : 0)) + displacement(in.mode, at);
  }
  out.base = reinterpret_cast<std::byte*>(address);
  out.end = at;
  return out;
}

constexpr int kRegisters = 3;  // mode of ModRM without memory

/// Opcode 49: shapes, release, zero.
const std::uint8_t* set_up(const ucontext_t& context, const vex_instruction& in) {
  if (in.mode == kRegisters) {
    if (in.prefix == 0) emulated::release();
    if (in.prefix == 3) emulated::zero(in.reg);
    return in.after_modrm;
  }
  const memory_operand memory = memory_of(context, in);
  gpu::host::tile_shapes shapes;
  std::memcpy(&shapes, memory.base + memory.stride, sizeof shapes);
  emulated::load_shapes(shapes);
  return memory.end;
}

/// Opcode 4B: load (F2), store (F3).
const std::uint8_t* move(const ucontext_t& context, const vex_instruction& in) {
  const memory_operand memory = memory_of(context, in);
  if (in.prefix == 3) emulated::load(in.reg, memory.base, memory.stride);
  if (in.prefix == 2) emulated::store(in.reg, memory.base, memory.stride);
  return memory.end;
}

/// The instruction's end; null when it is not one of AMX.
const std::uint8_t* emulate(const ucontext_t& context, const std::uint8_t* at) {
  vex_instruction in{};
  if (!decode(at, in)) return nullptr;
  switch (in.opcode) {
    case 0x49:
      return set_up(context, in);
    case 0x4B:
      return move(context, in);
    case 0x5E:  // F2: signed by signed
      if (in.prefix != 3) return nullptr;
      emulated::dot_int8(in.reg, in.rm, in.other);
      return in.after_modrm;
    case 0x5C:  // F3: bf16
      if (in.prefix != 2) return nullptr;
      emulated::dot_bf16(in.reg, in.rm, in.other);
      return in.after_modrm;
    default:
      return nullptr;
  }
}

void on_illegal_instruction(int, siginfo_t*, void* raw) {
  auto& context = *static_cast<ucontext_t*>(raw);
  const auto* at = reinterpret_cast<const std::uint8_t*>(context.uc_mcontext.gregs[REG_RIP]);
  const std::uint8_t* end = nullptr;
  try {
    end = emulate(context, at);
  } catch (const std::exception& broken) {
    std::fputs(broken.what(), stderr);
  }
  if (end == nullptr) std::abort();  // a real illegal instruction, or one that AMX refuses
  emulated_count = emulated_count + 1;
  context.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<std::int64_t>(end);
}

}  // namespace

trapped_tiles::trapped_tiles() {
  emulated_count = 0;
  struct sigaction action = {};
  action.sa_sigaction = on_illegal_instruction;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGILL, &action, &former);
}

trapped_tiles::~trapped_tiles() {
  ::sigaction(SIGILL, &former, nullptr);
}

long trapped_tiles::count() const {
  return emulated_count;
}

}  // namespace tandem::test
