# SPDX-License-Identifier: Apache-2.0
# Test programs, one per folder, and ctest's tests, each of which runs some cases of a program.

# Tests spend their time in the library, so full optimisation costs more compile time than it saves.
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

# penstock_test_program(program): makes the program if it does not exist yet.
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
# Makes one test of the cases in SOURCES, under one label (unit conformance exploration fault fuzz slow rdma gpu
# frameworks long). They are compiled into the folder's program; into PROGRAM if a file replaces something that other
# tests need, or if only few files should be copied to a machine. The other arguments are as for penstock_cases().
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
# Makes a test that runs the cases of `program` that are declared in FILES and pass GoogleTest's filter. TIMEOUT is 300
# by default.
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

# penstock_tests_run(target …): targets that this folder's tests run besides its own programs, so that `./run test
# FOLDER` builds them. Targets that are not built with the present options are left out.
function(penstock_tests_run)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REPLACE "/" "_" folder "${folder}")
  list(TRANSFORM ARGN REPLACE ".+" "$<TARGET_NAME_IF_EXISTS:\\0>")
  add_custom_target(${folder}_run ALL DEPENDS ${ARGN})
endfunction()

if(PENSTOCK_FUZZ)
  add_custom_target(fuzzers)  # all fuzzers, without the tests
endif()

# penstock_fuzzer(name SOURCES … DEPS …): with PENSTOCK_FUZZ, makes a libFuzzer target. Otherwise makes a test that runs
# the committed corpus in tests/fuzz/corpus/<name>. One program, tests/fuzz, contains all of these tests.
function(penstock_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  set(corpus "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
  if(PENSTOCK_FUZZ)
    set(program ${name})
    add_executable(${name} ${ARG_SOURCES})
    # libFuzzer's library names the C++ library before the sanitizer's library. A shared sanitizer library has to come
    # first.
    target_link_options(${name} PRIVATE -fsanitize=fuzzer -static-libsan)
    target_link_libraries(${name} PRIVATE penstock_warnings)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
    add_dependencies(fuzzers ${name})
    # New inputs go to the first folder, not into the committed corpus.
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
    # Each file has its own function name there, which run_corpus.cc knows.
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
