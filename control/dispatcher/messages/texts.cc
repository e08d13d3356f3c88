// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/messages/texts.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "control/observe/refused.h"
#include "control/protocol/scoped_name.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

absl::Status Check(const char* what, size_t size, size_t limit, const char* unit) {
  if (size <= limit) return absl::OkStatus();
  CountRefused(Port::kDispatcher, Refused::kTooLong);
  return absl::InvalidArgumentError(
      absl::StrCat(what, " has ", size, " ", unit, "; the limit is ", limit));
}

absl::Status CheckText(const char* what, std::string_view text, size_t limit) {
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); })) {
    return absl::InvalidArgumentError(absl::StrCat(what, " must not contain control characters"));
  }
  return Check(what, text.size(), limit, "bytes");
}

}  // namespace

absl::Status CheckTexts(const RegisterDatasetRequest& request) {
  return CheckText("dataset_id", NameIn(request.dataset_id), kMaxNameBytes);
}

absl::Status CheckTexts(const GetOrCreateJobRequest& request) {
  RETURN_IF_ERROR(CheckText("job_name", NameIn(request.name), kMaxNameBytes));
  return CheckText("run_id", request.run_id, kMaxNameBytes);
}

absl::Status CheckTexts(const WorkerHello& hello) {
  RETURN_IF_ERROR(CheckText("worker_address", hello.address, kMaxWorkerTextBytes));
  RETURN_IF_ERROR(CheckText("the worker's release", hello.release, kMaxReleaseBytes));
  RETURN_IF_ERROR(Check("worker_tags", hello.tags.size(), kMaxTags, "tags"));
  for (const std::string& tag : hello.tags) {
    RETURN_IF_ERROR(CheckText("a worker tag", tag, kMaxWorkerTextBytes));
  }
  RETURN_IF_ERROR(
      Check("the worker's list of transports", hello.offers.size(), kMaxOffers, "entries"));
  for (const TransferOffer& offer : hello.offers) {
    RETURN_IF_ERROR(CheckText("the name of a transport", offer.protocol, kMaxProtocolBytes));
    RETURN_IF_ERROR(CheckText("a transport's address", offer.address, kMaxWorkerTextBytes));
    RETURN_IF_ERROR(
        CheckText("a transport's compatibility", offer.compatibility, kMaxWorkerTextBytes));
  }
  return absl::OkStatus();
}

absl::Status CheckTexts(const ClientHello& hello) {
  return CheckText("the client's release", hello.release, kMaxReleaseBytes);
}

}  // namespace penstock::control
