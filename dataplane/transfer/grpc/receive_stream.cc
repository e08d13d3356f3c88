// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/grpc/receive_stream.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "control/rpc/prepare_grpc.h"
#include "control/rpc/status_grpc.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/grpc/slices.h"
#include "include/status_macros.h"

namespace penstock::transfer {
namespace {

// gRPC allocates received data with malloc. glibc returns large blocks, and the top of a heap above
// 128 KiB, to the system immediately, so that their pages must be faulted in again for the next
// element. Once a block of this size has been allocated and freed, glibc keeps this much
// (mallopt(3), "dynamic mmap threshold").
constexpr size_t kKeptByMalloc = 24 << 20;

void LetMallocKeepWhatItFrees() {
  static const bool done = [] {
    void* volatile block = std::malloc(kKeptByMalloc);  // volatile: not optimised away
    std::free(block);
    return true;
  }();
  (void)done;
}

// How long a worker may take to end a call that the client has closed.
constexpr absl::Duration kWorkerGoodbyeTimeout = absl::Seconds(5);

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& target, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    int64_t max_element_bytes) {
  control::PrepareGrpc();
  grpc::ChannelArguments arguments;
  // One connection per link, so that links share neither failures nor a window.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
  const int64_t largest = max_element_bytes + static_cast<int64_t>(kMessageHeaderBytes);
  arguments.SetMaxReceiveMessageSize(largest > kMaxInt ? -1
                                                       : std::max<int>(largest, kMaxControlBytes));
  arguments.SetMaxSendMessageSize(-1);
  // Elements arrive in a few large pieces, and only as many as there are credits. Window probing
  // would only send pings and settings between these pieces.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  arguments.SetInt(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 64 << 10);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // Detects that the worker's host has silently disappeared.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

}  // namespace

std::shared_ptr<ReceiveStream> ReceiveStream::Start(
    std::string target, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    DialOptions options, std::shared_ptr<ReceiveEvents> events) {
  std::shared_ptr<ReceiveStream> stream(
      new ReceiveStream(std::move(target), credentials, std::move(options), std::move(events)));
  stream->self_ = stream;
  stream->stub_.PrepareBidiStreamingCall(&stream->context_, kLinkMethod, {}, stream.get());
  stream->AddHold();  // writes come from threads other than gRPC's
  {
    MutexLock lock(stream->mu_);
    stream->writing_ = ToBuffer(Encode(stream->options_.hello));
    stream->busy_ = true;
    stream->StartWrite(&stream->writing_);
  }
  stream->StartRead(&stream->read_);
  stream->CancelAfter(stream->options_.timeout);
  stream->StartCall();
  return stream;
}

ReceiveStream::ReceiveStream(std::string target,
                             const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                             DialOptions options, std::shared_ptr<ReceiveEvents> events)
    : target_(std::move(target)),
      options_(std::move(options)),
      pool_(options_.pool != nullptr ? *options_.pool : DefaultPool()),
      channel_(MakeChannel(target_, credentials, options_.max_element_bytes)),
      stub_(channel_),
      events_(std::move(events)),
      receiver_(options_.spec, options_.max_element_bytes) {
  LetMallocKeepWhatItFrees();
}

void ReceiveStream::Grant(Credits credits) {
  if (credits.count <= 0) return;
  receiver_.Grant(credits.count);
  MutexLock lock(mu_);
  (waiting_.recall ? waiting_.granted_after_recall : waiting_.granted) += credits.count;
  WriteNext();
}

void ReceiveStream::Recall() {
  MutexLock lock(mu_);
  // A message carries at most one recall. If that recall stands for two, credits granted between
  // the two recalls are returned too.
  waiting_.granted += std::exchange(waiting_.granted_after_recall, 0);
  waiting_.recall = true;
  WriteNext();
}

void ReceiveStream::Close() {
  gate_.Close();
  {
    MutexLock lock(mu_);
    closed_ = true;
    WriteNext();
  }
  CancelAfter(kWorkerGoodbyeTimeout);
}

void ReceiveStream::CancelAfter(absl::Duration timeout) {
  MutexLock lock(mu_);
  if (over_) return;
  alarm_.emplace();
  alarm_->Set(absl::ToChronoTime(WallTime() + std::min(timeout, absl::Hours(24 * 365))),
              [stream = weak_from_this()](bool expired) {
                // An alarm keeps its callback for as long as it exists.
                const std::shared_ptr<ReceiveStream> self = stream.lock();
                if (!expired || self == nullptr) return;
                {
                  MutexLock lock(self->mu_);
                  self->timed_out_ = true;
                }
                self->context_.TryCancel();
              });
}

void ReceiveStream::OnReadDone(bool ok) {
  if (ok && gate_.Enter()) {  // otherwise the link is closed, and arriving data is dropped
    broken_ = Handle();
    gate_.Leave();
  }
  if (ok && broken_.ok()) {
    read_.Clear();
    return StartRead(&read_);
  }
  if (ok) context_.TryCancel();
  MutexLock lock(mu_);
  over_ = true;
  WriteNext();
}

absl::Status ReceiveStream::Handle() {
  absl::StatusOr<MessageType> type = TypeOf(read_);
  if (!type.ok()) return absl::DataLossError(type.status().message());
  if (open_ && (*type == MessageType::kElement || *type == MessageType::kFrame ||
                *type == MessageType::kCompressed)) {
    return Receive(*type);
  }
  return HandleOther();
}

absl::Status ReceiveStream::HandleOther() {
  ASSIGN_OR_RETURN(std::string bytes, ToString(read_));
  absl::StatusOr<Message> message = Decode(bytes);
  if (!message.ok()) return absl::DataLossError(message.status().message());
  if (!open_ && std::holds_alternative<Welcome>(*message)) {
    Open();
    return absl::OkStatus();
  }
  if (auto* recalled = std::get_if<Recalled>(&*message); open_ && recalled != nullptr) {
    RETURN_IF_ERROR(receiver_.Use(recalled->count));
    events_->OnRecalled({recalled->count});
    return absl::OkStatus();
  }
  if (auto* error = std::get_if<ErrorMessage>(&*message); open_ && error != nullptr) {
    RETURN_IF_ERROR(receiver_.Use(1));
    events_->OnError(error->identity, error->error);
    ReportReceived(1);
    return absl::OkStatus();
  }
  return absl::DataLossError("the worker sent an unexpected message");
}

absl::Status ReceiveStream::Receive(MessageType type) {
  const bool frame = type == MessageType::kFrame;
  RETURN_IF_ERROR(receiver_.Use(1));
  ASSIGN_OR_RETURN(Gathered gathered,
                   Gather(read_, frame ? kFrameBytes : options_.max_element_bytes, pool_));
  int64_t count = 0;
  absl::Status status;
  if (type == MessageType::kCompressed) {
    status = receiver_.Compressed(gathered.loan, gathered.bytes, pool_, *events_, count);
  } else if (frame) {
    status = receiver_.Frame(std::move(gathered.loan), gathered.bytes, *events_, count);
  } else {
    status = receiver_.Element(std::move(gathered.loan), gathered.bytes, *events_, count);
  }
  ReportReceived(count);
  return status;
}

void ReceiveStream::Open() {
  open_ = true;
  {
    MutexLock lock(mu_);
    if (!closed_) alarm_->Cancel();
  }
  events_->OnOpen();
}

void ReceiveStream::ReportReceived(int64_t count) {
  MutexLock lock(mu_);
  waiting_.received += count;
  WriteNext();
}

void ReceiveStream::OnWriteDone(bool ok) {
  MutexLock lock(mu_);
  busy_ = false;
  writing_.Clear();
  if (!ok) over_ = true;
  WriteNext();
}

void ReceiveStream::WriteNext() {
  if (busy_) return;
  const bool update = waiting_.received > 0 || waiting_.granted > 0 || waiting_.recall;
  if (!over_ && (update || closed_)) {
    if (update) {
      writing_ = ToBuffer(Encode(std::exchange(waiting_, Update())));
    } else {
      writing_ = ToBuffer(Encode(Goodbye()));
      over_ = true;
    }
    busy_ = true;
    return StartWrite(&writing_);
  }
  if (over_ && std::exchange(hold_, false)) RemoveHold();
}

void ReceiveStream::OnDone(const grpc::Status& status) {
  std::shared_ptr<ReceiveStream> self = std::exchange(self_, nullptr);
  absl::Status reason = broken_;
  {
    MutexLock lock(mu_);
    over_ = true;
    if (alarm_.has_value()) alarm_->Cancel();
    if (reason.ok() && timed_out_) {
      reason = absl::DeadlineExceededError(absl::StrCat(
          "worker ", target_, " did not answer within ", absl::FormatDuration(options_.timeout)));
    }
  }
  if (reason.ok()) reason = control::FromGrpc(status);
  if (gate_.Enter()) {
    events_->OnClosed(Annotate(reason, "worker at ", target_));
    gate_.Leave();
  }
  events_.reset();
}

}  // namespace penstock::transfer
