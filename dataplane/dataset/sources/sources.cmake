# SPDX-License-Identifier: Apache-2.0
# One line per file of this folder; ../CMakeLists.txt makes them part of the component.
set(PENSTOCK_DATASET_SOURCES
  sources/file_nodes.cc
  sources/file_source.cc
  sources/image_directory.cc
  sources/indexed_source.cc
  sources/kinds.cc
  sources/list_files.cc
  sources/listed_names.cc
  sources/npy_dataset.cc
  sources/numbered_files.cc
  sources/old_names.cc
  sources/python_generator.cc
  sources/range.cc
  sources/record_datasets.cc
  sources/registered_source.cc
  sources/split_cursor.cc
  sources/tar_shards.cc
  sources/tensors.cc
  sources/token_shards.cc
  sources/formats/array_file.cc
  sources/formats/buffered_file.cc
  sources/formats/file_bytes.cc
  sources/formats/fixed_length_reader.cc
  sources/formats/inflater.cc
  sources/formats/line_reader.cc
  sources/formats/npy_header.cc
  sources/formats/npz_file.cc
  sources/formats/tar_reader.cc
  sources/formats/tfrecord_reader.cc
  sources/formats/tfrecord_writer.cc)

if(PENSTOCK_ARROW_LIBRARIES)
  list(APPEND PENSTOCK_DATASET_SOURCES sources/parquet.cc sources/formats/parquet_file.cc)
  set_source_files_properties(sources/formats/parquet_file.cc PROPERTIES
    COMPILE_OPTIONS "-isystem;${PENSTOCK_ARROW_INCLUDE_DIR}")  # of this file alone
else()
  list(APPEND PENSTOCK_DATASET_SOURCES sources/parquet_missing.cc)
endif()
