// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "control/env/remote/content_range.h"
#include "control/env/remote/name.h"

namespace penstock::remote {
namespace {

constexpr long kReceiveBytes = 256 << 10;   // the maximum received at once
constexpr size_t kRefusalBytes = 64 << 10;  // the maximum kept of a refusal's body
constexpr size_t kLongestWhole = 64 << 20;  // the maximum size of a reply to a request without a
                                            // range
constexpr auto kComplainAfter = std::chrono::seconds(5);
constexpr long kMostRedirects = 5;
// The header with the hash of an empty body. S3 requires the hash of each request's body.
constexpr char kHashOfNothing[] =
    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// Returns whether the URL has "." or ".." segments. Such segments may be parts of a file's name,
// but curl removes them unless CURLOPT_PATH_AS_IS is set. From release 8.13 on, curl does not sign
// requests that set this option. The option is therefore set only for such URLs, and a request for
// an S3 object with such a URL fails with curl's error.
bool NeedsPathAsIs(std::string_view url) {
  return HasDotSegments(url.substr(0, url.find_first_of("?#")));
}

// Returns whether a retry would fail in the same way.
bool IsForGood(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_FAILED_INIT:
    case CURLE_URL_MALFORMAT:
    case CURLE_NOT_BUILT_IN:
    case CURLE_OUT_OF_MEMORY:
    case CURLE_BAD_FUNCTION_ARGUMENT:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_UNKNOWN_OPTION:
    case CURLE_LOGIN_DENIED:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return true;
    default:
      return false;
  }
}

absl::StatusCode CodeOfCurl(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return absl::StatusCode::kInvalidArgument;
    case CURLE_OUT_OF_MEMORY:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kFailedPrecondition;
  }
}

bool IsStrong(const std::string& etag) {
  return !etag.empty() && etag.front() == '"';
}

}  // namespace

Transfer::Counters& Transfer::CountersOf(const std::string& name) {
  const auto make = [](const char* scheme) {
    Metrics& metrics = ProcessMetrics();
    const Labels labels = {{"scheme", scheme}};
    return Counters{
        metrics.GetCounter("penstock_file_requests_total", "Requests for remote files", labels),
        metrics.GetCounter("penstock_file_retries_total",
                           "Requests for remote files that were tried again", labels),
        metrics.GetCounter("penstock_file_bytes_total", "Bytes received of remote files", labels)};
  };
  static Counters http = make("http");
  static Counters s3 = make("s3");
  return SchemeOf(name) == "s3" ? s3 : http;
}

Transfer::Transfer(GetRequest request, const FilesConfig& config, Buffers& buffers)
    : request_(std::move(request)),
      config_(config),
      buffers_(buffers),
      counters_(CountersOf(request_.name)),
      version_(request_.version),
      due_(Clock::now()),
      began_(due_),
      guard_(request_.rules, request_.name) {}

Transfer::~Transfer() {
  curl_slist_free_all(headers_);
}

void Transfer::Begin(CURL* easy) {
  easy_ = easy;
  try_began_ = Clock::now();
  body_ = Body::kUnknown;
  refusal_ = {};
  error_ = std::nullopt;
  curl_words_[0] = '\0';
  if (request_.bytes < 0) got_ = 0;
  ++tries_;
  counters_.requests.Add();

  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_URL, request_.url.c_str());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, NeedsPathAsIs(request_.url) ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kReceiveBytes);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(config_.connect_timeout)));
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "penstock");
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, curl_words_);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  guard_.Watch(easy);
  if (!config_.ca_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, config_.ca_file.c_str());
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  if (request_.redirects) {
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, kMostRedirects);
    // A request over https must not be redirected to plain http.
    const bool secure = absl::StartsWithIgnoreCase(request_.url, "https:");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  }
  if (request_.bytes >= 0) {
    const std::string range =
        absl::StrCat(request_.begin + got_, "-", request_.begin + request_.bytes - 1);
    curl_easy_setopt(easy, CURLOPT_RANGE, range.c_str());
  }
  Authorization authorization;
  if (request_.authorize == nullptr) {
    curl_easy_setopt(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  } else {
    authorization = request_.authorize();
  }
  if (!authorization.provider.empty()) {
    curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, authorization.provider.c_str());
    curl_easy_setopt(easy, CURLOPT_USERPWD, authorization.user.c_str());
  }
  curl_slist_free_all(headers_);
  headers_ = Headers(authorization);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_);
}

curl_slist* Transfer::Headers(const Authorization& authorization) const {
  curl_slist* headers = nullptr;
  const auto add = [&](const std::string& line) {
    headers = curl_slist_append(headers, line.c_str());
  };
  if (!authorization.provider.empty()) {
    add(kHashOfNothing);
    if (!authorization.token.empty()) {
      add(absl::StrCat("x-amz-security-token: ", authorization.token));
    }
  }
  if (IsStrong(version_.etag)) {
    add(absl::StrCat("If-Match: ", version_.etag));
  } else if (!version_.last_modified.empty()) {
    add(absl::StrCat("If-Unmodified-Since: ", version_.last_modified));
  }
  return headers;
}

Clock::time_point Transfer::stalls_at() const {
  return try_began_ + absl::ToChronoNanoseconds(config_.stall_timeout);
}

std::string Transfer::Complaint() const {
  if (why_.empty() || Clock::now() - began_ < kComplainAfter) return "";
  return absl::StrCat(request_.name, ": ", why_);
}

// --- A reply arrives ---------------------------------------------------------------

size_t Transfer::OnHeader(char* line, size_t, size_t size, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const absl::string_view text(line, size);
  if (!absl::StartsWith(text, "HTTP/")) return size;
  // A new reply begins. Earlier replies of this try were redirects.
  transfer.body_ = Body::kUnknown;
  transfer.refusal_ = {};
  const size_t code = text.find(' ');
  const size_t reason = code == text.npos ? code : text.find(' ', code + 1);
  if (reason != text.npos)
    transfer.refusal_.reason = std::string(absl::StripAsciiWhitespace(text.substr(reason)));
  return size;
}

size_t Transfer::OnBody(char* bytes, size_t, size_t size, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.body_ == Body::kUnknown) transfer.body_ = transfer.Examine();
  if (transfer.error_.has_value()) return 0;  // ends the try
  if (transfer.body_ == Body::kWanted) return transfer.Keep(bytes, size) ? size : 0;
  transfer.try_began_ = Clock::now();
  if (transfer.refusal_.body.size() + size > kRefusalBytes) return 0;
  transfer.refusal_.body.append(bytes, size);
  return size;
}

std::string Transfer::Header(const char* name) const {
  curl_header* header = nullptr;
  if (curl_easy_header(easy_, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return "";
  return header->value;
}

Transfer::Body Transfer::Examine() {
  long code = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &code);
  curl_off_t length = -1;
  curl_easy_getinfo(easy_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  if (code == 200) return ExamineWhole(length);
  if (code != 206 || request_.bytes < 0) {
    refusal_.code = static_cast<int>(code);
    refusal_.content_type = Header("Content-Type");
    return Body::kRefused;
  }
  const std::string told = Header("Content-Range");
  const std::optional<ContentRange> range = ParseContentRange(told);
  const auto begin = request_.begin + static_cast<int64_t>(got_);
  if (!range.has_value() || range->begin != begin || range->end > request_.begin + request_.bytes) {
    error_ = absl::FailedPreconditionError(
        absl::StrCat("cannot read ", request_.name, ": requested bytes from ", begin,
                     ", but the server sent Content-Range '", told, "'"));
    return Body::kRefused;
  }
  return IsSameVersion({Header("ETag"), Header("Last-Modified"), range->size}) ? Body::kWanted
                                                                               : Body::kRefused;
}

// A reply that contains the whole file is usable only if the whole file was requested.
Transfer::Body Transfer::ExamineWhole(int64_t length) {
  const Version told = {Header("ETag"), Header("Last-Modified"), length};
  if (request_.bytes >= 0 && (request_.begin > 0 || length > request_.bytes)) {
    error_ = absl::FailedPreconditionError(absl::StrCat(
        "cannot read ", request_.name,
        ": the server sent the whole file instead of the requested range; files of more than ",
        request_.bytes, " bytes need a server that supports Range requests"));
    return Body::kRefused;
  }
  if (!IsSameVersion(told)) return Body::kRefused;
  got_ = 0;
  is_whole_ = true;
  return Body::kWanted;
}

bool Transfer::IsSameVersion(const Version& told) {
  if (version_.size >= 0 && told.size >= 0 && told.size != version_.size) {
    error_ = Changed(absl::StrCat("it had ", version_.size, " bytes, now ", told.size));
  } else if (!version_.etag.empty() && !told.etag.empty() && told.etag != version_.etag) {
    error_ = Changed(absl::StrCat("its ETag was ", version_.etag, ", now ", told.etag));
  } else if (version_.etag.empty() && !version_.last_modified.empty() &&
             !told.last_modified.empty() && told.last_modified != version_.last_modified) {
    error_ = Changed(absl::StrCat("it was last modified ", version_.last_modified, ", now ",
                                  told.last_modified));
  }
  if (error_.has_value()) return false;
  if (version_.size < 0) version_.size = told.size;
  if (version_.etag.empty()) version_.etag = told.etag;
  if (version_.last_modified.empty()) version_.last_modified = told.last_modified;
  return true;
}

bool Transfer::Keep(const char* bytes, size_t size) {
  const size_t most = request_.bytes >= 0 ? static_cast<size_t>(request_.bytes) : kLongestWhole;
  if (size > most - got_) {
    error_ = absl::FailedPreconditionError(absl::StrCat("cannot read ", request_.name,
                                                        ": the server sent more than the ", most,
                                                        " bytes requested"));
    return false;
  }
  if (got_ + size > capacity_) {
    // Uses the length that the head announces, if any.
    curl_off_t length = -1;
    curl_easy_getinfo(easy_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    const size_t told = got_ + static_cast<size_t>(std::max<curl_off_t>(length, 0));
    capacity_ = std::min(most, std::max({got_ + size, 2 * capacity_, told}));
    Buffers::Buffer larger = buffers_.Get(capacity_);
    if (got_ > 0) std::memcpy(larger.get(), buffer_.get(), got_);
    buffer_ = std::move(larger);
  }
  std::memcpy(buffer_.get() + got_, bytes, size);
  got_ += size;
  counters_.bytes.Add(static_cast<int64_t>(size));
  began_ = try_began_ = Clock::now();
  backoff_.Reset();
  why_.clear();
  return true;
}

// --- A try ends --------------------------------------------------------------------

std::optional<absl::StatusOr<GetReply>> Transfer::End(CURLcode code) {
  // Without a body, OnBody() has not examined the head.
  if (code == CURLE_OK && body_ == Body::kUnknown) body_ = Examine();
  absl::Duration asked_for;
  curl_off_t seconds = 0;
  if (curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0)
    asked_for = absl::Seconds(seconds);
  easy_ = nullptr;
  if (error_.has_value()) return *error_;
  const bool unconnected = code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK;
  if (unconnected && guard_.denied().has_value()) return *guard_.denied();
  if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && body_ == Body::kRefused)) {
    if (body_ == Body::kRefused) {
      if (MayPass(refusal_)) return TryAgain(WordsOf(refusal_), asked_for);
      return Refused();
    }
    if (IsComplete()) return Finished();
    return TryAgain("the server sent fewer bytes than it announced");
  }
  std::string words = curl_words_[0] != '\0' ? curl_words_ : curl_easy_strerror(code);
  if (code == CURLE_OPERATION_TIMEDOUT && stalls_at() <= Clock::now())
    words = absl::StrCat("no byte arrived for ", absl::FormatDuration(config_.stall_timeout));
  if (!IsForGood(code)) return TryAgain(words);
  return absl::Status(
      CodeOfCurl(code),
      absl::StrCat(
          "cannot read ", request_.name, ": ", words,
          code == CURLE_PEER_FAILED_VERIFICATION
              ? "; to trust an authority that the system does not know, set ca_file of [files]"
              : ""));
}

bool Transfer::IsComplete() const {
  if (request_.bytes < 0 || version_.size < 0) return true;  // curl has seen the end of the body
  const int64_t end =
      is_whole_ ? version_.size : std::min(version_.size, request_.begin + request_.bytes);
  return request_.begin + static_cast<int64_t>(got_) == end;
}

absl::StatusOr<GetReply> Transfer::Finished() {
  if (is_whole_ && version_.size < 0) version_.size = static_cast<int64_t>(got_);
  return GetReply{std::move(buffer_), got_, is_whole_, std::move(version_)};
}

absl::StatusOr<GetReply> Transfer::Refused() {
  constexpr int kPreconditionFailed = 412;
  constexpr int kRangeNotSatisfiable = 416;
  if (refusal_.code == kPreconditionFailed)
    return Changed("the server reports a different version");
  if (refusal_.code == kRangeNotSatisfiable) {
    // The file is empty, so the range that begins at byte 0 cannot be satisfied.
    if (request_.begin == 0 && got_ == 0 && version_.size <= 0) {
      is_whole_ = true;
      return Finished();
    }
    return Changed(absl::StrCat("it now ends before byte ", request_.begin + got_));
  }
  return ErrorOf(request_.name, refusal_);
}

std::optional<absl::StatusOr<GetReply>> Transfer::TryAgain(const std::string& why,
                                                           absl::Duration asked_for) {
  const Clock::time_point now = Clock::now();
  why_ = why;
  due_ = now + absl::ToChronoNanoseconds(backoff_.Next(asked_for));
  if (due_ - began_ > absl::ToChronoNanoseconds(config_.retry_for)) {
    return absl::UnavailableError(absl::StrCat("cannot read ", request_.name, ": ", why, "; tried ",
                                               tries_, " times without receiving a byte for ",
                                               absl::FormatDuration(config_.retry_for),
                                               " (retry_for of [files])"));
  }
  counters_.retries.Add();
  return std::nullopt;
}

absl::Status Transfer::Changed(absl::string_view how) const {
  return absl::DataLossError(absl::StrCat(request_.name, " changed while it was read: ", how));
}

}  // namespace penstock::remote
