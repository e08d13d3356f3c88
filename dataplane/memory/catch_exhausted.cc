// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/catch_exhausted.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "control/sync/thread.h"

namespace penstock {
namespace {

constexpr char kMark[] = "penstock.exhausted";

absl::Status Exhausted(std::string_view name, std::string_view what) {
  return OfReading(
      absl::ResourceExhaustedError(absl::StrCat(std::string(name), ": ", std::string(what))));
}

}  // namespace

absl::Status MemoryRanOut(std::string_view name) {
  return Exhausted(name,
                   "the process has no memory left for this element; make elements smaller, or "
                   "raise the process's limit (ulimit -v, the container's limit)");
}

absl::Status ThreadsRanOut(std::string_view name, const std::system_error& error) {
  return OfReading(NoThread(name, error.what()));
}

bool IsExhausted(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && status.GetPayload(kMark).has_value();
}

absl::Status OfReading(absl::Status status) {
  if (absl::IsResourceExhausted(status)) status.SetPayload(kMark, absl::Cord());
  return status;
}

absl::Status OfElement(absl::Status status) {
  status.ErasePayload(kMark);
  return status;
}

}  // namespace penstock
