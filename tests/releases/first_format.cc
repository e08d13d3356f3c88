// SPDX-License-Identifier: Apache-2.0
#include "tests/releases/first_format.h"

#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "control/journal/records_proto.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::control::first_format {
namespace {

// Returns a type of that release's journal.proto.
const google::protobuf::Descriptor& TypeOf(const std::string& name) {
  static const google::protobuf::DescriptorPool* const pool = [] {
    std::ifstream file(PENSTOCK_RELEASES "/first_format.binpb", std::ios::binary);
    google::protobuf::FileDescriptorSet files;
    PENSTOCK_CHECK(files.ParseFromIstream(&file));
    auto* made = new google::protobuf::DescriptorPool;
    for (const auto& its : files.file()) PENSTOCK_CHECK(made->BuildFile(its) != nullptr);
    return made;
  }();
  const auto* type = pool->FindMessageTypeByName("penstock.control.wire." + name);
  PENSTOCK_CHECK(type != nullptr);
  return *type;
}

}  // namespace

// CheckKnown() is as it was in that release, except for the end of its error's text.
absl::Status Read(std::string_view record) {
  return CheckKnown(record, TypeOf("Changes"));
}

absl::Status ReadSnapshot(const std::vector<std::string>& pieces) {
  std::set<uint64_t> iterations;
  for (const std::string& bytes : pieces) {
    RETURN_IF_ERROR(CheckKnown(bytes, TypeOf("Snapshot")));
    wire::Snapshot piece;
    if (!piece.ParseFromString(bytes)) return absl::DataLossError("a piece cannot be parsed");
    for (const wire::Iteration& iteration : piece.iterations()) {
      if (!iterations.insert(iteration.id()).second)
        return absl::DataLossError(absl::StrCat("iteration ", iteration.id(), " is in two pieces"));
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::control::first_format
