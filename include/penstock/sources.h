// SPDX-License-Identifier: Apache-2.0
// Datasets of the contents of files.
//
// Files are given by name, or by an element of another dataset:
// `files.Interleave(ps::TFRecordDataset)`. Where the service divides a dataset
// (DYNAMIC), each comment says what a split is. A file that cannot be read, or
// what of it is damaged, is an error in the place of its elements, naming the
// file and where in it.
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

// One file, several, or the one that a scalar string of an outer element names.
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

// How files are compressed. A position in a compressed file is restored by
// decompressing it from its front.
enum class Compression : uint8_t { kNone, kGzip, kZlib };

// --- Records: a split is a file -----------------------------------------------
struct RecordOptions {
  Compression compression = Compression::kNone;
};
// Records of TFRecord files as scalar strings, their CRC32C checked.
struct TFRecordDatasetMaker {
  Dataset operator()(FileNames files, RecordOptions options = {}) const;
};
inline constexpr TFRecordDatasetMaker TFRecordDataset;
// Lines of text files without their ends (\n or \r\n), as scalar strings.
struct TextLineDatasetMaker {
  Dataset operator()(FileNames files, RecordOptions options = {}) const;
};
inline constexpr TextLineDatasetMaker TextLineDataset;

struct FixedLengthRecordOptions {
  int64_t header_bytes = 0;  // passed over at the front of each file
  int64_t footer_bytes = 0;  // left out at its end
  Compression compression = Compression::kNone;
};
// Records of `record_bytes` each, as scalar strings. A file whose records do not
// fill it exactly is DataLoss: at once if its size is known, at its end if it is
// compressed.
Dataset FixedLengthRecordDataset(FileNames files, int64_t record_bytes,
                                 FixedLengthRecordOptions options = {});

// --- Tar files: a split is a file ---------------------------------------------
struct TarShardsOptions {
  bool url = false;              // adds "__url__", the name of the tar file
  bool skip_incomplete = false;  // leaves out samples that lack a field
};
// Samples of tar files as WebDataset writes them: files that stand together and
// whose paths are equal up to the first dot of their last component, the key.
// An element is a dict of "__key__" and a scalar string per field. A field is an
// extension ("cls", "seg.png", letters of any case) or several of which the
// first present one counts ("jpg;jpeg;png"); the first names it. NotFound, in
// the sample's place, names the field that is missing.
// Reads ustar, pax and GNU archives, also compressed by gzip.
Dataset TarShards(FileNames files, std::vector<std::string> fields, TarShardsOptions options = {});

// --- Numbered elements: a split is a range of them ------------------------------
// The files' sizes are read when iteration starts, and a file that is missing or
// does not fit is its error. Passing over elements and restoring cost nothing.

struct TokenShardsOptions {
  DType dtype = kUInt16;          // of the tokens: an integer
  std::optional<int64_t> stride;  // from window to window; not given: `length`
  // One token more in each window: [0, length) is the input, [1, length + 1) the
  // labels. Neighbouring windows share a token where the stride is `length`.
  bool with_next_token = false;
  // What is behind a file's last whole window, if no window reaches it: left
  // out, or a shorter window. Elements then have the shape [?].
  bool drop_remainder = true;
  int64_t header_bytes = 0;  // passed over at the front of each file but .npy
};
// Windows of `length` tokens, none across two files, of files that hold nothing
// but tokens, little endian, or of one-dimensional arrays if their names end in
// .npy. Local files are mapped into memory: they must not be cut short meanwhile.
Dataset TokenShards(FileNames files, int64_t length, TokenShardsOptions options = {});

struct NpyOptions {
  bool rows = true;  // false: each file is one element
};
// Arrays that NumPy saved. With a leaf as `spec` the files are .npy; with a dict
// they are .npz, of which the members of those names are read. An element is a
// row of the arrays' first dimension (of all members together) or, with rows
// false, all that is in the file; `spec` is that of an element. What a file
// holds must fit it: same dtype, a shape that it admits, C order, little endian.
// .npz: the file at work is held in memory, its checksums checked; a split is a file.
Dataset NpyDataset(FileNames files, const Spec& spec, NpyOptions options = {});

// --- Columns of Parquet files: a split is one or more row groups ----------------
// Rows as dicts of the columns that `columns` names, each of its own type: a
// scalar, a string (of string and binary columns), or one dimension (of lists of
// numbers). A null is InvalidArgument in its row's place, unless the leaf is
// optional. The row group at work is held in memory. Unimplemented in a program
// that was built without Arrow.
Dataset Parquet(FileNames files, const Spec& columns);

// --- Images in directories: a split is a range of files, one file if shuffled ----
struct ImageDirectoryOptions {
  bool shuffle = false;          // all files, anew in each repetition
  std::optional<uint64_t> seed;  // not given: drawn once for the job, and kept
};
// {"image": contents of the file, "label": int64, "path": its name} of the image
// files (.jpg .jpeg .png .bmp .gif .webp .tif .tiff .ppm .pgm) in the
// sub-directories of `root`, in the order of their names. The label is the place
// of the sub-directory among those that hold images. NotFound if none does.
Dataset ImageDirectory(const std::string& root, ImageDirectoryOptions options = {});
// The names of those sub-directories; element n is that of label n. Reads the
// directory here and now.
absl::StatusOr<std::vector<std::string>> ImageDirectoryClasses(const std::string& root);

}  // namespace penstock
