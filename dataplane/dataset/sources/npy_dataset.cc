// SPDX-License-Identifier: Apache-2.0
// NpyDataset: arrays that NumPy saved, each row or each whole array as an element.
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/element_views.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/sources/file_nodes.h"
#include "dataplane/dataset/sources/formats/array_file.h"
#include "dataplane/dataset/sources/indexed_source.h"
#include "dataplane/dataset/sources/kinds.h"
#include "dataplane/dataset/sources/numbered_files.h"
#include "dataplane/element/block.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr char kNpy[] = "NpyDataset";

// The node's attributes.
struct Format {
  Spec spec;
  bool rows;

  explicit Format(const Attrs& attrs)
      : spec(Get<Spec>(attrs, "spec")), rows(Get<bool>(attrs, "rows")) {}

  bool npz() const { return spec.kind() == Spec::Kind::kDict; }
};

absl::StatusOr<std::unique_ptr<ArrayFile>> OpenArrays(Files& files, const std::stop_token& stop,
                                                      const std::string& name,
                                                      const Format& format) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files.Open(name, stop));
  return ArrayFile::Open(std::move(file), format.spec, format.rows);
}

int64_t CountIn(const ArrayFile& file, const Format& format) {
  return format.rows ? file.headers()[0].dims[0] : 1;
}

absl::StatusOr<NumberedFiles> NumberElements(const std::vector<std::string>& names,
                                             const Format& format, Files& files,
                                             const std::stop_token& stop) {
  std::vector<NumberedFile> numbered;
  for (const std::string& name : names) {
    int64_t count = 1;
    if (format.rows) {
      ASSIGN_OR_RETURN(const std::unique_ptr<ArrayFile> file,
                       OpenArrays(files, stop, name, format));
      count = CountIn(*file, format);
    }
    numbered.push_back({name, count});
  }
  return NumberedFiles::Of(std::move(numbered));
}

class NpySource final : public IndexedSource {
 public:
  // A split is a range of elements for .npy, and a range of files for .npz. An open .npz file is
  // kept in memory and should be opened only once.
  NpySource(const BuildSite& site, Format format, NumberedFiles files)
      : IndexedSource(site, format.npz() ? files.file_count() : files.count(),
                      format.npz() ? files.file_count() : SplitCountFor(files.count())),
        format_(std::move(format)),
        files_(std::move(files)) {}

 private:
  Span64 Elements(Span64 split) const override {
    if (!format_.npz()) return split;
    return {files_.begin(split.begin), files_.begin(split.end)};
  }

  absl::StatusOr<Element> Make(int64_t n) override {
    const NumberedFiles::Place place = files_.Find(n);
    absl::StatusOr<Element> made = MakeOf(place);
    return made.ok() ? std::move(made) : AtNode(site(), made.status());
  }

  absl::Status MakeInto(int64_t n, ResultSink& sink) override {
    const NumberedFiles::Place place = files_.Find(n);
    absl::Status made = OpenFile(place.file);
    for (size_t i = 0; made.ok() && i < open_->headers().size(); ++i) {
      const Part part = PartOf(i, place.n);
      const auto memory = sink.Place(i, open_->headers()[i].dtype, part.dims);
      made = memory.ok() ? open_->Read(i, part.offset, *memory) : memory.status();
    }
    return AtNode(site(), made);
  }

  absl::Status MakeViews(int64_t n, ElementViews& views) override {
    const NumberedFiles::Place place = files_.Find(n);
    RETURN_IF_ERROR(AtNode(site(), OpenFile(place.file)));
    if (format_.npz()) return IndexedSource::MakeViews(n, views);
    const DType dtype = open_->headers()[0].dtype;
    const Part part = PartOf(0, place.n);
    const Tensor shape(dtype, part.dims, nullptr);
    const auto values = open_->Find(0, part.offset, static_cast<int64_t>(shape.byte_count()));
    if (!values.has_value()) return IndexedSource::MakeViews(n, views);
    views.Add(Tensor(dtype, part.dims, values->data()), open_);
    return absl::OkStatus();
  }

  // The values are always read in place, because the dims are known before anything is read.
  absl::StatusOr<Element> MakeOf(const NumberedFiles::Place& place) {
    RETURN_IF_ERROR(OpenFile(place.file));
    std::vector<LeafLayout> leaves(open_->headers().size());
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Part part = PartOf(i, place.n);
      leaves[i].dtype = open_->headers()[i].dtype;
      leaves[i].dims.assign(part.dims.begin(), part.dims.end());
    }
    ASSIGN_OR_RETURN(const BlockLayout layout, BlockLayout::Of(leaves));
    ASSIGN_OR_RETURN(OpenBlock block, NewBlock(site().pool(), layout, site().spec()));
    for (size_t i = 0; i < leaves.size(); ++i)
      RETURN_IF_ERROR(open_->Read(i, PartOf(i, place.n).offset, block.writer.data(i)));
    return std::move(block).Seal(site().spec());
  }

  // The part of an array of the open file that belongs to one element.
  struct Part {
    int64_t offset;  // bytes
    absl::Span<const int64_t> dims;
  };
  Part PartOf(size_t i, int64_t row) const {
    const NpyHeader& header = open_->headers()[i];
    const absl::Span<const int64_t> dims = header.dims;
    if (!format_.rows) return {0, dims};
    return {header.data_bytes / dims[0] * row, dims.subspan(1)};
  }

  absl::Status OpenFile(int64_t number) {
    if (open_ != nullptr && open_number_ == number) return absl::OkStatus();
    open_ = nullptr;
    ASSIGN_OR_RETURN(std::unique_ptr<ArrayFile> file,
                     OpenArrays(site().files(), site().run().stop, files_.name(number), format_));
    if (CountIn(*file, format_) != files_.begin(number + 1) - files_.begin(number)) {
      return absl::DataLossError(absl::StrCat(files_.name(number), " changed while it was read"));
    }
    open_ = std::move(file);
    open_number_ = number;
    return absl::OkStatus();
  }

  const Format format_;
  const NumberedFiles files_;
  std::shared_ptr<ArrayFile> open_;
  int64_t open_number_ = 0;
};

absl::Status CheckLeaf(const TensorSpec& leaf) {
  const bool dense = leaf.kind == TensorSpec::Kind::kDense && !leaf.optional;
  if (dense && leaf.shape.has_rank() && leaf.dtype != kString && leaf.dtype != kBFloat16)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("spec contains ", leaf.ToString(),
                   "; NumPy files hold dense tensors of known rank, of numbers or bools but not "
                   "bfloat16"));
}

absl::StatusOr<Inferred> InferNpy(const Attrs& attrs, absl::Span<const NodePtr>) {
  RETURN_IF_ERROR(CheckFiles(attrs));
  const Format format(attrs);
  bool flat = format.spec.kind() == Spec::Kind::kLeaf;
  if (format.npz())
    flat = format.spec.size() > 0 && format.spec.size() == format.spec.leaves().size();
  for (size_t i = 0; format.npz() && i < format.spec.size(); ++i)
    flat = flat && format.spec.member(i).kind() == Spec::Kind::kLeaf;
  if (!flat) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec must be a tensor or a dict of tensors, not ", format.spec.ToString()));
  }
  for (const TensorSpec& leaf : format.spec.leaves()) RETURN_IF_ERROR(CheckLeaf(leaf));
  Cardinality count = kUnknown;
  if (!format.rows)
    count = IsOverNames(attrs)
                ? static_cast<int64_t>(Get<std::vector<std::string>>(attrs, "files").size())
                : 1;
  return Inferred{format.spec, count};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildNpy(const BuildSite& site) {
  Format format(site.node().attrs);
  absl::StatusOr<NumberedFiles> files =
      NumberElements(FilesOf(site), format, site.files(), site.run().stop);
  if (!files.ok()) return AtNode(site, files.status());
  return std::make_unique<NpySource>(site, std::move(format), *std::move(files));
}

absl::StatusOr<SplitProviderPlan> PlanNpy(const Dataset::Node& node, Files& files) {
  const Format format(node.attrs);
  ASSIGN_OR_RETURN(SplitProviderPlan plan, PlanFiles(node, files));
  if (format.npz()) return plan;
  ASSIGN_OR_RETURN(const NumberedFiles numbered, NumberElements(plan.files, format, files, {}));
  plan.count = SplitCountFor(numbered.count());
  return plan;
}

NodeKind NpyNode() {
  return {.op = kNpy,
          .attrs = {{"spec", AttrType::kSpec}, {"rows", AttrType::kBool}},
          .infer = InferNpy,
          .build = BuildNpy,
          .plan = PlanNpy};
}

}  // namespace

NodeKind NpyKind() {
  return OverNames(NpyNode());
}
NodeKind NpyOfKind() {
  return OverElement(NpyNode());
}

Dataset Dataset::Npy(FileNames files, const Spec& spec, NpyOptions options) {
  return OverFiles(kNpy, files, {{"spec", spec}, {"rows", options.rows}});
}

}  // namespace penstock
