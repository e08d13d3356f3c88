// SPDX-License-Identifier: Apache-2.0
// Datasets that read files.
//
// A file is given by name, or by an element of another dataset:
// `files.Interleave(ps::TFRecordDataset)`. The comments say what a split is, which matters when the
// service divides the dataset (DYNAMIC). A file that cannot be read, or a damaged part of it, is an
// error in place of its elements. The error names the file and the place in it.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/dataset.h"
#include "penstock/dtype.h"
#include "penstock/expr.h"
#include "penstock/spec.h"

namespace penstock {

// One file, several files, or the file that a scalar string of an outer element names.
class FileNames {
 public:
  template <std::convertible_to<std::string_view> S>
  FileNames(const S& name) : names_{std::string(std::string_view(name))} {}  // NOLINT
  FileNames(std::vector<std::string> names) : names_(std::move(names)) {}    // NOLINT
  FileNames(std::initializer_list<std::string_view> names) : names_(names.begin(), names.end()) {}
  FileNames(const Expr& name) : element_(name) {}  // NOLINT

  const std::vector<std::string>& names() const { return names_; }
  const std::optional<Expr>& element() const { return element_; }

 private:
  std::vector<std::string> names_;
  std::optional<Expr> element_;
};

// How files are compressed. Restoring a position in a compressed file decompresses the file from
// its beginning.
enum class Compression : uint8_t { kNone, kGzip, kZlib };

// --- Records: a split is a file -----------------------------------------------
struct RecordOptions {
  Compression compression = Compression::kNone;
};
// Records of TFRecord files as scalar strings. Checks their CRC32C.
struct TFRecordDatasetMaker {
  Dataset operator()(FileNames files, RecordOptions options = {}) const;
};
inline constexpr TFRecordDatasetMaker TFRecordDataset;
// Lines of text files as scalar strings, without the line end (\n or \r\n).
struct TextLineDatasetMaker {
  Dataset operator()(FileNames files, RecordOptions options = {}) const;
};
inline constexpr TextLineDatasetMaker TextLineDataset;

struct FixedLengthRecordOptions {
  int64_t header_bytes = 0;  // skipped at the beginning of each file
  int64_t footer_bytes = 0;  // skipped at the end of each file
  Compression compression = Compression::kNone;
};
// Records of `record_bytes` each, as scalar strings. A file that does not contain a whole number of
// records between header and footer is DataLoss: at once if its size is known, at its end if it is
// compressed.
Dataset FixedLengthRecordDataset(FileNames files, int64_t record_bytes,
                                 FixedLengthRecordOptions options = {});

// --- Tar files: a split is a file ---------------------------------------------
struct TarShardsOptions {
  bool url = false;              // adds "__url__", the name of the tar file
  bool skip_incomplete = false;  // skips samples that lack a field
};
// Samples of tar files as WebDataset writes them. A sample is a run of consecutive files whose
// paths are equal up to the first dot of the last component; that part is the key. An element is a
// dict of "__key__" and one scalar string per field. A field is an extension in any case ("cls",
// "seg.png"), or a list of which the first one present is used ("jpg;jpeg;png"); the first of the
// list names the field. If a field is missing, NotFound takes the place of the sample and names the
// field. Reads ustar, pax and GNU archives, also compressed with gzip.
Dataset TarShards(FileNames files, std::vector<std::string> fields, TarShardsOptions options = {});

// --- Numbered elements: a split is a range of them ------------------------------
// File sizes are read when iteration starts. If a file is missing or does not fit, iteration starts
// with that error. Skipping elements and restoring cost nothing.

struct TokenShardsOptions {
  DType dtype = kUInt16;          // of the tokens; an integer dtype
  std::optional<int64_t> stride;  // tokens from window to window; not given: `length`
  // Adds one token to each window: [0, length) is the input, [1, length + 1) the labels. With
  // stride `length`, neighboring windows share one token.
  bool with_next_token = false;
  // true: drops the tokens of a file that are after its last whole window. false: returns them in a
  // shorter window; elements then have the shape [?].
  bool drop_remainder = true;
  int64_t header_bytes = 0;  // skipped at the beginning of each file, except .npy
};
// Windows of `length` tokens. No window spans two files. A file contains only tokens, little
// endian, or a one-dimensional array if its name ends in .npy. Local files are mapped into memory,
// so they must not be truncated while they are read.
Dataset TokenShards(FileNames files, int64_t length, TokenShardsOptions options = {});

struct NpyOptions {
  bool rows = true;  // false: each file is one element
};
// Arrays saved by NumPy. `spec` describes an element. If it is a leaf, the files are .npy. If it is
// a dict, the files are .npz, and the members with the names of its keys are read. An element is
// one row of the first dimension, of all members together, or the whole file if `rows` is false.
// The arrays must fit `spec`: the same dtype, a shape that it admits, C order, little endian.
// For .npz, the current file is held in memory, its checksums are checked, and a split is a file.
Dataset NpyDataset(FileNames files, const Spec& spec, NpyOptions options = {});

// --- Columns of Parquet files: a split is one or more row groups ----------------
// Rows as dicts of the columns that `columns` names, each of its own type: a scalar, a string (from
// string and binary columns), or one dimension (from lists of numbers). A null is InvalidArgument
// in place of its row, unless the leaf is optional. The current row group is held in memory.
// Unimplemented in a program built without Arrow.
Dataset Parquet(FileNames files, const Spec& columns);

// --- Images in directories: a split is a range of files, one file if shuffled ----
struct ImageDirectoryOptions {
  bool shuffle = false;          // all files, in a new order for each repetition
  std::optional<uint64_t> seed;  // not given: drawn once per job and saved
};
// {"image": contents of the file, "label": int64, "path": its name} for each image file (.jpg .jpeg
// .png .bmp .gif .webp .tif .tiff .ppm .pgm) in the subdirectories of `root`, in the order of their
// names. The label is the index of the subdirectory among those that contain images, sorted by
// name. NotFound if no subdirectory does.
Dataset ImageDirectory(const std::string& root, ImageDirectoryOptions options = {});
// Returns the names of these subdirectories; element n belongs to label n. Reads the directory
// during the call.
absl::StatusOr<std::vector<std::string>> ImageDirectoryClasses(const std::string& root);

}  // namespace penstock
