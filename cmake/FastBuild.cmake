# SPDX-License-Identifier: Apache-2.0
# Keeps builds short: unity builds and precompiled headers.
#
# PENSTOCK_UNITY=OFF (preset `plain`) compiles each file by itself, which shows that every file includes what it uses.
option(PENSTOCK_UNITY "Compile several files at once, with precompiled headers" ON)

add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-pthread>)  # some libraries require it, and all units share the headers
if(PENSTOCK_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A type may use the anonymous namespace of its own file, which is not the unit's main file here. And gcc 12 forgets
  # that precompiled headers are system headers: it reports false bounds errors inside Abseil's InlinedVector and
  # std::vector.
  target_compile_options(penstock_warnings INTERFACE -Wno-subobject-linkage -Wno-array-bounds -Wno-stringop-overflow)
endif()
# CMake's own unity builds name files by absolute paths, so a compiler cache finds nothing for a different checkout. Our
# units are made when all targets are known. UNITY_SIZE files of a target form one unit, except files with their own
# compile options or SKIP_UNITY_BUILD_INCLUSION, and targets with UNITY_SIZE 1. Larger units save little more, and slow
# down the rebuild after a change of one file.
set(PENSTOCK_UNITY_SIZE 8)
function(penstock_unite target)
  get_target_property(size ${target} UNITY_SIZE)
  if(NOT size)
    set(size ${PENSTOCK_UNITY_SIZE})
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set(apart "")
  set(together "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}" NORMALIZE OUTPUT_VARIABLE file)
    get_source_file_property(definitions "${file}" TARGET_DIRECTORY ${target} COMPILE_DEFINITIONS)
    get_source_file_property(options "${file}" TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
    get_source_file_property(alone "${file}" TARGET_DIRECTORY ${target} SKIP_UNITY_BUILD_INCLUSION)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${file}" generated)
    if(source MATCHES "^\\$<" OR NOT source MATCHES "\\.cc$" OR definitions OR options OR alone OR generated)
      list(APPEND apart "${source}")
    elseif(NOT file IN_LIST together)
      list(APPEND together "${file}")
    endif()
  endforeach()
  set(units "")
  set(number 0)
  while(together)
    list(SUBLIST together 0 ${size} files)
    list(LENGTH files count)
    foreach(file IN LISTS files)
      list(POP_FRONT together)
    endforeach()
    if(count EQUAL 1)
      list(APPEND units ${files})
      continue()
    endif()
    set(text "")
    foreach(file IN LISTS files)
      cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
      string(APPEND text "#include \"${file}\"\n")
    endforeach()
    set(unit "${PROJECT_BINARY_DIR}/unity/${target}_${number}.cc")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "${text}")
    list(APPEND units "${unit}")
    math(EXPR number "${number} + 1")
  endwhile()
  set_target_properties(${target} PROPERTIES SOURCES "${apart};${units}")
endfunction()

function(penstock_unite_all folder)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(kind ${target} TYPE)
    if(kind MATCHES "^(EXECUTABLE|OBJECT_LIBRARY|STATIC_LIBRARY|MODULE_LIBRARY|SHARED_LIBRARY)$")
      penstock_unite(${target})
    endif()
  endforeach()
  get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(folder IN LISTS folders)
    penstock_unite_all("${folder}")
  endforeach()
endfunction()
if(PENSTOCK_UNITY)
  cmake_language(DEFER DIRECTORY "${PROJECT_SOURCE_DIR}" CALL penstock_unite_all "${PROJECT_SOURCE_DIR}")
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(penstock_pch_options -Xclang -fno-pch-timestamp)  # a checkout or a compiler cache changes the headers' times
endif()

# Headers that most files of the library include, and that change rarely.
set(PENSTOCK_COMMON_HEADERS
  <algorithm> <array> <atomic> <chrono> <complex> <condition_variable> <cstdint> <cstdlib> <cstring> <deque> <functional> <limits> <map> <memory>
  <mutex> <numeric> <optional> <ostream> <set> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
  <absl/container/flat_hash_map.h> <absl/functional/function_ref.h> <absl/status/status.h>
  <absl/status/statusor.h> <absl/strings/match.h> <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/time/time.h> <absl/types/span.h>)

# penstock_precompiles(target header …): makes `target`. Others reuse its headers with penstock_precompiled(). Programs
# and libraries are compiled with different options, so each kind needs its own target.
#
# Clang writes the path by which it was called into precompiled headers, so ccache would treat those of another checkout
# as different. With CCACHE_PCH_EXTSUM, which ./run sets, ccache compares the file of the same name with .sum: a hash of
# the preprocessed headers. The headers themselves never come from the cache.
#
# GCC reads a precompiled header that is already there while it makes the next one. The next one would differ from the
# one of a fresh build folder, and so would the cache's key of every file that uses it. So the old one is removed first.
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
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "")
    set(headers "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx")
    add_custom_command(OUTPUT "${headers}.pch.sum" VERBATIM
      COMMAND sh -c "\"$1\" -std=c++20 -E -P -x c++ \"$2\" | sha256sum > \"$2.pch.sum\"" sum "${CMAKE_CXX_COMPILER}" "${headers}"
      DEPENDS "${headers}.pch")
    add_custom_target(${target}_sum DEPENDS "${headers}.pch.sum")
    cmake_path(RELATIVE_PATH headers BASE_DIRECTORY "${PROJECT_BINARY_DIR}")  # Ninja calls the compiler in that folder
    set_target_properties(${target} PROPERTIES PENSTOCK_HEADERS "${headers}.pch")
  else()
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
      "sh;${PROJECT_SOURCE_DIR}/cmake/without_old_output.sh;${CMAKE_CXX_COMPILER_LAUNCHER}")
  endif()
endfunction()

function(penstock_precompiled target from)
  if(NOT TARGET ${from})
    return()
  endif()
  target_compile_options(${target} PRIVATE ${penstock_pch_options})
  if(TARGET ${from}_sum)
    get_target_property(headers ${from} PENSTOCK_HEADERS)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include-pch ${headers}>")
    add_dependencies(${target} ${from}_sum)
  else()
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

penstock_precompiles(penstock_library_headers LIBRARY ${PENSTOCK_COMMON_HEADERS})
if(TARGET penstock_library_headers)
  target_compile_options(penstock_library_headers PRIVATE ${penstock_component_options})
endif()
