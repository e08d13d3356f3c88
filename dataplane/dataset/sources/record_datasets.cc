// SPDX-License-Identifier: Apache-2.0
// TFRecordDataset, TextLineDataset and FixedLengthRecordDataset: records of named files, or of a
// file that an element names.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/sources/file_nodes.h"
#include "dataplane/dataset/sources/file_source.h"
#include "dataplane/dataset/sources/formats/record_reader.h"
#include "dataplane/dataset/sources/kinds.h"
#include "dataplane/dataset/sources/scalar_string.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr char kTFRecord[] = "TFRecordDataset";
constexpr char kTextLine[] = "TextLineDataset";
constexpr char kFixedLength[] = "FixedLengthRecordDataset";

// Returns each record as an element.
class RecordElements final : public ElementReader {
 public:
  RecordElements(std::unique_ptr<RecordReader> records, Pool& pool)
      : records_(std::move(records)), pool_(pool) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> record, records_->Next());
    if (!record.has_value()) return std::nullopt;
    return ScalarString(pool_, *record);
  }
  absl::StatusOr<bool> Skip() override { return records_->Skip(); }
  int64_t position() const override { return records_->position(); }

 private:
  std::unique_ptr<RecordReader> records_;
  Pool& pool_;
};

// --- Compression as an attribute with tf.data's names; absent for kNone --------

const char* CompressionName(Compression compression) {
  return compression == Compression::kGzip ? "GZIP" : "ZLIB";
}

absl::StatusOr<Compression> CompressionOfAttrs(const Attrs& attrs) {
  auto it = attrs.find("compression");
  if (it == attrs.end()) return Compression::kNone;
  const std::string& name = std::get<std::string>(it->second);
  for (Compression compression : {Compression::kGzip, Compression::kZlib})
    if (name == CompressionName(compression)) return compression;
  return absl::InvalidArgumentError(
      absl::StrCat("compression must be GZIP or ZLIB, not ", absl::CHexEscape(name)));
}

void AddCompression(Compression compression, Attrs& attrs) {
  if (compression != Compression::kNone)
    attrs.emplace("compression", std::string(CompressionName(compression)));
}

// --- Nodes ---------------------------------------------------------------------

absl::StatusOr<Inferred> InferRecords(const Attrs& attrs, absl::Span<const NodePtr>) {
  RETURN_IF_ERROR(CheckFiles(attrs));
  RETURN_IF_ERROR(CompressionOfAttrs(attrs).status());
  const bool nothing = IsOverNames(attrs) && Get<std::vector<std::string>>(attrs, "files").empty();
  return Inferred{Bytes(), nothing ? 0 : kUnknown};
}

absl::StatusOr<Inferred> InferFixedLength(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  const struct {
    const char* name;
    int64_t min;
    int64_t max;
  } limits[] = {{"record_bytes", 1, int64_t{1} << 32},
                {"header_bytes", 0, int64_t{1} << 40},
                {"footer_bytes", 0, int64_t{1} << 40}};
  for (const auto& [name, min, max] : limits) {
    const int64_t value = Get<int64_t>(attrs, name);
    if (value >= min && value <= max) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", value, ", which is outside [", min, ", ", max, "]"));
  }
  return InferRecords(attrs, inputs);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildRecords(const BuildSite& site,
                                                           MakeRecordReader make_reader) {
  ASSIGN_OR_RETURN(const Compression compression, CompressionOfAttrs(site.node().attrs));
  Pool& pool = site.pool();
  auto make_elements = [compression, make_reader = std::move(make_reader), &pool](
                           std::unique_ptr<File> file,
                           int64_t position) -> absl::StatusOr<std::unique_ptr<ElementReader>> {
    return std::make_unique<RecordElements>(
        make_reader(BufferedFile(std::move(file), position, compression)), pool);
  };
  return std::make_unique<FileSource>(site, FilesOf(site), std::move(make_elements));
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildTFRecord(const BuildSite& site) {
  return BuildRecords(site, ReadTFRecords);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildTextLine(const BuildSite& site) {
  return BuildRecords(site, ReadLines);
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildFixedLength(const BuildSite& site) {
  const FixedLength format = {.record_bytes = site.attr<int64_t>("record_bytes"),
                              .header_bytes = site.attr<int64_t>("header_bytes"),
                              .footer_bytes = site.attr<int64_t>("footer_bytes")};
  return BuildRecords(
      site, [format](BufferedFile file) { return ReadFixedLength(std::move(file), format); });
}

NodeKind TFRecord() {
  return {.op = kTFRecord,
          .attrs = {{"compression", AttrType::kString, false}},
          .infer = InferRecords,
          .build = BuildTFRecord,
          .plan = PlanFiles};
}

NodeKind TextLine() {
  NodeKind kind = TFRecord();
  kind.op = kTextLine;
  kind.build = BuildTextLine;
  return kind;
}

NodeKind FixedLengthRecord() {
  return {.op = kFixedLength,
          .attrs = {{"record_bytes", AttrType::kInt},
                    {"header_bytes", AttrType::kInt},
                    {"footer_bytes", AttrType::kInt},
                    {"compression", AttrType::kString, false}},
          .infer = InferFixedLength,
          .build = BuildFixedLength,
          .plan = PlanFiles};
}

Dataset OfRecords(const char* op, const FileNames& files, Compression compression,
                  Attrs attrs = {}) {
  AddCompression(compression, attrs);
  return OverFiles(op, files, std::move(attrs));
}

}  // namespace

NodeKind TFRecordKind() {
  return OverNames(TFRecord());
}
NodeKind TFRecordOfKind() {
  return OverElement(TFRecord());
}
NodeKind TextLineKind() {
  return OverNames(TextLine());
}
NodeKind TextLineOfKind() {
  return OverElement(TextLine());
}
NodeKind FixedLengthRecordKind() {
  return OverNames(FixedLengthRecord());
}
NodeKind FixedLengthRecordOfKind() {
  return OverElement(FixedLengthRecord());
}

Dataset TFRecordSource::operator()(FileNames files, RecordOptions options) const {
  return OfRecords(kTFRecord, files, options.compression);
}

Dataset TextLineSource::operator()(FileNames files, RecordOptions options) const {
  return OfRecords(kTextLine, files, options.compression);
}

Dataset Dataset::FixedLengthRecord(FileNames files, int64_t record_bytes,
                                   FixedLengthRecordOptions options) {
  return OfRecords(kFixedLength, files, options.compression,
                   {{"record_bytes", record_bytes},
                    {"header_bytes", options.header_bytes},
                    {"footer_bytes", options.footer_bytes}});
}

}  // namespace penstock
