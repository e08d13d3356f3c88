# SPDX-License-Identifier: Apache-2.0
# Warnings, sanitizers, ccache and mold.

# Options for all of our targets. They are not passed on to users.
add_library(penstock_warnings INTERFACE)
target_compile_options(penstock_warnings INTERFACE -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 reports inlined std::optional and std::variant members as maybe uninitialized where they cannot be.
  target_compile_options(penstock_warnings INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    # The same for absl::InlinedVector.
    target_compile_options(penstock_warnings INTERFACE -Wno-uninitialized)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(penstock_warnings INTERFACE
    -Wthread-safety -Wno-missing-field-initializers -Wno-gnu-zero-variadic-macro-arguments)
else()
  target_compile_options(penstock_warnings INTERFACE -Wno-missing-field-initializers)
endif()

if(PENSTOCK_SANITIZE)
  add_compile_options(-fsanitize=${PENSTOCK_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PENSTOCK_SANITIZE})
  if(PENSTOCK_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
if(PENSTOCK_SANITIZE MATCHES "address")
  # A shared library, so that Python can load it first. gcc's is always shared.
  set(library libasan.so)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(library "libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so")
  endif()
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" "-print-file-name=${library}" OUTPUT_VARIABLE PENSTOCK_ASAN_LIBRARY
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    cmake_path(GET PENSTOCK_ASAN_LIBRARY PARENT_PATH folder)
    add_link_options(-shared-libasan "LINKER:-rpath,${folder}")
  endif()
endif()
# Additional options for components. Under sanitizers only components are optimised, because they run most: tests and
# programs then compile in a third of the time.
set(penstock_component_options "")
if(PENSTOCK_SANITIZE)
  list(APPEND penstock_component_options -O1)
endif()
if(PENSTOCK_FUZZ)
  list(APPEND penstock_component_options -fsanitize=fuzzer-no-link)  # fuzzers are guided by the coverage of components
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()
