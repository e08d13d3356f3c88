# SPDX-License-Identifier: Apache-2.0
# One target per folder, with declared dependencies.
#
#   penstock_component(dataplane/element
#     SOURCES block.cc …            files of this folder and its sub-folders
#     DEPS include dataplane/memory folders whose headers it may include
#     UNITY_SIZE 4                  files in a unit, if eight would take long to compile
#     LIBS absl::status …)          libraries outside the project
#
# makes the static library penstock_dataplane_element. tests/layers_test.py
# checks every #include against DEPS (and the DEPS of these).

set_property(GLOBAL PROPERTY PENSTOCK_COMPONENTS "")

function(penstock_target_name folder result)
  string(REPLACE "/" "_" name "${folder}")
  set(${result} "penstock_${name}" PARENT_SCOPE)
endfunction()

function(penstock_component folder)
  cmake_parse_arguments(ARG "" "UNITY_SIZE" "SOURCES;DEPS;LIBS" ${ARGN})
  penstock_target_name(${folder} target)
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    set_target_properties(${target} PROPERTIES UNITY_SIZE "${ARG_UNITY_SIZE}")
    target_link_libraries(${target} PRIVATE penstock_warnings)
    target_compile_options(${target} PRIVATE ${penstock_component_options})
    penstock_precompiled(${target} penstock_library_headers)
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

# penstock_loads_libraries(target folder …): for a program that may load transports (dataplane/transfer/library.h) or
# plug-ins (penstock/plugin.h) as shared libraries. The program then contains all symbols of these folders.
function(penstock_loads_libraries target)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  foreach(folder IN LISTS ARGN)
    penstock_target_name(${folder} component)
    target_sources(${target} PRIVATE "$<TARGET_OBJECTS:${component}>")
  endforeach()
endfunction()
