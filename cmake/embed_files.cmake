# cmake -DFOLDER=… -DFILES="a;b" -DVERSION=… -DOUTPUT=… -P embed_files.cmake
# Writes a C++ file that defines tandem::net::page_files(): every file's bytes, and a tag that changes with them.
# @TANDEM_VERSION@ inside a file becomes VERSION.
string(HEX "@TANDEM_VERSION@" placeholder)
string(HEX "${VERSION}" version)
set(arrays "")
set(table "")
set(count 0)
foreach(name IN LISTS FILES)
  file(READ "${FOLDER}/${name}" hex HEX)
  string(REPLACE "${placeholder}" "${version}" hex "${hex}")
  string(SHA256 digest "${hex}")
  string(SUBSTRING "${digest}" 0 32 digest)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char kFile${count}[] = {${bytes}};\n")
  string(APPEND table "    {\"${name}\", {kFile${count}, sizeof kFile${count}}, \"\\\"${digest}\\\"\"},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE "${OUTPUT}" "// Written by cmake/embed_files.cmake from ${count} files.
#include \"net/page_files.hpp\"

namespace tandem::net {
namespace {

${arrays}
constexpr page_file kFiles[] = {
${table}};

}  // namespace

std::span<const page_file> page_files() {
  return kFiles;
}

}  // namespace tandem::net
")
