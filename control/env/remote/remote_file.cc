// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/remote_file.h"

#include <algorithm>
#include <cstring>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/remote/name.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock::remote {
namespace {

// The number of bytes fetched when a file is opened: enough for all of a small file, and little
// waste if the first read is elsewhere in a large file.
constexpr int64_t kHeadBytes = 256 << 10;

class RemoteFile final : public File {
 public:
  RemoteFile(RemoteContext& context, std::string name, GetRequest request, GetReply head,
             std::stop_token stop)
      : name_(std::move(name)),
        request_(std::move(request)),
        head_(std::move(head)),
        stop_(std::move(stop)),
        source_{.get =
                    [this, &context](int64_t begin, int64_t bytes) {
                      GetRequest range = request_;
                      range.begin = begin;
                      range.bytes = bytes;
                      return context.client->Start(std::move(range));
                    },
                .budget = context.budget,
                .range_bytes = context.config.range_bytes,
                .ranges_ahead = context.config.ranges_ahead} {}

  const std::string& name() const override { return name_; }
  int64_t size() const override { return request_.version.size; }

  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> into) override {
    const int64_t left = std::max<int64_t>(size() - offset, 0);
    into = into.subspan(0, std::min<size_t>(into.size(), static_cast<size_t>(left)));
    size_t done = 0;
    if (offset < head_end()) {
      done = std::min(into.size(), static_cast<size_t>(head_end() - offset));
      std::memcpy(into.data(), head_.body.get() + offset, done);
    }
    if (done == into.size()) return done;
    ASSIGN_OR_RETURN(const size_t rest,
                     ReadBehindHead(offset + static_cast<int64_t>(done), into.subspan(done)));
    return done + rest;
  }

  void WillReadInOrder(int64_t offset) override {
    MutexLock lock(mu_);
    stream_.emplace(source_, std::min(std::max(offset, head_end()), size()), size());
  }

 private:
  int64_t head_end() const { return static_cast<int64_t>(head_.size); }

  absl::StatusOr<size_t> ReadBehindHead(int64_t offset, absl::Span<char> into) {
    {
      MutexLock lock(mu_);
      if (stream_.has_value() && offset >= stream_->position()) {
        stream_->SkipTo(offset);
        return Explained(stream_->Read(into, stop_));
      }
    }
    RangeStream alone(source_, offset, offset + static_cast<int64_t>(into.size()));
    return Explained(alone.Read(into, stop_));
  }

  absl::StatusOr<size_t> Explained(absl::StatusOr<size_t> outcome) const {
    if (absl::IsCancelled(outcome.status())) {
      return absl::CancelledError(absl::StrCat(name_, ": ", outcome.status().message()));
    }
    return outcome;
  }

  const std::string name_;
  const GetRequest request_;  // contains the file's version
  const GetReply head_;
  const std::stop_token stop_;
  const RangeStream::Source source_;

  Mutex mu_;
  std::optional<RangeStream> stream_ GUARDED_BY(mu_);  // for reads in order
};

}  // namespace

absl::StatusOr<std::unique_ptr<File>> OpenRemote(RemoteContext& context, std::string name,
                                                 GetRequest request, std::stop_token stop) {
  request.name = name;
  request.begin = 0;
  request.bytes = std::min(kHeadBytes, context.config.range_bytes);
  ASSIGN_OR_RETURN(GetReply head, context.client->Start(request)->Wait(stop));
  request.version = head.version;
  return std::make_unique<RemoteFile>(context, std::move(name), std::move(request), std::move(head),
                                      std::move(stop));
}

}  // namespace penstock::remote
