# SPDX-License-Identifier: Apache-2.0
# What keeps builds short: unity builds, and headers that are compiled once.
#
# PENSTOCK_UNITY=OFF (preset `plain`) compiles each file by itself, which shows that every file includes what it uses.
option(PENSTOCK_UNITY "Compile several files at once, with precompiled headers" ON)

add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-pthread>)  # which some libraries ask for: one set of headers for all
set(CMAKE_UNITY_BUILD ${PENSTOCK_UNITY})
if(PENSTOCK_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A type may use the anonymous namespace of its own file, which is not the unit's main file here. And gcc 12 forgets of
  # precompiled headers that they are the system's: it reports bounds inside Abseil's InlinedVector and std::vector that hold.
  target_compile_options(penstock_warnings INTERFACE -Wno-subobject-linkage -Wno-array-bounds -Wno-stringop-overflow)
endif()
# Larger units save little more, and cost those who change one file.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(penstock_pch_options -Xclang -fno-pch-timestamp)  # a checkout or a compiler cache gives headers another time
endif()

# What most files of the library include, and nothing that changes with the project's daily work.
set(PENSTOCK_COMMON_HEADERS
  <algorithm> <array> <atomic> <chrono> <complex> <condition_variable> <cstdint> <cstdlib> <cstring> <deque> <functional> <limits> <map> <memory>
  <mutex> <numeric> <optional> <ostream> <set> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
  <absl/container/flat_hash_map.h> <absl/functional/function_ref.h> <absl/status/status.h>
  <absl/status/statusor.h> <absl/strings/match.h> <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/time/time.h> <absl/types/span.h>)

# penstock_precompiles(target header …): makes `target`, whose headers others then reuse with penstock_precompiled().
# A program's code is compiled otherwise than a library's, so each kind needs a target of its kind.
function(penstock_precompiles target kind)
  if(NOT PENSTOCK_UNITY)
    return()
  endif()
  set(source "${PROJECT_BINARY_DIR}/generated/${target}.cc")
  if(kind STREQUAL "PROGRAM")
    file(CONFIGURE OUTPUT "${source}" CONTENT "int main() {}\n")
    add_executable(${target} EXCLUDE_FROM_ALL "${source}")
  else()
    file(CONFIGURE OUTPUT "${source}" CONTENT "// Nothing but its headers is used.\n")
    add_library(${target} OBJECT EXCLUDE_FROM_ALL "${source}")
  endif()
  target_compile_options(${target} PRIVATE ${penstock_pch_options})
  target_precompile_headers(${target} PRIVATE ${ARGN})
endfunction()

function(penstock_precompiled target from)
  if(TARGET ${from})
    target_compile_options(${target} PRIVATE ${penstock_pch_options})
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

penstock_precompiles(penstock_library_headers LIBRARY ${PENSTOCK_COMMON_HEADERS})
