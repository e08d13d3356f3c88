// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/record_datasets.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/sources/record_reader.h"
#include "dataplane/dataset/sources/record_source.h"

namespace penstock {
namespace {

using Names = std::vector<std::string>;

absl::StatusOr<Inferred> InferFiles(const Attrs& attrs, absl::Span<const NodePtr>) {
  const Names& files = Get<Names>(attrs, "files");
  for (const std::string& file : files)
    if (file.empty()) return absl::InvalidArgumentError("files holds an empty name");
  return Inferred{Bytes(), files.empty() ? 0 : kUnknown};
}

absl::StatusOr<SplitProviderPlan> PlanFiles(const Dataset::Node& node, Files&) {
  const Names& files = Get<Names>(node.attrs, "files");
  return SplitProviderPlan{.count = static_cast<int64_t>(files.size()), .files = files};
}

template <MakeRecordReader make_reader>
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildFiles(const BuildSite& site) {
  return std::make_unique<RecordSource>(site, site.attr<Names>("files"), make_reader);
}

absl::StatusOr<Inferred> InferFileOf(const Attrs& attrs, absl::Span<const NodePtr>) {
  const Spec& argument = Get<Spec>(attrs, "argument");
  if (argument == Spec(Bytes())) return Inferred{Bytes(), kUnknown};
  return absl::InvalidArgumentError(
      absl::StrCat("file must be a scalar string, not ", argument.ToString()));
}

template <MakeRecordReader make_reader>
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildFileOf(const BuildSite& site) {
  return std::make_unique<RecordSource>(site, Names{std::string(site.argument()[0].string())},
                                        make_reader);
}

template <MakeRecordReader make_reader>
NodeKind KindOfFiles(std::string op) {
  return {.op = std::move(op),
          .attrs = {{"files", AttrType::kStrings}},
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = InferFiles,
          .build = BuildFiles<make_reader>,
          .plan = PlanFiles};
}

template <MakeRecordReader make_reader>
NodeKind KindOfArgument(std::string op) {
  return {.op = std::move(op),
          .attrs = {{"argument", AttrType::kSpec}},
          .min_inputs = 0,
          .max_inputs = 0,
          .takes_argument = true,
          .infer = InferFileOf,
          .build = BuildFileOf<make_reader>};
}

Dataset OfFiles(const char* op, Names files) {
  return Dataset(MakeNode(op, {{"files", std::move(files)}}, {}));
}

Dataset OfArgument(const char* op, const Expr& file) {
  return Dataset(MakeNode(op, {{"argument", file.spec()}}, {}, {file}));
}

}  // namespace

NodeKind TFRecordKind() {
  return KindOfFiles<ReadTFRecords>("TFRecordDataset");
}
NodeKind TFRecordOfKind() {
  return KindOfArgument<ReadTFRecords>("TFRecordDatasetOf");
}
NodeKind TextLineKind() {
  return KindOfFiles<ReadLines>("TextLineDataset");
}
NodeKind TextLineOfKind() {
  return KindOfArgument<ReadLines>("TextLineDatasetOf");
}

Dataset TFRecordDatasetMaker::operator()(std::vector<std::string> files) const {
  return OfFiles("TFRecordDataset", std::move(files));
}
Dataset TFRecordDatasetMaker::operator()(const Expr& file) const {
  return OfArgument("TFRecordDatasetOf", file);
}
Dataset TextLineDatasetMaker::operator()(std::vector<std::string> files) const {
  return OfFiles("TextLineDataset", std::move(files));
}
Dataset TextLineDatasetMaker::operator()(const Expr& file) const {
  return OfArgument("TextLineDatasetOf", file);
}

}  // namespace penstock
