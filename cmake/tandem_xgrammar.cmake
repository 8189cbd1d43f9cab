# TANDEM_GRAMMAR: structured output through XGrammar. Its sources come from the package index, once for all build folders
# of this tree, and are built as they are.
option(TANDEM_GRAMMAR "Structured output (fetches and builds XGrammar)" ON)
set(TANDEM_XGRAMMAR_ARCHIVE "" CACHE FILEPATH "XGrammar's source archive, where it is there already")

set(tandem_xgrammar_version 0.2.9)
set(tandem_xgrammar_sha256 87b466bca2475e29bb0323abc62c6c33cbcbcff47e5fb800a3e2099ac9620b90)

# Sets `folder` to the unpacked sources.
function(tandem_fetch_xgrammar folder)
  set(name "xgrammar-${tandem_xgrammar_version}")
  set(place "${PROJECT_SOURCE_DIR}/build/sources")
  set(${folder} "${place}/${name}" PARENT_SCOPE)
  if(EXISTS "${place}/${name}/.complete")
    return()
  endif()
  set(instead "connect this machine, or name the archive with -DTANDEM_XGRAMMAR_ARCHIVE=FILE, or build without structured "
    "output: -DTANDEM_GRAMMAR=OFF.")
  set(archive "${TANDEM_XGRAMMAR_ARCHIVE}")
  if(NOT archive)
    set(archive "${place}/${name}.tar.gz")
    find_package(Python3 COMPONENTS Interpreter REQUIRED)
    message(STATUS "Fetching ${name}")
    execute_process(COMMAND "${Python3_EXECUTABLE}" -m pip download --quiet --disable-pip-version-check --no-deps
        --no-binary xgrammar -d "${place}" "xgrammar==${tandem_xgrammar_version}"
      RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE problem)
    if(NOT status EQUAL 0)
      string(STRIP "${problem}" problem)
      string(REGEX REPLACE ".*\n" "" problem "${problem}")
      message(FATAL_ERROR "The package index did not give ${name} (${problem}); " ${instead})
    endif()
  endif()
  if(NOT EXISTS "${archive}")
    message(FATAL_ERROR "${archive} is not there; " ${instead})
  endif()
  file(SHA256 "${archive}" found)
  if(NOT found STREQUAL tandem_xgrammar_sha256)
    message(FATAL_ERROR "${archive} is not ${name}: its SHA-256 is ${found}, not ${tandem_xgrammar_sha256}; remove it and "
      "try again.")
  endif()
  file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${place}")
  file(TOUCH "${place}/${name}/.complete")
endfunction()

# The library without its Python bindings. Its warnings are not ours; what it would print goes to grammar/xgrammar_log.cpp.
function(tandem_add_xgrammar)
  tandem_fetch_xgrammar(source)
  file(GLOB_RECURSE files "${source}/cpp/*.cc")
  list(FILTER files EXCLUDE REGEX "/cpp/tvm_ffi/")
  add_library(tandem_xgrammar STATIC ${files})
  set_target_properties(tandem_xgrammar PROPERTIES CXX_STANDARD 17)
  target_compile_options(tandem_xgrammar PRIVATE -O2 -g0 -w)
  target_compile_definitions(tandem_xgrammar PUBLIC XGRAMMAR_LOG_CUSTOMIZE=1 XGRAMMAR_ENABLE_CPPTRACE=0
    XGRAMMAR_ENABLE_INTERNAL_CHECK=0)
  target_include_directories(tandem_xgrammar SYSTEM PUBLIC "$<BUILD_INTERFACE:${source}/include>"
    "$<BUILD_INTERFACE:${source}/3rdparty/dlpack/include>" PRIVATE "${source}/3rdparty/picojson")
  target_link_libraries(tandem_xgrammar PRIVATE Threads::Threads)
endfunction()
