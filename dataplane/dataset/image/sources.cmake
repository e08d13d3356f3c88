# SPDX-License-Identifier: Apache-2.0
# One line per file of this folder; ../CMakeLists.txt makes them part of the component.
set(PENSTOCK_DATASET_IMAGE
  image/color_steps.cc
  image/image_decoder.cc
  image/jpeg_decoder.cc
  image/orientation.cc
  image/png_decoder.cc
  image/resize.cc)
# These loop over pixels; GCC 12 vectorises few of the loops at -O2.
set_source_files_properties(image/color_steps.cc image/resize.cc PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
