// SPDX-License-Identifier: Apache-2.0
// Arguments of the sources that read files (penstock/dataset.h, "Files").
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
#include "penstock/dtype.h"
#include "penstock/expr.h"
#include "penstock/spec.h"

#pragma GCC visibility push(default)
namespace penstock {

class Dataset;

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

struct RecordOptions {
  Compression compression = Compression::kNone;
};
struct FixedLengthRecordOptions {
  int64_t header_bytes = 0;  // skipped at the beginning of each file
  int64_t footer_bytes = 0;  // skipped at the end of each file
  Compression compression = Compression::kNone;
};
struct TarShardsOptions {
  bool url = false;              // adds "__url__", the name of the tar file
  bool skip_incomplete = false;  // skips samples that lack a field
};
struct TokenShardsOptions {
  DType dtype = kUInt16;          // of the tokens; an integer dtype
  std::optional<int64_t> stride;  // tokens from window to window; not given: `length`
  // Adds one token to each window: [0, length) is the input, and [1, length + 1) is the labels.
  // With stride `length`, neighboring windows share one token.
  bool with_next_token = false;
  // true: drops the tokens after the last whole window of a file. false: returns these tokens in a
  // shorter window, so elements have the shape [?].
  bool drop_remainder = true;
  int64_t header_bytes = 0;  // skipped at the beginning of each file, except .npy
};
struct NpyOptions {
  bool rows = true;  // false: each file is one element
};
struct ImageDirectoryOptions {
  bool shuffle = false;          // all files, in a new order for each repetition
  std::optional<uint64_t> seed;  // not given: drawn once per job and saved
};

// Returns the names of the subdirectories that Dataset::ImageDirectory(root) reads; the name at
// index n belongs to label n. Reads the directory during the call.
absl::StatusOr<std::vector<std::string>> ImageDirectoryClasses(const std::string& root);

// Dataset::TFRecord and Dataset::TextLine are objects, so that they can be given to Interleave().
struct TFRecordSource {
  Dataset operator()(FileNames files, RecordOptions options = {}) const;
};
struct TextLineSource {
  Dataset operator()(FileNames files, RecordOptions options = {}) const;
};

// --- Names before 0.9, which release 0.10 removes -----------------------------
using TFRecordDatasetMaker [[deprecated("TFRecordSource")]] = TFRecordSource;
using TextLineDatasetMaker [[deprecated("TextLineSource")]] = TextLineSource;
[[deprecated("Dataset::TFRecord")]] inline constexpr TFRecordSource TFRecordDataset;
[[deprecated("Dataset::TextLine")]] inline constexpr TextLineSource TextLineDataset;
[[deprecated("Dataset::FixedLengthRecord")]] Dataset FixedLengthRecordDataset(
    FileNames files, int64_t record_bytes, FixedLengthRecordOptions options = {});
[[deprecated("Dataset::TarShards")]] Dataset TarShards(FileNames files,
                                                       std::vector<std::string> fields,
                                                       TarShardsOptions options = {});
[[deprecated("Dataset::TokenShards")]] Dataset TokenShards(FileNames files, int64_t length,
                                                           TokenShardsOptions options = {});
[[deprecated("Dataset::Npy")]] Dataset NpyDataset(FileNames files, const Spec& spec,
                                                  NpyOptions options = {});
[[deprecated("Dataset::Parquet")]] Dataset Parquet(FileNames files, const Spec& columns);
[[deprecated("Dataset::ImageDirectory")]] Dataset ImageDirectory(
    const std::string& root, ImageDirectoryOptions options = {});
[[deprecated("Dataset::Range")]] Dataset RangeOf(const Expr& stop);
[[deprecated("Dataset::FromTensors")]] Dataset TensorsOf(const Expr& element);
[[deprecated("Dataset::FromTensorSlices")]] Dataset TensorSlicesOf(const Expr& element);

}  // namespace penstock
#pragma GCC visibility pop

#include "penstock/dataset.h"  // so that this header alone is enough, as before 0.9
