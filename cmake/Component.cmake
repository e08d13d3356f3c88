# SPDX-License-Identifier: Apache-2.0
# One target per folder, with declared dependencies.
#
#   penstock_component(dataplane/element
#     SOURCES block.cc …            files of this folder and its sub-folders
#     DEPS include dataplane/memory folders whose headers it may include
#     LIBS absl::status …)          libraries outside the project
#
# makes the static library penstock_dataplane_element. tests/layers_test.py
# holds every #include to DEPS (and to what those name in turn).

set_property(GLOBAL PROPERTY PENSTOCK_COMPONENTS "")

function(penstock_target_name folder result)
  string(REPLACE "/" "_" name "${folder}")
  set(${result} "penstock_${name}" PARENT_SCOPE)
endfunction()

function(penstock_component folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  penstock_target_name(${folder} target)
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE penstock_warnings)
    set_property(GLOBAL APPEND PROPERTY PENSTOCK_COMPONENTS ${target})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope}
    "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/generated")
  foreach(dep IN LISTS ARG_DEPS)
    penstock_target_name(${dep} dep_target)
    target_link_libraries(${target} ${scope} ${dep_target})
  endforeach()
  target_link_libraries(${target} ${scope} ${ARG_LIBS})
endfunction()

# penstock_loads_libraries(target folder …): a program that may load transports
# (dataplane/transfer/library.h) or plug-ins (penstock/plugin.h) as shared libraries. They
# find in it all that these folders have.
function(penstock_loads_libraries target)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  foreach(folder IN LISTS ARGN)
    penstock_target_name(${folder} component)
    target_sources(${target} PRIVATE "$<TARGET_OBJECTS:${component}>")
  endforeach()
endfunction()

# penstock_test(name LABEL SOURCES … DEPS … [LIBS …] [TIMEOUT seconds] [ARGS …] [PROPERTIES k v …])
# A GoogleTest program under one label (unit conformance fault fuzz slow rdma gpu frameworks soak).
function(penstock_test name label)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LIBS;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE penstock_warnings GTest::gmock GTest::gtest_main ${ARG_LIBS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
  foreach(dep IN LISTS ARG_DEPS)
    penstock_target_name(${dep} dep_target)
    target_link_libraries(${name} PRIVATE ${dep_target})
  endforeach()
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

if(PENSTOCK_FUZZ)
  add_custom_target(fuzzers)  # all that the fuzz preset builds
endif()

# penstock_fuzzer(name SOURCES … DEPS …): a libFuzzer target under the fuzz
# preset; elsewhere a test that runs the kept corpus in tests/fuzz/corpus/<name>.
function(penstock_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  set(corpus "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
  if(PENSTOCK_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${name})
    # What it finds of interest goes to the first folder, not among the kept.
    set(found "${CMAKE_CURRENT_BINARY_DIR}/${name}.found")
    file(MAKE_DIRECTORY "${found}")
    add_test(NAME ${name} COMMAND ${name} -max_total_time=10 -timeout=10 -rss_limit_mb=2048
      "-artifact_prefix=${found}/../" "${found}" "${corpus}")
    set_tests_properties(${name} PROPERTIES LABELS "fuzz;slow" TIMEOUT 60)
  else()
    add_executable(${name} ${ARG_SOURCES} "${PROJECT_SOURCE_DIR}/tests/fuzz/run_corpus.cc")
    add_test(NAME ${name} COMMAND ${name} ${corpus})
    set_tests_properties(${name} PROPERTIES LABELS "unit" TIMEOUT 60)
  endif()
  target_link_libraries(${name} PRIVATE penstock_warnings ${ARG_LIBS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
  foreach(dep IN LISTS ARG_DEPS)
    penstock_target_name(${dep} dep_target)
    target_link_libraries(${name} PRIVATE ${dep_target})
  endforeach()
endfunction()
