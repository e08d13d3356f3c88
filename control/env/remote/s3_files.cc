// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/s3_files.h"

#include <algorithm>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/remote/name.h"
#include "control/env/remote/s3_account.h"
#include "control/env/remote/s3_listing.h"
#include "include/status_macros.h"

namespace penstock::remote {
namespace {

class S3Files final : public Files {
 public:
  S3Files(RemoteContext& context, Environment environment)
      : context_(context), account_(context.config, std::move(environment)) {}

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name,
                                             std::stop_token stop) override {
    ASSIGN_OR_RETURN(const S3Name place, ParseS3Name(name));
    if (place.key.empty() || place.key.back() == '/') {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " does not name an object: s3://bucket/key"));
    }
    GetRequest request =
        Request(absl::StrCat(account_.AddressOf(place.bucket), "/", PercentEncodePath(place.key)));
    absl::StatusOr<std::unique_ptr<File>> file =
        OpenRemote(context_, name, std::move(request), std::move(stop));
    if (!file.ok()) return Explained(file.status());
    return file;
  }

  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                std::stop_token stop) override {
    ASSIGN_OR_RETURN(const S3Name place, ParseS3Name(pattern));
    const Listing listing = ListingOf(place.key);
    std::vector<std::string> names;
    std::string token;
    do {
      GetRequest request =
          Request(absl::StrCat(account_.AddressOf(place.bucket), "/?", QueryOf(listing, token)));
      request.name = absl::StrCat("the listing of ", pattern);
      absl::StatusOr<GetReply> reply = context_.client->Start(std::move(request))->Wait(stop);
      if (!reply.ok()) return Explained(reply.status());
      absl::StatusOr<ListedPage> page = ParsePage({reply->body.get(), reply->size});
      if (!page.ok()) {
        return absl::Status(page.status().code(),
                            absl::StrCat("cannot list ", pattern, ": ", page.status().message()));
      }
      for (const std::string& key : page->keys) {
        if (!key.empty() && key.back() != '/' && Matches(place.key, key))
          names.push_back(absl::StrCat("s3://", place.bucket, "/", key));
      }
      token = std::move(page->next_token);
    } while (!token.empty());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  GetRequest Request(std::string url) const {
    GetRequest request;
    request.url = std::move(url);
    request.authorize = [this] { return account_.Authorize(); };
    // A redirect leads to a different region, but the request is signed for this region.
    request.redirects = false;
    return request;
  }

  // Adds a remedy to the error `status` of a refused request.
  absl::Status Explained(const absl::Status& status) const {
    if (absl::IsPermissionDenied(status) && account_.Authorize().provider.empty())
      return Annotate(status, S3Account::Places());
    if (absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status)) {
      return Annotate(status, "the request was for region ", account_.region(),
                      " (set AWS_REGION, or s3_region of [files])");
    }
    return status;
  }

  RemoteContext& context_;
  const S3Account account_;
};

}  // namespace

std::unique_ptr<Files> MakeS3Files(RemoteContext& context, Environment environment) {
  return std::make_unique<S3Files>(context, std::move(environment));
}

}  // namespace penstock::remote
