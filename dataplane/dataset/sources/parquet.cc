// SPDX-License-Identifier: Apache-2.0
// Parquet: rows of Parquet files. parquet.cc is built if Arrow is available; otherwise
// parquet_missing.cc is built in its place.
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/element_sink.h"
#include "dataplane/dataset/sources/file_nodes.h"
#include "dataplane/dataset/sources/formats/parquet_file.h"
#include "dataplane/dataset/sources/indexed_source.h"
#include "dataplane/dataset/sources/kinds.h"
#include "dataplane/dataset/sources/numbered_files.h"
#include "include/status_macros.h"
#include "penstock/sources.h"

namespace penstock {
namespace {

constexpr char kParquet[] = "Parquet";

// All row groups, in file order. Each group is numbered as if it were a file.
struct RowGroups {
  NumberedFiles numbered;
  std::vector<int64_t> numbers;  // index of each group in its file
};

absl::StatusOr<std::unique_ptr<ParquetFile>> OpenParquet(Files& files, const std::stop_token& stop,
                                                         const std::string& name,
                                                         const Spec& columns) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files.Open(name, stop));
  return ParquetFile::Open(std::move(file), columns);
}

absl::StatusOr<RowGroups> NumberRows(const std::vector<std::string>& names, const Spec& columns,
                                     Files& files, const std::stop_token& stop) {
  std::vector<NumberedFile> groups;
  std::vector<int64_t> numbers;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const std::unique_ptr<ParquetFile> file,
                     OpenParquet(files, stop, name, columns));
    for (size_t i = 0; i < file->group_rows().size(); ++i) {
      groups.push_back({name, file->group_rows()[i]});
      numbers.push_back(static_cast<int64_t>(i));
    }
  }
  ASSIGN_OR_RETURN(NumberedFiles numbered, NumberedFiles::Of(std::move(groups)));
  return RowGroups{std::move(numbered), std::move(numbers)};
}

class ParquetSource final : public IndexedSource {
 public:
  ParquetSource(const BuildSite& site, RowGroups groups)
      : IndexedSource(site, groups.numbered.file_count(),
                      SplitCountFor(groups.numbered.file_count())),
        groups_(std::move(groups)) {}

 private:
  Span64 Elements(Span64 split) const override {
    return {groups_.numbered.begin(split.begin), groups_.numbered.begin(split.end)};
  }

  absl::StatusOr<Element> Make(int64_t n) override {
    ElementSink sink(site().pool(), site().spec());
    RETURN_IF_ERROR(MakeInto(n, sink));
    return std::move(sink).Finish();
  }

  absl::Status MakeInto(int64_t n, ResultSink& sink) override {
    const NumberedFiles::Place place = groups_.numbered.Find(n);
    absl::Status made = OpenFile(groups_.numbered.name(place.file));
    const int64_t group = groups_.numbers[place.file];
    if (made.ok()) made = open_->Load(group);
    if (made.ok()) made = open_->Fill(place.n, sink);
    return AtNode(site(), made);
  }

  absl::Status OpenFile(const std::string& name) {
    if (open_ != nullptr && open_name_ == name) return absl::OkStatus();
    open_ = nullptr;
    ASSIGN_OR_RETURN(std::unique_ptr<ParquetFile> file,
                     OpenParquet(site().files(), site().run().stop, name, site().spec()));
    const auto groups = static_cast<int64_t>(file->group_rows().size());
    for (int64_t i = 0; i < groups_.numbered.file_count(); ++i) {
      if (groups_.numbered.name(i) != name) continue;
      const int64_t rows = groups_.numbered.begin(i + 1) - groups_.numbered.begin(i);
      const int64_t group = groups_.numbers[i];
      if (group >= groups || file->group_rows()[group] != rows)
        return absl::DataLossError(absl::StrCat(name, " changed while it was read"));
    }
    open_ = std::move(file);
    open_name_ = name;
    return absl::OkStatus();
  }

  const RowGroups groups_;
  std::unique_ptr<ParquetFile> open_;
  std::string open_name_;
};

absl::StatusOr<Inferred> InferParquet(const Attrs& attrs, absl::Span<const NodePtr>) {
  RETURN_IF_ERROR(CheckFiles(attrs));
  const Spec& columns = Get<Spec>(attrs, "columns");
  bool flat = columns.kind() == Spec::Kind::kDict && columns.size() > 0;
  for (size_t i = 0; flat && i < columns.size(); ++i)
    flat = columns.member(i).kind() == Spec::Kind::kLeaf;
  if (!flat) {
    return absl::InvalidArgumentError(
        absl::StrCat("columns must be a dict of tensors, not ", columns.ToString()));
  }
  for (const TensorSpec& leaf : columns.leaves()) RETURN_IF_ERROR(CheckParquetLeaf(leaf));
  return Inferred{columns, kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildParquet(const BuildSite& site) {
  absl::StatusOr<RowGroups> groups =
      NumberRows(FilesOf(site), site.spec(), site.files(), site.run().stop);
  if (!groups.ok()) return AtNode(site, groups.status());
  return std::make_unique<ParquetSource>(site, *std::move(groups));
}

absl::StatusOr<SplitProviderPlan> PlanParquet(const Dataset::Node& node, Files& files) {
  const auto& names = Get<std::vector<std::string>>(node.attrs, "files");
  ASSIGN_OR_RETURN(const RowGroups groups, NumberRows(names, node.spec, files, {}));
  return SplitProviderPlan{.count = SplitCountFor(groups.numbered.file_count()), .files = names};
}

NodeKind ParquetNode() {
  return {.op = kParquet,
          .attrs = {{"columns", AttrType::kSpec}},
          .infer = InferParquet,
          .build = BuildParquet,
          .plan = PlanParquet};
}

}  // namespace

std::vector<NodeKind> ParquetKinds() {
  return {OverNames(ParquetNode()), OverElement(ParquetNode())};
}

Dataset Dataset::Parquet(FileNames files, const Spec& columns) {
  return OverFiles(kParquet, files, {{"columns", columns}});
}

}  // namespace penstock
