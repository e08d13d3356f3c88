// SPDX-License-Identifier: Apache-2.0
// ImageDirectory: image files in sub-directories. Each sub-directory is a class.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/sources/file_nodes.h"
#include "dataplane/dataset/sources/indexed_source.h"
#include "dataplane/dataset/sources/kinds.h"
#include "dataplane/dataset/sources/listed_names.h"
#include "include/status_macros.h"
#include "penstock/sources.h"

namespace penstock {
namespace {

using Names = std::vector<std::string>;
constexpr char kImageDirectory[] = "ImageDirectory";
constexpr const char* kExtensions[] = {".jpg",  ".jpeg", ".png",  ".bmp", ".gif",
                                       ".webp", ".tif",  ".tiff", ".ppm", ".pgm"};
// The leaves in the order of their keys.
enum Leaf : size_t { kImage = 0, kLabel = 1, kPath = 2 };

bool IsImage(const std::string& name) {
  return std::any_of(std::begin(kExtensions), std::end(kExtensions), [&](const char* extension) {
    return absl::EndsWithIgnoreCase(name, extension);
  });
}

// Returns a glob pattern that matches only this directory.
std::string Literally(std::string_view name) {
  std::string pattern;
  for (const char c : name) {
    if (c == '*' || c == '?' || c == '[') {
      pattern.append({'[', c, ']'});
    } else {
      pattern.push_back(c);
    }
  }
  return pattern;
}

absl::StatusOr<Names> ListImages(const std::string& root, Files& files,
                                 const std::stop_token& stop) {
  std::string_view directory = root;
  while (directory.size() > 1 && directory.ends_with('/')) directory.remove_suffix(1);
  const std::string pattern = absl::StrCat(Literally(directory), "/*/*");
  ASSIGN_OR_RETURN(Names names, files.Glob(pattern, stop));
  names.erase(std::remove_if(names.begin(), names.end(),
                             [](const std::string& name) { return !IsImage(name); }),
              names.end());
  if (!names.empty()) return names;
  return absl::NotFoundError(
      absl::StrCat("no subdirectory of ", root, " contains images (.jpg, .png …)"));
}

absl::StatusOr<Names> ListNode(const Attrs& attrs, Files& files, const std::stop_token& stop) {
  return ListImages(Get<std::string>(attrs, "root"), files, stop);
}

// The sub-directory of a listed file.
std::string_view ClassOf(std::string_view name) {
  name = name.substr(0, name.rfind('/'));
  return name.substr(name.rfind('/') + 1);
}

Names ClassesOf(const Names& names) {
  Names classes;
  for (const std::string& name : names) classes.emplace_back(ClassOf(name));
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return classes;
}

int64_t SplitCount(bool shuffled, int64_t files) {
  return shuffled ? files : SplitCountFor(files);
}

class ImageDirectorySource final : public IndexedSource {
 public:
  ImageDirectorySource(const BuildSite& site, ListedNames names)
      : IndexedSource(site, names.order.size(),
                      SplitCount(site.attr<bool>("shuffle"), names.order.size())),
        names_(std::move(names)),
        classes_(ClassesOf(names_.sorted)) {}

 private:
  absl::StatusOr<Element> Make(int64_t n) override {
    const std::string& name = names_.sorted[names_.order[n]];
    absl::StatusOr<Element> element = Read(name);
    if (!element.ok()) return AtNode(site(), element.status());
    return element;
  }

  // Reads the file directly into the element's memory.
  absl::StatusOr<Element> Read(const std::string& name) {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                     site().files().Open(name, site().run().stop));
    const auto bytes = static_cast<uint64_t>(file->size());
    LeafLayout leaves[3];
    leaves[kImage] = {.dtype = kString, .string_bytes = bytes};
    leaves[kLabel] = {.dtype = kInt64};
    leaves[kPath] = {.dtype = kString, .string_bytes = name.size()};
    ASSIGN_OR_RETURN(const BlockLayout layout, BlockLayout::Of(leaves));
    ASSIGN_OR_RETURN(OpenBlock block, NewBlock(site().pool(), layout, site().spec()));
    const absl::Span<char> image = block.writer.OpenString(kImage, 0, bytes);
    ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, image));
    if (got < image.size()) {
      return absl::DataLossError(
          absl::StrCat(name, " became shorter while it was read: it ends at ", got));
    }
    *block.writer.data_as<int64_t>(kLabel) =
        std::lower_bound(classes_.begin(), classes_.end(), ClassOf(name)) - classes_.begin();
    block.writer.SetString(kPath, 0, name);
    return std::move(block).Seal(site().spec());
  }

  const ListedNames names_;
  const Names classes_;
};

absl::StatusOr<Inferred> InferImageDirectory(const Attrs& attrs, absl::Span<const NodePtr>) {
  if (Get<std::string>(attrs, "root").empty())
    return absl::InvalidArgumentError("root must not be empty");
  return Inferred{Spec::Dict({{"image", Bytes()}, {"label", Scalar(kInt64)}, {"path", Bytes()}}),
                  kUnknown};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildImageDirectory(const BuildSite& site) {
  ASSIGN_OR_RETURN(ListedNames names, NamesAt(site, ListNode));
  return std::make_unique<ImageDirectorySource>(site, std::move(names));
}

absl::StatusOr<SplitProviderPlan> PlanImageDirectory(const Dataset::Node& node, Files& files) {
  ASSIGN_OR_RETURN(SplitProviderPlan plan, PlanNames(node, files, ListNode));
  plan.count = SplitCount(plan.shuffled, plan.count);
  return plan;
}

}  // namespace

NodeKind ImageDirectoryKind() {
  return {.op = kImageDirectory,
          .attrs = {{"root", AttrType::kString},
                    {"shuffle", AttrType::kBool},
                    {"seed", AttrType::kInt, false}},
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = InferImageDirectory,
          .build = BuildImageDirectory,
          .plan = PlanImageDirectory};
}

Dataset Dataset::ImageDirectory(const std::string& root, ImageDirectoryOptions options) {
  Attrs attrs = {{"root", root}, {"shuffle", options.shuffle}};
  if (options.seed.has_value()) attrs.emplace("seed", static_cast<int64_t>(*options.seed));
  return DatasetOf(MakeNode(kImageDirectory, std::move(attrs), {}));
}

absl::StatusOr<std::vector<std::string>> ImageDirectoryClasses(const std::string& root) {
  ASSIGN_OR_RETURN(const Names names, ListImages(root, DefaultFiles(), {}));
  return ClassesOf(names);
}

}  // namespace penstock
