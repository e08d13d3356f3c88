# SPDX-License-Identifier: Apache-2.0
# One library out of all components, static and shared, and its package:
#   find_package(penstock CONFIG)
#   target_link_libraries(app penstock::penstock)         static
#   target_link_libraries(app penstock::penstock_shared)
include(CMakePackageConfigHelpers)

if(NOT PENSTOCK_RPC)
  return()  # the library is complete only with the service
endif()

get_property(components GLOBAL PROPERTY PENSTOCK_COMPONENTS)
set(objects "")
foreach(component IN LISTS components)
  list(APPEND objects "$<TARGET_OBJECTS:${component}>")
endforeach()

# Libraries that users must link too, because our headers and objects use them.
set(public_libs absl::status absl::statusor absl::strings absl::span absl::time
    absl::inlined_vector absl::flat_hash_map)
set(private_libs protobuf::libprotobuf gRPC::grpc++ SQLite::SQLite3 JPEG::JPEG PNG::PNG ZLIB::ZLIB CURL::libcurl
    pugixml::pugixml absl::random_random Threads::Threads PkgConfig::XXHASH
    PkgConfig::RE2 PkgConfig::LIBZIP PkgConfig::SNAPPY PkgConfig::LZ4 OpenSSL::SSL farmhash ${PENSTOCK_ARROW_LIBRARIES} ${CMAKE_DL_LIBS})

if(TARGET CUDA::cudart_static)
  list(APPEND private_libs CUDA::cudart_static)
endif()

# The interface for transports outside the tree (docs/transports.md): these headers, under the same names as here. It
# links nothing of ours: the loading program has all symbols.
set(transport_headers "${CMAKE_INSTALL_INCLUDEDIR}/penstock/transport")
add_library(penstock_transport INTERFACE)
target_include_directories(penstock_transport INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${transport_headers}>)
target_compile_features(penstock_transport INTERFACE cxx_std_20)
target_link_libraries(penstock_transport INTERFACE ${public_libs})
set_target_properties(penstock_transport PROPERTIES EXPORT_NAME transport)
# The interface for plug-ins (docs/plugins.md): only the public headers. It links nothing of ours either.
add_library(penstock_plugin INTERFACE)
target_include_directories(penstock_plugin INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(penstock_plugin INTERFACE cxx_std_20)
target_link_libraries(penstock_plugin INTERFACE ${public_libs})
set_target_properties(penstock_plugin PROPERTIES EXPORT_NAME plugin)
foreach(header
    control/protocol/index_set.h
    dataplane/element/block.h dataplane/element/error_block.h dataplane/element/extension.h
    dataplane/element/frame.h
    dataplane/memory/copied.h dataplane/memory/pool.h
    dataplane/transfer/fifo.h dataplane/transfer/filled.h dataplane/transfer/frame_flush_delay.h
    dataplane/transfer/gate.h
    dataplane/transfer/element_receiver.h dataplane/transfer/library.h dataplane/transfer/link_versions.h
    dataplane/transfer/message.h
    dataplane/transfer/send_handle.h dataplane/transfer/send_queue.h dataplane/transfer/transport.h)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION "${transport_headers}/${folder}")
endforeach()
# The suite that a transport has to pass, as sources: penstock::transport_conformance.
set(conformance "${CMAKE_INSTALL_DATADIR}/penstock/conformance/tests/dataplane")
install(DIRECTORY tests/dataplane/transfer/ DESTINATION "${conformance}/transfer"
  FILES_MATCHING PATTERN "conformance*" PATTERN "blob_spec.h" PATTERN "ends.h" PATTERN "shm" EXCLUDE PATTERN "tcp" EXCLUDE PATTERN "ucx" EXCLUDE
  PATTERN "verbs" EXCLUDE)
install(FILES tests/dataplane/element/sample.cc tests/dataplane/element/sample.h
  DESTINATION "${conformance}/element")
install(FILES tests/eventually.h DESTINATION "${CMAKE_INSTALL_DATADIR}/penstock/conformance/tests")

foreach(kind IN ITEMS static shared)
  string(TOUPPER ${kind} KIND)
  set(target penstock_${kind})
  add_library(${target} ${KIND} ${objects})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME penstock LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_link_libraries(${target} PUBLIC ${public_libs} PRIVATE ${private_libs})
endforeach()
set_target_properties(penstock_static PROPERTIES EXPORT_NAME penstock)

install(TARGETS penstock_static penstock_shared penstock_transport penstock_plugin EXPORT penstock-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET penstock_ucx)
  install(TARGETS penstock_ucx LIBRARY DESTINATION lib/penstock)
endif()
if(TARGET penstock)
  install(TARGETS penstock RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET penstock_simulate_program)
  install(TARGETS penstock_simulate_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET penstock_bench_program)
  install(TARGETS penstock_bench_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/penstock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT penstock-targets NAMESPACE penstock:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
set(PENSTOCK_HAS_CUDA FALSE)
if(TARGET CUDA::cudart_static)
  set(PENSTOCK_HAS_CUDA TRUE)
endif()
configure_package_config_file(cmake/penstock-config.cmake.in penstock-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/penstock PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(penstock-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/penstock-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/penstock-config-version.cmake"
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
# Relative, so that the package may be installed or moved anywhere.
file(RELATIVE_PATH PENSTOCK_PC_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/penstock.pc.in penstock.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/penstock.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
