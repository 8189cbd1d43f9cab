#pragma once
/// The files of net/page/, embedded at build time (cmake/embed_files.cmake writes the definition).

#include <span>
#include <string_view>

namespace tandem::net {

struct page_file {
  std::string_view name;  ///< within net/page/
  std::string_view bytes;
  std::string_view etag;  ///< with its quotation marks; changes with the bytes
};

std::span<const page_file> page_files();

}  // namespace tandem::net
