# SPDX-License-Identifier: Apache-2.0
# Test programs, one per folder, and the tests of ctest, each of which runs some cases of a program.

# Tests spend their time in the library: what optimising them costs is not had back.
set(penstock_test_options $<$<CONFIG:Release>:-O1>)

if(PENSTOCK_TESTS)
  penstock_precompiles(penstock_test_headers PROGRAM ${PENSTOCK_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
  add_library(penstock_test_main OBJECT "${PROJECT_SOURCE_DIR}/tests/main.cc")
  foreach(target penstock_test_headers penstock_test_main)
    if(TARGET ${target})
      target_compile_options(${target} PRIVATE ${penstock_test_options})
      target_link_libraries(${target} PRIVATE penstock_warnings GTest::gmock absl::strings)
    endif()
  endforeach()
endif()

# penstock_test_program(program): makes it, if it is not there yet.
function(penstock_test_program program)
  if(TARGET ${program})
    return()
  endif()
  add_executable(${program})
  target_link_libraries(${program} PRIVATE penstock_warnings penstock_test_main GTest::gmock)
  target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
  target_compile_options(${program} PRIVATE ${penstock_test_options})
  penstock_precompiled(${program} penstock_test_headers)
  set_target_properties(${program} PROPERTIES UNITY_SIZE 6)
endfunction()

# penstock_test(name LABEL SOURCES … [PROGRAM program] [DEPS …] [LIBS …] [DEFINITIONS …]
#               [CASES_OF file …] [CASES filter] [TIMEOUT seconds] [ENVIRONMENT …] [PROPERTIES k v …])
# The cases of SOURCES, as one test under one label (unit conformance exploration fault fuzz slow rdma gpu frameworks long). They are
# compiled into the folder's program; into PROGRAM where a file replaces what others want to keep, or a machine should
# carry few files. The rest is as for penstock_cases().
function(penstock_test name label)
  cmake_parse_arguments(ARG "" "PROGRAM;CASES;TIMEOUT" "SOURCES;DEPS;LIBS;DEFINITIONS;CASES_OF;ENVIRONMENT;PROPERTIES" ${ARGN})
  if(NOT ARG_PROGRAM)
    file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
    string(REPLACE "/" "_" folder "${folder}")
    set(ARG_PROGRAM "${folder}_tests")
  endif()
  penstock_test_program(${ARG_PROGRAM})
  foreach(source IN LISTS ARG_SOURCES)
    if(NOT IS_ABSOLUTE "${source}")
      set(source "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
    endif()
    target_sources(${ARG_PROGRAM} PRIVATE "${source}")
  endforeach()
  target_link_libraries(${ARG_PROGRAM} PRIVATE ${ARG_LIBS})
  foreach(dep IN LISTS ARG_DEPS)
    penstock_target_name(${dep} dep_target)
    target_link_libraries(${ARG_PROGRAM} PRIVATE ${dep_target})
  endforeach()
  target_compile_definitions(${ARG_PROGRAM} PRIVATE ${ARG_DEFINITIONS})
  penstock_cases(${name} ${label} ${ARG_PROGRAM} FILES ${ARG_SOURCES} ${ARG_CASES_OF} CASES "${ARG_CASES}" TIMEOUT "${ARG_TIMEOUT}"
    ENVIRONMENT ${ARG_ENVIRONMENT} PROPERTIES ${ARG_PROPERTIES})
endfunction()

# penstock_cases(name LABEL program FILES file … [CASES filter] [TIMEOUT seconds] [ENVIRONMENT …] [PROPERTIES k v …])
# A test that runs those cases of `program` that FILES declare, and of these the ones that the filter of GoogleTest lets
# pass. TIMEOUT is 300 unless said.
function(penstock_cases name label program)
  cmake_parse_arguments(ARG "" "CASES;TIMEOUT" "FILES;ENVIRONMENT;PROPERTIES" ${ARGN})
  set(files "")
  foreach(file IN LISTS ARG_FILES)
    if(file MATCHES "\\.cc$")
      cmake_path(ABSOLUTE_PATH file NORMALIZE)
      cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
      list(APPEND files "${file}")
    endif()
  endforeach()
  list(JOIN files "," files)
  set(filter "")
  if(ARG_CASES)
    set(filter "--gtest_filter=${ARG_CASES}")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${program} ${filter} "--files=${files}")
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${ARG_ENVIRONMENT}"
    ${ARG_PROPERTIES})
endfunction()

# penstock_tests_run(target …): what tests of this folder run beside its own programs, so that `./run test FOLDER` builds it.
# Those that are not built under the present options are left out.
function(penstock_tests_run)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REPLACE "/" "_" folder "${folder}")
  list(TRANSFORM ARGN REPLACE ".+" "$<TARGET_NAME_IF_EXISTS:\\0>")
  add_custom_target(${folder}_run ALL DEPENDS ${ARGN})
endfunction()

if(PENSTOCK_FUZZ)
  add_custom_target(fuzzers)  # all of them, without the tests
endif()

# penstock_fuzzer(name SOURCES … DEPS …): a libFuzzer target with PENSTOCK_FUZZ. Elsewhere a test that runs the kept
# corpus in tests/fuzz/corpus/<name>; one program, tests/fuzz, holds all of them.
function(penstock_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  set(corpus "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
  if(PENSTOCK_FUZZ)
    set(program ${name})
    add_executable(${name} ${ARG_SOURCES})
    # libFuzzer's library names the C++ library before the sanitizer's, which wants to be the first if shared.
    target_link_options(${name} PRIVATE -fsanitize=fuzzer -static-libsan)
    target_link_libraries(${name} PRIVATE penstock_warnings)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
    add_dependencies(fuzzers ${name})
    # What it finds of interest goes to the first folder, not among the kept.
    set(found "${CMAKE_CURRENT_BINARY_DIR}/${name}.found")
    file(MAKE_DIRECTORY "${found}")
    add_test(NAME ${name} COMMAND ${name} -max_total_time=5 -timeout=10 -rss_limit_mb=2048
      "-artifact_prefix=${found}/../" "${found}" "${corpus}")
    set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 60)
  else()
    set(program fuzz_corpus_tests)
    list(POP_FRONT ARG_SOURCES target_file)
    list(TRANSFORM ARG_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
    target_sources(${program} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/${target_file}" ${ARG_SOURCES})
    # Each has a name of its own there, which run_corpus.cc knows.
    set_source_files_properties("${CMAKE_CURRENT_SOURCE_DIR}/${target_file}" TARGET_DIRECTORY ${program}
      PROPERTIES COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=${name})
    set_property(TARGET ${program} APPEND_STRING PROPERTY PENSTOCK_FUZZERS "FUZZER(${name})\n")
    add_test(NAME ${name} COMMAND ${program} ${name} ${corpus})
    set_tests_properties(${name} PROPERTIES LABELS "unit" TIMEOUT 60)
  endif()
  target_link_libraries(${program} PRIVATE ${ARG_LIBS})
  foreach(dep IN LISTS ARG_DEPS)
    penstock_target_name(${dep} dep_target)
    target_link_libraries(${program} PRIVATE ${dep_target})
  endforeach()
endfunction()
