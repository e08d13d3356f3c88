// SPDX-License-Identifier: Apache-2.0
// TarShards: samples of tar files, grouped as WebDataset does.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/sources/file_nodes.h"
#include "dataplane/dataset/sources/file_source.h"
#include "dataplane/dataset/sources/formats/tar_reader.h"
#include "dataplane/dataset/sources/kinds.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Strings = std::vector<std::string>;
constexpr char kTarShards[] = "TarShards";
constexpr char kKey[] = "__key__";
constexpr char kUrl[] = "__url__";

// The extensions that make up a sample.
struct SampleFields {
  struct Place {
    size_t field;  // index into `names`
    size_t rank;   // among the field's alternatives; the lowest wins
  };
  Strings declared;  // "jpg;jpeg;png", for messages
  Strings names;     // "jpg"
  std::map<std::string, Place, std::less<>> extensions;
};

absl::StatusOr<SampleFields> ParseFields(const Strings& declared) {
  SampleFields fields;
  for (const std::string& field : declared) {
    Strings alternatives = absl::StrSplit(field, ';');
    for (size_t rank = 0; rank < alternatives.size(); ++rank) {
      std::string extension = absl::AsciiStrToLower(alternatives[rank]);
      if (extension.empty() || extension == kKey || extension == kUrl) {
        return absl::InvalidArgumentError(absl::StrCat("fields contains '", field, "', in which '",
                                                       extension, "' is not a file extension"));
      }
      if (rank == 0) fields.names.push_back(extension);
      const auto [it, added] =
          fields.extensions.insert({std::move(extension), {fields.declared.size(), rank}});
      if (!added)
        return absl::InvalidArgumentError(absl::StrCat("fields contains ", it->first, " twice"));
    }
    fields.declared.push_back(field);
  }
  return fields;
}

// The key and extension of a file name. WebDataset's rule: the key ends at the first dot of the
// last path component. A file belongs to no sample if that component has no dot, or nothing before
// the dot.
struct SampleName {
  std::string_view key;
  std::string extension;  // in lower case
};
std::optional<SampleName> SplitName(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base) return std::nullopt;
  // A top-level file named __…__ describes the whole archive.
  if (base == 0 && name.starts_with("__") && name.ends_with("__")) return std::nullopt;
  return SampleName{.key = name.substr(0, dot),
                    .extension = absl::AsciiStrToLower(std::string(name.substr(dot + 1)))};
}

class SampleReader final : public ElementReader {
 public:
  SampleReader(TarReader tar, const SampleFields& fields, const BuildSite& site)
      : tar_(std::move(tar)), fields_(fields), site_(site), found_(fields.names.size()) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    ASSIGN_OR_RETURN(const bool more, FindSample(/*contents=*/true));
    if (!more) return std::nullopt;
    return MakeSample();
  }

  absl::StatusOr<bool> Skip() override { return FindSample(/*contents=*/false); }

  int64_t position() const override { return ahead_ ? ahead_->position : tar_.position(); }

 private:
  struct Found {
    std::optional<size_t> rank;  // of the alternative found
    std::string contents;
  };

  // Finds the next complete sample, and reads it into found_ if `contents` is true. The place of an
  // incomplete sample is taken by an error.
  absl::StatusOr<bool> FindSample(bool contents) {
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, ReadSample(contents));
      if (!more) return false;
      if (!second_.empty()) return Ambiguous();
      if (Complete()) return true;
      if (!failure_.ok()) return tar_.GiveUp(std::exchange(failure_, absl::OkStatus()));
      if (!site_.attr<bool>("skip_incomplete")) return Incomplete();
      RETURN_IF_ERROR(site_.CheckCancelled());
    }
  }

  // Reads the files of one sample. Returns false at the end. If the archive has an error after the
  // sample, keeps the error in failure_.
  absl::StatusOr<bool> ReadSample(bool contents) {
    if (!failure_.ok()) return tar_.GiveUp(std::exchange(failure_, absl::OkStatus()));
    if (!ahead_.has_value()) {
      absl::StatusOr<std::optional<TarEntry>> first = NextOfASample();
      if (!first.ok()) return tar_.GiveUp(first.status());
      ahead_ = *std::move(first);
    }
    if (!ahead_.has_value()) return false;
    key_ = std::string(SplitName(ahead_->name)->key);
    present_.clear();
    second_.clear();
    for (Found& found : found_) found.rank.reset();
    const int64_t begin = ahead_->position;
    while (ahead_.has_value() && SplitName(ahead_->name)->key == key_) {
      const absl::Status taken = Take(*ahead_, contents);
      ahead_.reset();
      if (taken.ok()) {
        absl::StatusOr<std::optional<TarEntry>> next = NextOfASample();
        failure_ = next.status();
        if (next.ok()) ahead_ = *std::move(next);
      }
      if (absl::IsCancelled(taken) || absl::IsCancelled(failure_)) tar_.Seek(begin);
      if (!taken.ok()) return tar_.GiveUp(taken);
      if (absl::IsCancelled(failure_)) return std::exchange(failure_, absl::OkStatus());
    }
    return true;
  }

  absl::StatusOr<std::optional<TarEntry>> NextOfASample() {
    for (;;) {
      ASSIGN_OR_RETURN(std::optional<TarEntry> entry, tar_.NextFile());
      if (!entry.has_value() || SplitName(entry->name).has_value()) return entry;
      RETURN_IF_ERROR(tar_.PassOver(*entry));
    }
  }

  absl::Status Take(const TarEntry& entry, bool contents) {
    std::string extension = SplitName(entry.name)->extension;
    if (std::find(present_.begin(), present_.end(), extension) != present_.end()) {
      second_ = std::move(extension);
      return tar_.PassOver(entry);
    }
    const auto place = fields_.extensions.find(extension);
    present_.push_back(std::move(extension));
    if (place == fields_.extensions.end()) return tar_.PassOver(entry);
    Found& found = found_[place->second.field];
    if (found.rank.has_value() && *found.rank < place->second.rank) return tar_.PassOver(entry);
    found.rank = place->second.rank;
    return contents ? tar_.Read(entry, found.contents) : tar_.PassOver(entry);
  }

  bool Complete() const {
    return std::all_of(found_.begin(), found_.end(),
                       [](const Found& found) { return found.rank.has_value(); });
  }

  absl::Status Incomplete() const {
    size_t missing = 0;
    while (found_[missing].rank.has_value()) ++missing;
    return absl::NotFoundError(absl::StrCat(tar_.name(), ": sample ", key_, " has no file .",
                                            fields_.declared[missing],
                                            "; its files are: ", absl::StrJoin(present_, " ")));
  }

  absl::Status Ambiguous() const {
    return absl::DataLossError(
        absl::StrCat(tar_.name(), ": sample ", key_, " has more than one file .", second_));
  }

  absl::StatusOr<std::optional<Element>> MakeSample() {
    const Spec& spec = site_.spec();
    std::vector<Tensor> tensors(spec.size());
    std::vector<std::array<uint64_t, 2>> offsets(spec.size());
    for (size_t i = 0; i < spec.size(); ++i) {
      const std::string_view value = ValueOf(spec.key(i));
      offsets[i] = {0, value.size()};
      tensors[i] = Tensor(kString, {}, offsets[i].data(), value.data());
    }
    ASSIGN_OR_RETURN(Element element, MakeElement(site_.pool(), tensors, spec));
    return element;
  }

  std::string_view ValueOf(const std::string& member) const {
    if (member == kKey) return key_;
    if (member == kUrl) return tar_.name();
    return found_[fields_.extensions.find(member)->second.field].contents;
  }

  TarReader tar_;
  const SampleFields fields_;
  const BuildSite site_;
  std::optional<TarEntry> ahead_;  // first file of the next sample, not read yet
  absl::Status failure_;           // takes the place of the next sample
  std::string key_;                // of the current sample, like the next three
  Strings present_;                // extensions
  std::string second_;             // an extension that occurs more than once
  std::vector<Found> found_;       // fields, in the order of fields_.names
};

absl::StatusOr<Inferred> InferTarShards(const Attrs& attrs, absl::Span<const NodePtr>) {
  RETURN_IF_ERROR(CheckFiles(attrs));
  ASSIGN_OR_RETURN(const SampleFields fields, ParseFields(Get<Strings>(attrs, "fields")));
  std::vector<std::pair<std::string, Spec>> members = {{kKey, Bytes()}};
  if (Get<bool>(attrs, "url")) members.emplace_back(kUrl, Bytes());
  for (const std::string& name : fields.names) members.emplace_back(name, Bytes());
  const bool nothing = IsOverNames(attrs) && Get<Strings>(attrs, "files").empty();
  return Inferred{Spec::Dict(std::move(members)), nothing ? 0 : kUnknown};
}

// A tar archive begins with a file name, and no file name begins with gzip's magic bytes.
absl::StatusOr<Compression> CompressionOfFile(File& file) {
  char magic[2] = {};
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(0, absl::MakeSpan(magic)));
  const bool gzip = got == 2 && magic[0] == '\x1f' && magic[1] == '\x8b';
  return gzip ? Compression::kGzip : Compression::kNone;
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildTarShards(const BuildSite& site) {
  ASSIGN_OR_RETURN(SampleFields fields, ParseFields(site.attr<Strings>("fields")));
  auto make_samples = [site, fields = std::move(fields)](
                          std::unique_ptr<File> file,
                          int64_t position) -> absl::StatusOr<std::unique_ptr<ElementReader>> {
    ASSIGN_OR_RETURN(const Compression compression, CompressionOfFile(*file));
    return std::make_unique<SampleReader>(
        TarReader(BufferedFile(std::move(file), position, compression)), fields, site);
  };
  return std::make_unique<FileSource>(site, FilesOf(site), std::move(make_samples));
}

NodeKind TarShardsNode() {
  return {.op = kTarShards,
          .attrs = {{"fields", AttrType::kStrings},
                    {"url", AttrType::kBool},
                    {"skip_incomplete", AttrType::kBool}},
          .infer = InferTarShards,
          .build = BuildTarShards,
          .plan = PlanFiles};
}

}  // namespace

NodeKind TarShardsKind() {
  return OverNames(TarShardsNode());
}
NodeKind TarShardsOfKind() {
  return OverElement(TarShardsNode());
}

Dataset Dataset::TarShards(FileNames files, std::vector<std::string> fields,
                           TarShardsOptions options) {
  return OverFiles(kTarShards, files,
                   {{"fields", std::move(fields)},
                    {"url", options.url},
                    {"skip_incomplete", options.skip_incomplete}});
}

}  // namespace penstock
