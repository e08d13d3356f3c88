// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/dataset_fetcher.h"

#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

constexpr const char* kParts[] = {"definition", "summary"};

absl::Status WrongPart(const wire::DatasetRequest& request, std::string_view what) {
  return absl::DataLossError(absl::StrCat(
      "the ", kParts[request.piece().part() - 1], " of dataset ", request.dataset_id(), " ",
      std::string(what), "; it was damaged on the way, or replaced meanwhile: read it again"));
}

}  // namespace

std::string ContentDigest(std::string_view content) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

absl::StatusOr<GetDatasetAnswer> DatasetFetcher::Fetch(std::string_view id, uint64_t edition,
                                                       Ask ask) {
  wire::DatasetRequest request;
  request.set_dataset_id(std::string(id));
  request.set_edition(edition);
  request.mutable_piece();  // an older dispatcher ignores it, and answers with the whole dataset
  ASSIGN_OR_RETURN(const wire::GetDatasetAnswer list, ask(request));
  if (list.parts().empty()) return FromWire(list);
  if (list.parts_size() != std::ssize(kParts)) {
    return absl::FailedPreconditionError(
        absl::StrCat("dataset ", list.dataset_id(), " has ", list.parts_size(),
                     " parts; run the same release as the dispatcher"));
  }
  request.mutable_piece()->set_part(1);
  ASSIGN_OR_RETURN(const Content definition, FetchPart(request, list.parts(0), ask));
  request.mutable_piece()->set_part(2);
  ASSIGN_OR_RETURN(const Content summary, FetchPart(request, list.parts(1), ask));
  wire::GetDatasetAnswer whole;
  whole.set_dataset_id(list.dataset_id());
  if (!whole.mutable_summary()->ParseFromString(*summary))
    return WrongPart(request, "cannot be parsed");
  ASSIGN_OR_RETURN(GetDatasetAnswer answer, FromWire(whole));
  answer.definition = *definition;
  return answer;
}

absl::StatusOr<DatasetFetcher::Content> DatasetFetcher::FetchPart(wire::DatasetRequest request,
                                                                  const wire::DatasetPart& part,
                                                                  Ask ask) {
  if (Content kept = Find(part.sha256()); kept != nullptr) return kept;
  std::string content;
  while (content.size() < part.bytes()) {
    request.mutable_piece()->set_offset(content.size());
    ASSIGN_OR_RETURN(const wire::GetDatasetAnswer answer, ask(request));
    if (answer.piece().empty() || answer.piece().size() > part.bytes() - content.size())
      return WrongPart(request, "has another size than announced");
    content += answer.piece();
  }
  if (ContentDigest(content) != part.sha256())
    return WrongPart(request, "does not have the announced SHA-256");
  auto fetched = std::make_shared<const std::string>(std::move(content));
  Keep(part.sha256(), fetched);
  return fetched;
}

DatasetFetcher::Content DatasetFetcher::Find(const std::string& sha256) {
  MutexLock lock(mu_);
  const auto found = std::ranges::find(kept_, sha256, &Kept::sha256);
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return found->content;
}

void DatasetFetcher::Keep(const std::string& sha256, Content content) {
  MutexLock lock(mu_);
  kept_.push_front({sha256, std::move(content)});
  size_t bytes = 0;
  const auto beyond = std::ranges::find_if(kept_, [&](const Kept& kept) {
    bytes += kept.content->size();
    return bytes > most_kept_bytes_;
  });
  kept_.erase(beyond, kept_.end());
}

}  // namespace penstock::control
