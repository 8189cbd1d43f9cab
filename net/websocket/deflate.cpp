#include "net/websocket/deflate.hpp"

#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <array>

#include "config/edge_limits.hpp"
#include "core/assert.hpp"

namespace tandem::net {
namespace {

// A sync flush ends with these four bytes; RFC 7692, 7.2.1 leaves them out.
constexpr std::string_view kTail("\x00\x00\xFF\xFF", 4);
constexpr int kFastest = 1;
constexpr int kMemoryLevel = 8;

const Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

}  // namespace

struct message_inflater::state {
  z_stream stream{};
};

message_inflater::message_inflater() : state_(std::make_unique<state>()) {
  TANDEM_ASSERT(inflateInit2(&state_->stream, -15) == Z_OK);  // negative: without zlib's header
}
message_inflater::~message_inflater() {
  inflateEnd(&state_->stream);
}

message_inflater::outcome message_inflater::feed(std::string_view bytes, std::string& out, std::size_t max_bytes) {
  z_stream& stream = state_->stream;
  stream.next_in = bytes_of(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::array<char, limits::kInflateChunkBytes> chunk;
  while (true) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    const int code = inflate(&stream, Z_SYNC_FLUSH);
    const std::size_t made = chunk.size() - stream.avail_out;
    if (made > max_bytes - std::min(max_bytes, out.size())) return outcome::too_large;
    out.append(chunk.data(), made);
    if (code == Z_STREAM_END) {  // a final block need not be the message's last
      if (stream.avail_in == 0) return outcome::ok;
      if (inflateReset(&stream) != Z_OK) return outcome::corrupt;
      continue;
    }
    if (code != Z_OK && code != Z_BUF_ERROR) return outcome::corrupt;
    if (stream.avail_out > 0) return outcome::ok;  // all input is used up
  }
}

message_inflater::outcome message_inflater::finish(std::string& out, std::size_t max_bytes) {
  return feed(kTail, out, max_bytes);
}

struct message_deflater::state {
  // By window size, made when a client asks for it; nearly all take the largest.
  std::array<std::unique_ptr<z_stream>, 16> streams;
};

message_deflater::message_deflater() : state_(std::make_unique<state>()) {}
message_deflater::~message_deflater() {
  for (const auto& stream : state_->streams) {
    if (stream) deflateEnd(stream.get());
  }
}

std::string message_deflater::deflate(std::string_view message, int window_bits) {
  TANDEM_ASSERT(window_bits >= 9 && window_bits <= 15);
  auto& stream = state_->streams[static_cast<std::size_t>(window_bits)];
  if (!stream) {
    stream = std::make_unique<z_stream>();
    TANDEM_ASSERT(deflateInit2(stream.get(), kFastest, Z_DEFLATED, -window_bits, kMemoryLevel, Z_DEFAULT_STRATEGY) ==
                  Z_OK);
  }
  std::string out(deflateBound(stream.get(), message.size()) + 16, '\0');
  stream->next_in = bytes_of(message);
  stream->avail_in = static_cast<uInt>(message.size());
  stream->next_out = reinterpret_cast<Bytef*>(out.data());
  stream->avail_out = static_cast<uInt>(out.size());
  TANDEM_ASSERT(::deflate(stream.get(), Z_SYNC_FLUSH) == Z_OK && stream->avail_in == 0 && stream->avail_out > 0);
  out.resize(out.size() - stream->avail_out);
  TANDEM_ASSERT(out.ends_with(kTail) && deflateReset(stream.get()) == Z_OK);
  out.resize(out.size() - kTail.size());
  return out;
}

}  // namespace tandem::net
