// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/retry.h"

#include <algorithm>
#include <pugixml.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock::remote {
namespace {

constexpr size_t kShownBytes = 200;  // of a reply in plain text

struct S3Error {
  std::string code, message;
};

// Returns empty strings if the body is not an S3 error.
S3Error ParseS3Error(const std::string& body) {
  pugi::xml_document document;
  if (body.rfind('<', 0) != 0 || !document.load_buffer(body.data(), body.size())) return {};
  const pugi::xml_node error = document.child("Error");
  return {error.child_value("Code"), error.child_value("Message")};
}

// Returns ": " and the message in the body; empty if the body has no readable message.
std::string BodyWordsOf(const Refusal& refusal) {
  const S3Error error = ParseS3Error(refusal.body);
  if (!error.code.empty()) return absl::StrCat(": ", error.code, ": ", error.message);
  if (!absl::StartsWith(refusal.content_type, "text/plain") &&
      !absl::StartsWith(refusal.content_type, "application/json")) {
    return "";
  }
  std::string words = refusal.body.substr(0, kShownBytes);
  for (char& c : words) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  absl::StripAsciiWhitespace(&words);
  return words.empty() ? "" : absl::StrCat(": ", words);
}

absl::StatusCode CodeOfHttpStatus(int code) {
  switch (code) {
    case 400:
    case 405:
    case 414:
      return absl::StatusCode::kInvalidArgument;
    case 401:
    case 403:
    case 407:
      return absl::StatusCode::kPermissionDenied;
    case 404:
    case 410:
      return absl::StatusCode::kNotFound;
    default:
      return code >= 500 || code == 408 || code == 429 ? absl::StatusCode::kUnavailable
                                                       : absl::StatusCode::kFailedPrecondition;
  }
}

}  // namespace

bool MayPass(const Refusal& refusal) {
  switch (refusal.code) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return true;
    case 400:  // S3 sends it after a connection was idle too long
      return ParseS3Error(refusal.body).code == "RequestTimeout";
    default:
      return false;
  }
}

std::string WordsOf(const Refusal& refusal) {
  return absl::StrCat("the server answered ", refusal.code, refusal.reason.empty() ? "" : " ",
                      refusal.reason, BodyWordsOf(refusal));
}

absl::Status ErrorOf(const std::string& name, const Refusal& refusal) {
  return absl::Status(CodeOfHttpStatus(refusal.code),
                      absl::StrCat("cannot read ", name, ": ", WordsOf(refusal)));
}

absl::Duration Backoff::Next(absl::Duration asked_for) {
  const absl::Duration longest =
      std::min(kFirstWait * static_cast<double>(1u << std::min(tries_, 10)), kLongestWait);
  ++tries_;
  return std::max(longest * absl::Uniform(random_, 0.5, 1.0), std::min(asked_for, kLongestWait));
}

}  // namespace penstock::remote
