// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/dispatcher_session.h"

#include "absl/strings/str_cat.h"
#include "control/stub/this_process.h"
#include "control/sync/clock.h"
#include "include/status_macros.h"

namespace penstock::client {

DispatcherSession::DispatcherSession(const SessionOptions& options, control::DispatcherStub& stub)
    : options_(options), stub_(stub), heard_(options.heard), leaving_(options.claims_only) {}

absl::StatusOr<DispatcherSession::Stream> DispatcherSession::Open(
    control::ReconnectingClientEvents& events) {
  ASSIGN_OR_RETURN(Stream stream,
                   stub_.KeepClientSession(&events, {.timeout = options_.distribute.timeout}));
  return std::exchange(stream_, std::move(stream));
}

void DispatcherSession::Stop() {
  if (stream_ != nullptr) stream_->Stop();
}

control::ClientUp DispatcherSession::Hello() {
  welcomed_ = false;
  leave_sent_ = false;
  lease_.OnHello(BootTime());
  control::ClientHello hello{.job = options_.job.job,
                             .repetition = options_.repetition,
                             .client = options_.client,
                             .incarnation = options_.incarnation,
                             .state = std::nullopt,
                             .process = control::ThisProcess(),
                             .token = options_.job.token,
                             .heard = heard_,
                             .version = {},
                             .release = control::ThisRelease()};
  if (options_.state.has_value()) {
    hello.state = ToMessage(*options_.state);
    for (const auto& [partition, delivered] : *options_.state) hello.round += delivered.size();
    if (!welcome_.has_value()) {  // later hellos resume from no state
      for (const auto& [repetition, delivered] : options_.other_repetitions)
        hello.others.push_back({repetition, ToMessage(delivered)});
    }
  }
  hello.consumer = options_.delivery.consumer_index.value_or(-1);
  return hello;
}

absl::Status DispatcherSession::OnWelcome(const control::Welcome& welcome) {
  if (welcome.token != options_.job.token || welcome.life.term < heard_.life.term) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the dispatcher at ", stub_.address(), " assigned this reader of ",
        ToString(options_.job.job), " to a different job, or was restarted from an older journal"));
  }
  heard_.life = welcome.life;
  welcome_ = welcome;
  welcomed_ = true;
  lease_.OnWelcome(welcome);
  return absl::OkStatus();
}

void DispatcherSession::OnOver(absl::Status reason) {
  over_ = true;
  reason_ = std::move(reason);
}

void DispatcherSession::SendLeave(const IndicesByPartition& delivered) {
  leave_sent_ = true;
  stream_->Send(control::Leave{ToMessage(delivered)});
}

}  // namespace penstock::client
