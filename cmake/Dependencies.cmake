# SPDX-License-Identifier: Apache-2.0
# External dependencies. docs/dependencies.md gives the reasons. Debian 12 has the oldest supported versions.

find_package(Threads REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Protobuf REQUIRED)  # before gRPC: Debian's Protobuf has no CMake config of its own
find_package(SQLite3 REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(CURL 7.85 REQUIRED)
find_package(pugixml CONFIG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(SNAPPY REQUIRED IMPORTED_TARGET snappy)
pkg_check_modules(LZ4 REQUIRED IMPORTED_TARGET liblz4)
find_library(FARMHASH_LIBRARY farmhash REQUIRED)  # linked by name
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)  # Debian's CMake config of it needs its programs
find_path(TOML_INCLUDE_DIR toml++/toml.h REQUIRED)  # header-only
find_path(BEAST_INCLUDE_DIR boost/beast/http.hpp REQUIRED)  # header-only
find_path(VERBS_INCLUDE_DIR infiniband/verbs.h)  # headers only, and optional: the library is opened at run time
if(PENSTOCK_CUDA)
  find_package(CUDAToolkit 12 QUIET)  # the runtime, statically linked
  if(NOT TARGET CUDA::cudart_static)
    message(WARNING "PENSTOCK_CUDA is ON, but no CUDA toolkit was found (set CUDAToolkit_ROOT to its folder): "
      "this build will have no GPU")
  else()
    # For the kernels of cuda/. A toolkit may lack nvcc, and nvcc may not be in PATH.
    include(CheckLanguage)
    if(NOT CMAKE_CUDA_COMPILER AND EXISTS "${CUDAToolkit_NVCC_EXECUTABLE}")
      set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
    endif()
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES 80 90)  # newer GPUs use the PTX of the last one
      endif()
      enable_language(CUDA)
      if(CMAKE_VERSION VERSION_LESS 3.26 AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")  # CMake 3.25 does not know C++20 for nvcc
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
      endif()
      set(CMAKE_CUDA_STANDARD 20)
      set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    else()
      message(WARNING "the CUDA toolkit has no nvcc: this build lands values on GPUs, but has no kernels")
    endif()
  endif()
endif()
# Optional: Arrow, for Parquet. Searched only in the given place: the prefix of an installation, or the pyarrow package
# of a Python environment, which has headers and libraries in one folder.
set(PENSTOCK_ARROW "" CACHE PATH "Location of Arrow, for Parquet: a prefix, or the folder of pyarrow")
set(PENSTOCK_ARROW_LIBRARIES "")
if(PENSTOCK_ARROW)
  find_path(PENSTOCK_ARROW_INCLUDE_DIR parquet/arrow/reader.h PATHS "${PENSTOCK_ARROW}/include" NO_DEFAULT_PATH)
  foreach(name parquet arrow)
    file(GLOB_RECURSE found "${PENSTOCK_ARROW}/lib${name}.so*")
    if(NOT found OR NOT PENSTOCK_ARROW_INCLUDE_DIR)
      message(FATAL_ERROR "PENSTOCK_ARROW is ${PENSTOCK_ARROW}, but that folder has no Arrow with Parquet")
    endif()
    list(GET found 0 library)
    list(APPEND PENSTOCK_ARROW_LIBRARIES "${library}")
  endforeach()
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # Arrow is seldom in the system's search path
endif()
pkg_check_modules(UCX IMPORTED_TARGET ucx)  # optional: for libpenstock_ucx, which `ucx` opens at run time
find_package(OpenSSL REQUIRED)
if(PENSTOCK_RPC)
  find_package(gRPC CONFIG REQUIRED)
  find_package(CLI11 CONFIG REQUIRED)
  find_package(nlohmann_json CONFIG REQUIRED)
endif()
# Optional: the Python package, built and tested with the first python3 that has NumPy: the one in PATH, else the
# system's.
set(PENSTOCK_PYTHON_READY FALSE)
if(PENSTOCK_PYTHON AND PENSTOCK_RPC)
  if(NOT Python3_EXECUTABLE)
    foreach(candidate python3 /usr/bin/python3)
      execute_process(COMMAND "${candidate}" -c "import sys, numpy; print(sys.executable)" RESULT_VARIABLE failed
        OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      if(failed STREQUAL "0")
        set(Python3_EXECUTABLE "${found}")
        break()
      endif()
    endforeach()
  endif()
  find_package(Python3 COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS NumPy)
  set(PYBIND11_FINDPYTHON ON)
  find_package(pybind11 CONFIG QUIET)
  # Nothing is compiled against NumPy, so a wheel is built without it.
  if(Python3_Development.Module_FOUND AND pybind11_FOUND AND (Python3_NumPy_FOUND OR NOT PENSTOCK_TESTS))
    set(PENSTOCK_PYTHON_READY TRUE)
  else()
    message(WARNING "the Python package is left out: it needs a python3 with NumPy, its headers, and pybind11 "
      "(Debian: python3-numpy python3-dev pybind11-dev; ./run deps installs them)")
  endif()
endif()
if(PENSTOCK_TESTS)
  find_package(GTest CONFIG REQUIRED)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
endif()
if(PENSTOCK_BENCH AND NOT PENSTOCK_SANITIZE)
  find_package(benchmark CONFIG REQUIRED)
endif()

# penstock_proto(TARGET file.proto …): makes a library. Its generated headers are included as "control/proto/file.pb.h"
# (and .grpc.pb.h with GRPC).
function(penstock_proto target)
  cmake_parse_arguments(ARG "GRPC" "" "PROTOS" ${ARGN})
  set(out "${PROJECT_BINARY_DIR}/generated")
  file(MAKE_DIRECTORY "${out}")
  set(sources "")
  foreach(proto IN LISTS ARG_PROTOS)
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/${proto}")
    string(REGEX REPLACE "\\.proto$" "" stem "${path}")
    set(files "${out}/${stem}.pb.cc" "${out}/${stem}.pb.h")
    set(options "--cpp_out=${out}")
    if(ARG_GRPC)
      list(APPEND files "${out}/${stem}.grpc.pb.cc" "${out}/${stem}.grpc.pb.h")
      list(APPEND options "--grpc_out=${out}" "--plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>")
    endif()
    add_custom_command(OUTPUT ${files}
      COMMAND protobuf::protoc "-I${PROJECT_SOURCE_DIR}" ${options} "${path}"
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      DEPENDS "${PROJECT_SOURCE_DIR}/${path}" VERBATIM)
    list(APPEND sources ${files})
  endforeach()
  add_library(${target} STATIC ${sources})
  # Generated files cannot share a unit, and sanitizers have nothing to find in them.
  set_target_properties(${target} PROPERTIES UNITY_SIZE 1)
  target_compile_options(${target} PRIVATE -g0)
  if(PENSTOCK_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-sanitize=all)
  endif()
  target_include_directories(${target} PUBLIC "${out}")
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
  if(ARG_GRPC)
    target_link_libraries(${target} PUBLIC gRPC::grpc++)
  endif()
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_COMPONENTS ${target})
endfunction()
