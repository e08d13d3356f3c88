// SPDX-License-Identifier: Apache-2.0
// TokenShards: windows of token files.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/sources/file_nodes.h"
#include "dataplane/dataset/sources/formats/file_bytes.h"
#include "dataplane/dataset/sources/formats/npy_header.h"
#include "dataplane/dataset/sources/indexed_source.h"
#include "dataplane/dataset/sources/kinds.h"
#include "dataplane/dataset/sources/numbered_files.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr char kTokenShards[] = "TokenShards";

// The node's attributes. Counts are in tokens.
struct Windows {
  int64_t size;
  int64_t stride;
  bool keep_remainder;
  DType dtype;
  int64_t header_bytes;

  explicit Windows(const Attrs& attrs)
      : size(Get<int64_t>(attrs, "length") + (Get<bool>(attrs, "with_next_token") ? 1 : 0)),
        stride(Get<int64_t>(attrs, "stride")),
        keep_remainder(!Get<bool>(attrs, "drop_remainder")),
        dtype(Get<DType>(attrs, "dtype")),
        header_bytes(Get<int64_t>(attrs, "header_bytes")) {}

  // The number of windows in a file of `tokens` tokens.
  int64_t CountIn(int64_t tokens) const {
    const int64_t whole = tokens < size ? 0 : (tokens - size) / stride + 1;
    if (!keep_remainder) return whole;
    const int64_t reached = whole == 0 ? 0 : (whole - 1) * stride + size;
    return reached < tokens && whole * stride < tokens ? whole + 1 : whole;
  }
};

// An open file.
struct TokenFile {
  FileBytes bytes;
  int64_t data_offset;  // bytes
  int64_t tokens;
};

absl::StatusOr<TokenFile> OpenArray(FileBytes bytes, DType dtype) {
  ASSIGN_OR_RETURN(const NpyHeader header, ReadNpyHeader(bytes));
  RETURN_IF_ERROR(CheckNpy(header, Dense(dtype, Shape({kUnknownDim})), false, bytes.name()));
  return TokenFile{std::move(bytes), header.data_offset, header.dims[0]};
}

absl::StatusOr<TokenFile> OpenTokens(Files& files, const std::stop_token& stop,
                                     const std::string& name, const Windows& windows) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files.Open(name, stop));
  FileBytes bytes(std::move(file));
  if (name.ends_with(".npy")) return OpenArray(std::move(bytes), windows.dtype);
  const int64_t data = bytes.size() - windows.header_bytes;
  const auto token_bytes = static_cast<int64_t>(SizeOf(windows.dtype));
  if (data < 0 || data % token_bytes != 0) {
    return absl::DataLossError(absl::StrCat(
        name, " has ", bytes.size(), " bytes; minus a header of ", windows.header_bytes,
        " bytes, this is not a whole number of values of type ", Name(windows.dtype)));
  }
  return TokenFile{std::move(bytes), windows.header_bytes, data / token_bytes};
}

absl::StatusOr<NumberedFiles> NumberWindows(const std::vector<std::string>& names,
                                            const Windows& windows, Files& files,
                                            const std::stop_token& stop) {
  std::vector<NumberedFile> numbered;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const TokenFile file, OpenTokens(files, stop, name, windows));
    numbered.push_back({name, windows.CountIn(file.tokens)});
  }
  return NumberedFiles::Of(std::move(numbered));
}

class TokenSource final : public IndexedSource {
 public:
  TokenSource(const BuildSite& site, const Windows& windows, NumberedFiles files)
      : IndexedSource(site, files.count(), SplitCountFor(files.count())),
        windows_(windows),
        files_(std::move(files)) {}

 private:
  // A window of an open file.
  struct Window {
    TokenFile& file;
    int64_t begin;  // tokens
    int64_t size;
  };

  absl::StatusOr<Element> Make(int64_t n) override {
    ASSIGN_OR_RETURN(const Window window, Find(n));
    ASSIGN_OR_RETURN(const BlockLayout* layout, LayoutFor(window.size));
    ASSIGN_OR_RETURN(OpenBlock block, NewBlock(site().pool(), *layout, site().spec()));
    RETURN_IF_ERROR(ReadInto(window, block.writer.data(0)));
    return std::move(block).Seal(site().spec());
  }

  absl::Status MakeInto(int64_t n, ResultSink& sink) override {
    ASSIGN_OR_RETURN(const Window window, Find(n));
    const int64_t dims[] = {window.size};
    ASSIGN_OR_RETURN(const absl::Span<std::byte> memory, sink.Place(0, windows_.dtype, dims));
    return ReadInto(window, memory);
  }

  absl::StatusOr<Window> Find(int64_t n) {
    const NumberedFiles::Place place = files_.Find(n);
    if (!open_.has_value() || open_number_ != place.file) {
      open_.reset();
      absl::StatusOr<TokenFile> file =
          OpenTokens(site().files(), site().run().stop, files_.name(place.file), windows_);
      if (!file.ok()) return AtNode(site(), file.status());
      const int64_t expected = files_.begin(place.file + 1) - files_.begin(place.file);
      if (windows_.CountIn(file->tokens) != expected) {
        return AtNode(site(), absl::DataLossError(absl::StrCat(files_.name(place.file),
                                                               " changed while it was read")));
      }
      open_ = *std::move(file);
      open_number_ = place.file;
    }
    const int64_t begin = place.n * windows_.stride;
    return Window{*open_, begin, std::min(windows_.size, open_->tokens - begin)};
  }

  absl::Status ReadInto(const Window& window, absl::Span<std::byte> memory) {
    const auto token_bytes = static_cast<int64_t>(SizeOf(windows_.dtype));
    const absl::Status read =
        window.file.bytes.ReadOn(window.file.data_offset + window.begin * token_bytes, memory);
    return AtNode(site(), read);
  }

  absl::StatusOr<const BlockLayout*> LayoutFor(int64_t size) {
    if (size != layout_size_) {
      const LeafLayout leaf = {.dtype = windows_.dtype, .dims = {size}};
      ASSIGN_OR_RETURN(layout_, BlockLayout::Of({&leaf, 1}));
      layout_size_ = size;
    }
    return &layout_;
  }

  const Windows windows_;
  const NumberedFiles files_;
  std::optional<TokenFile> open_;
  int64_t open_number_ = 0;
  BlockLayout layout_;
  int64_t layout_size_ = -1;  // the window size that layout_ fits
};

absl::StatusOr<Inferred> InferTokenShards(const Attrs& attrs, absl::Span<const NodePtr>) {
  RETURN_IF_ERROR(CheckFiles(attrs));
  constexpr int64_t kMost = int64_t{1} << 40;
  const struct {
    const char* name;
    int64_t min;
  } limits[] = {{"length", 1}, {"stride", 1}, {"header_bytes", 0}};
  for (const auto& [name, min] : limits) {
    const int64_t value = Get<int64_t>(attrs, name);
    if (value >= min && value <= kMost) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", value, ", which is outside [", min, ", ", kMost, "]"));
  }
  const Windows windows(attrs);
  if (!IsInteger(windows.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype is ", Name(windows.dtype), "; tokens are integers"));
  }
  const Shape shape({windows.keep_remainder ? kUnknownDim : windows.size});
  return Inferred{Dense(windows.dtype, shape), kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildTokenShards(const BuildSite& site) {
  const Windows windows(site.node().attrs);
  absl::StatusOr<NumberedFiles> files =
      NumberWindows(FilesOf(site), windows, site.files(), site.run().stop);
  if (!files.ok()) return AtNode(site, files.status());
  return std::make_unique<TokenSource>(site, windows, *std::move(files));
}

absl::StatusOr<SplitProviderPlan> PlanTokenShards(const Dataset::Node& node, Files& files) {
  const auto& names = Get<std::vector<std::string>>(node.attrs, "files");
  ASSIGN_OR_RETURN(const NumberedFiles numbered,
                   NumberWindows(names, Windows(node.attrs), files, {}));
  return SplitProviderPlan{.count = SplitCountFor(numbered.count()), .files = names};
}

NodeKind TokenShardsNode() {
  return {.op = kTokenShards,
          .attrs = {{"length", AttrType::kInt},
                    {"stride", AttrType::kInt},
                    {"dtype", AttrType::kDType},
                    {"with_next_token", AttrType::kBool},
                    {"drop_remainder", AttrType::kBool},
                    {"header_bytes", AttrType::kInt}},
          .infer = InferTokenShards,
          .build = BuildTokenShards,
          .plan = PlanTokenShards};
}

}  // namespace

NodeKind TokenShardsKind() {
  return OverNames(TokenShardsNode());
}
NodeKind TokenShardsOfKind() {
  return OverElement(TokenShardsNode());
}

Dataset Dataset::TokenShards(FileNames files, int64_t length, TokenShardsOptions options) {
  return OverFiles(kTokenShards, files,
                   {{"length", length},
                    {"stride", options.stride.value_or(length)},
                    {"dtype", options.dtype},
                    {"with_next_token", options.with_next_token},
                    {"drop_remainder", options.drop_remainder},
                    {"header_bytes", options.header_bytes}});
}

}  // namespace penstock
