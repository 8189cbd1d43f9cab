# Compiler settings and the one way to declare a folder of the tree.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "tandem needs g++ 12 or later, and this is ${CMAKE_CXX_COMPILER_VERSION}; install a later one "
    "and name it: CXX=g++-12 ./run build.")
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Assertions stay on in every build: no -DNDEBUG.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1")

find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TANDEM_CCACHE}")
endif()
find_program(TANDEM_MOLD mold)
if(TANDEM_MOLD AND NOT CMAKE_CROSSCOMPILING)
  # g++ before 12 does not know this linker's name.
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold TANDEM_COMPILER_KNOWS_MOLD)
  if(TANDEM_COMPILER_KNOWS_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

set(TANDEM_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address,undefined or thread")
if(TANDEM_SANITIZE)
  add_compile_options(-fsanitize=${TANDEM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TANDEM_SANITIZE})
endif()

# Results must not depend on what the compiler fuses: invariant 4 of docs/architecture.md.
add_compile_options(-ffp-contract=off)

add_library(tandem_warnings INTERFACE)
target_compile_options(tandem_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wno-sign-conversion -Wno-missing-field-initializers -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  # GCC 12 reports overlaps and overruns inside std::string and fmt that cannot be (its bug 105651 and kin).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-stringop-overflow>
  $<$<BOOL:${TANDEM_WERROR}>:-Werror>)

# tandem_folder(NAME SOURCES ... LINKS ...): a static library whose link edges are its allowed includes.
function(tandem_folder name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(tandem_${name} STATIC ${arg_SOURCES})
  target_include_directories(tandem_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_link_libraries(tandem_${name} PUBLIC ${arg_LINKS} PRIVATE ${arg_PRIVATE_LINKS}
    $<BUILD_INTERFACE:tandem_warnings>)
endfunction()

# tandem_test(NAME SOURCES ... LINKS ... LABELS ...): a GoogleTest binary; every TEST becomes a ctest test.
function(tandem_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_LINKS} GTest::gtest GTest::gtest_main tandem_warnings)
  target_compile_definitions(${name} PRIVATE TANDEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()
