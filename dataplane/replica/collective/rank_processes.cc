// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/collective/rank_processes.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "control/observe/event_log.h"
#include "control/observe/wait_lines.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/replica/collective/frame_loop.h"
#include "dataplane/replica/collective/host_collective.h"
#include "dataplane/replica/collective/rank_messages.h"
#include "include/status_macros.h"

namespace penstock::replica {
namespace {

using transfer::tcp::HostAndPort;
using transfer::tcp::Socket;
using Clock = SteadyClock;

constexpr uint32_t kMostGreetingBytes = 1 << 16;
constexpr std::chrono::seconds kGreetingTime(5);
constexpr std::chrono::milliseconds kRetryTime(20);
// While rank 0 waits for ranks, it checks at this interval whether to log which ranks are missing.
constexpr std::chrono::milliseconds kLookAround(500);

absl::Status Of(int rank, const absl::Status& why) {
  return absl::UnavailableError(absl::StrCat("rank ", rank, " is gone: ", why.message()));
}

// Rank 0's channel: the collective server, and the connections of all other ranks.
class RootChannel final : public CollectiveChannel {
 public:
  static absl::StatusOr<std::shared_ptr<RootChannel>> Start(std::vector<Socket> others,
                                                            std::chrono::milliseconds silence) {
    auto here = std::make_shared<RootChannel>(others.size());
    MutexLock lock(here->starting_);
    ASSIGN_OR_RETURN(
        here->loop_,
        FrameLoop::Start(
            std::move(others), silence,
            {[h = here.get()](size_t peer, std::string_view frame) { h->OnFrame(peer, frame); },
             [h = here.get()](size_t peer, const absl::Status& why) { h->OnGone(peer, why); }}));
    return here;
  }
  explicit RootChannel(size_t others) : server_(MakeCallbacks(others)) {}
  ~RootChannel() override {
    if (loop_ != nullptr) loop_->Stop();  // the loop's events use this object
  }

  void Call(uint64_t communicator, RankCall call) override {
    server_.Call(0, communicator, std::move(call));
  }
  void End(uint64_t communicator, const absl::Status& why) override {
    server_.End(0, communicator, why);
  }
  std::shared_ptr<Inbox> inbox() const { return inbox_; }

 private:
  std::vector<CollectiveServer::EventCallback> MakeCallbacks(size_t others) {
    std::vector<CollectiveServer::EventCallback> callbacks = {
        [inbox = inbox_](const RankEvent& event) { inbox->Push(event); }};
    for (size_t peer = 0; peer < others; ++peer) {
      callbacks.push_back([this, peer](const RankEvent& event) {
        RankEventMessage event_message{.communicator = event.communicator,
                                       .end = event.result.status()};
        if (event.result.ok()) event_message.result = *event.result;
        { MutexLock lock(starting_); }  // from here on, loop_ is constant
        loop_->Send(peer, ToBytes(event_message));
      });
    }
    return callbacks;
  }

  void OnFrame(size_t peer, std::string_view frame) {
    const int rank = static_cast<int>(peer) + 1;
    absl::StatusOr<RankMessage> message = RankMessageOf(frame);
    if (!message.ok()) {
      server_.Lose(rank, Of(rank, message.status()));
    } else if (auto* calls = std::get_if<RankCalls>(&*message)) {
      server_.Call(rank, calls->communicator, std::move(calls->call));
    } else if (auto* ends = std::get_if<RankEnds>(&*message)) {
      server_.End(rank, ends->communicator, ends->why);
    } else if (std::holds_alternative<RankLeaves>(*message)) {
      server_.Lose(rank, absl::UnavailableError(absl::StrCat("rank ", rank, " has left")));
    }
  }
  void OnGone(size_t peer, const absl::Status& why) {
    const int rank = static_cast<int>(peer) + 1;
    server_.Lose(rank, Of(rank, why));
  }

  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  CollectiveServer server_;
  Mutex starting_;
  std::unique_ptr<FrameLoop> loop_;
};

// The channel of a rank other than 0: a connection to the collective server.
class RemoteChannel final : public CollectiveChannel {
 public:
  static absl::StatusOr<std::shared_ptr<RemoteChannel>> Start(Socket server,
                                                              std::chrono::milliseconds silence) {
    auto there = std::make_shared<RemoteChannel>();
    std::vector<Socket> peers;
    peers.push_back(std::move(server));
    ASSIGN_OR_RETURN(there->loop_,
                     FrameLoop::Start(std::move(peers), silence,
                                      {[inbox = there->inbox_](size_t, std::string_view frame) {
                                         OnFrame(*inbox, frame);
                                       },
                                       [inbox = there->inbox_](size_t, const absl::Status& why) {
                                         inbox->EndAll(Of(0, why));
                                       }}));
    return there;
  }
  ~RemoteChannel() override {
    if (loop_ != nullptr) loop_->Send(0, ToBytes(RankLeaves{}));
  }

  void Call(uint64_t communicator, RankCall call) override {
    loop_->Send(0, ToBytes(RankCalls{communicator, std::move(call)}));
  }
  void End(uint64_t communicator, const absl::Status& why) override {
    loop_->Send(0, ToBytes(RankEnds{communicator, why}));
  }
  std::shared_ptr<Inbox> inbox() const { return inbox_; }

 private:
  static void OnFrame(Inbox& inbox, std::string_view frame) {
    absl::StatusOr<RankMessage> message = RankMessageOf(frame);
    if (!message.ok()) return inbox.EndAll(Of(0, message.status()));
    auto* event_message = std::get_if<RankEventMessage>(&*message);
    if (event_message == nullptr) return;
    if (event_message->end.ok())
      inbox.Push({event_message->communicator, std::move(event_message->result)});
    else
      inbox.Push({event_message->communicator, event_message->end});
  }

  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::unique_ptr<FrameLoop> loop_;
};

// Returns the error for a rank that sent `hello`, given the ranks that are connected; OK for an
// acceptable rank.
absl::Status Check(const RankHello& hello, const RankProcesses& here,
                   const std::vector<Socket>& others) {
  if (hello.version != kRankMessagesVersion)
    return absl::FailedPreconditionError("rank 0 runs a different release of Penstock");
  if (hello.launch != here.launch) {
    return absl::FailedPreconditionError(absl::StrCat("rank 0 belongs to launch '", here.launch,
                                                      "', but rank ", hello.rank, " to '",
                                                      hello.launch, "'"));
  }
  if (hello.ranks != here.ranks) {
    return absl::FailedPreconditionError(absl::StrCat("rank 0 waits for ", here.ranks,
                                                      " ranks, but rank ", hello.rank, " expects ",
                                                      hello.ranks));
  }
  if (hello.rank < 1 || hello.rank >= here.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", hello.rank, " is not one of 1 to ", here.ranks - 1));
  }
  if (others[hello.rank - 1]) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rank ", hello.rank, " is already connected; each process needs its own rank"));
  }
  return absl::OkStatus();
}

std::vector<int> Missing(const std::vector<Socket>& others) {
  std::vector<int> ranks;
  for (size_t i = 0; i < others.size(); ++i)
    if (!others[i]) ranks.push_back(static_cast<int>(i) + 1);
  return ranks;
}

// Accepts the connections of ranks 1 … n - 1 that arrive before `deadline`.
absl::StatusOr<std::vector<Socket>> AcceptAll(const RankProcesses& here, const HostAndPort& where,
                                              Clock::time_point deadline) {
  absl::StatusOr<transfer::tcp::Bound> bound = transfer::tcp::ListenAt(where);
  RETURN_IF_ERROR(
      Annotate(bound.status(), "rank 0 cannot listen for the other ranks at ", here.address));
  std::vector<Socket> others(static_cast<size_t>(here.ranks) - 1);
  size_t missing = others.size();
  WaitLines lines(StderrEventLog(), {{"rank", "0"}});
  const Clock::time_point begun = Clock::now();
  while (missing > 0 && Clock::now() < deadline) {
    if (!WaitFor(bound->socket, POLLIN, std::min(deadline, Clock::now() + kLookAround))) {
      lines.Waits(absl::FromChrono(Clock::now() - begun), [&] {
        return absl::StrCat("rank(s) ", absl::StrJoin(Missing(others), ", "), " of ", here.ranks,
                            " to connect to ", here.address);
      });
      continue;
    }
    ASSIGN_OR_RETURN(Socket socket, transfer::tcp::AcceptAt(bound->socket));
    if (!socket) continue;
    const Clock::time_point by = std::min(deadline, Clock::now() + kGreetingTime);
    absl::StatusOr<std::string> frame = ReceiveFrame(socket, kMostGreetingBytes, by);
    if (!frame.ok()) continue;  // the peer is not a rank
    absl::StatusOr<RankMessage> message = RankMessageOf(*frame);
    const RankHello* hello = message.ok() ? std::get_if<RankHello>(&*message) : nullptr;
    if (hello == nullptr) continue;
    if (const absl::Status status = Check(*hello, here, others); !status.ok()) {
      SendFrame(socket, ToBytes(RankWelcome{status}), by).IgnoreError();
      continue;
    }
    others[static_cast<size_t>(hello->rank) - 1] = std::move(socket);
    --missing;
  }
  return others;
}

absl::StatusOr<std::unique_ptr<Collective>> ListenAsRoot(const RankProcesses& here,
                                                         const HostAndPort& where,
                                                         Clock::time_point deadline,
                                                         std::chrono::milliseconds silence) {
  ASSIGN_OR_RETURN(std::vector<Socket> others, AcceptAll(here, where, deadline));
  const std::vector<int> missing = Missing(others);
  RankWelcome welcome;
  if (!missing.empty()) {
    welcome.status = absl::DeadlineExceededError(
        absl::StrCat("rank(s) ", absl::StrJoin(missing, ", "), " of ", here.ranks,
                     " did not connect to rank 0 at ", here.address, " within ",
                     absl::FormatDuration(here.connect_timeout)));
  }
  for (const Socket& socket : others) {
    if (!socket) continue;
    // The loop notices if a rank has gone in the meantime.
    SendFrame(socket, ToBytes(welcome), Clock::now() + kGreetingTime).IgnoreError();
  }
  RETURN_IF_ERROR(welcome.status);
  ASSIGN_OR_RETURN(std::shared_ptr<RootChannel> channel,
                   RootChannel::Start(std::move(others), silence));
  const std::shared_ptr<Inbox> inbox = channel->inbox();
  return std::make_unique<HostCollective>(std::move(channel), inbox, 0, 0, here.ranks);
}

// Connects to rank 0, once rank 0 listens.
absl::StatusOr<Socket> Reach(const RankProcesses& here, const HostAndPort& where,
                             Clock::time_point deadline) {
  WaitLines lines(StderrEventLog(), {{"rank", absl::StrCat(here.rank)}});
  const Clock::time_point begun = Clock::now();
  while (true) {
    absl::StatusOr<std::vector<transfer::tcp::Endpoint>> endpoints =
        transfer::tcp::LookUp(where, /*numeric=*/false);
    absl::Status status = endpoints.status();
    for (size_t i = 0; status.ok() && i < endpoints->size(); ++i) {
      absl::StatusOr<Socket> socket = transfer::tcp::BeginConnecting((*endpoints)[i]);
      if (!socket.ok() || !WaitFor(*socket, POLLOUT, deadline)) continue;
      if (transfer::tcp::Connected(*socket).ok()) return socket;
    }
    if (Clock::now() + kRetryTime >= deadline) {
      status.Update(absl::DeadlineExceededError("nothing listens at the address"));
      return status;
    }
    lines.Waits(absl::FromChrono(Clock::now() - begun),
                [&] { return absl::StrCat("rank 0 to listen at ", here.address); });
    Sleep(absl::FromChrono(kRetryTime));
  }
}

absl::StatusOr<std::unique_ptr<Collective>> ConnectToRoot(const RankProcesses& here,
                                                          const HostAndPort& where,
                                                          Clock::time_point deadline,
                                                          std::chrono::milliseconds silence) {
  absl::StatusOr<Socket> socket = Reach(here, where, deadline);
  RETURN_IF_ERROR(Annotate(socket.status(), "rank ", here.rank, " cannot reach rank 0 at ",
                           here.address, " within ", absl::FormatDuration(here.connect_timeout)));
  const auto greet = [&]() -> absl::StatusOr<RankWelcome> {
    const RankHello hello{.launch = here.launch, .rank = here.rank, .ranks = here.ranks};
    RETURN_IF_ERROR(SendFrame(*socket, ToBytes(hello), deadline));
    // Waits longer than `deadline`, because rank 0 reports missing ranks only at its own deadline.
    ASSIGN_OR_RETURN(const std::string frame,
                     ReceiveFrame(*socket, kMostGreetingBytes, deadline + kGreetingTime));
    ASSIGN_OR_RETURN(RankMessage message, RankMessageOf(frame));
    if (auto* welcome = std::get_if<RankWelcome>(&message)) return std::move(*welcome);
    return absl::DataLossError("the answer is not that of a Penstock rank 0");
  };
  absl::StatusOr<RankWelcome> welcome = greet();
  RETURN_IF_ERROR(Annotate(welcome.status(), "rank ", here.rank, " got no welcome from rank 0 at ",
                           here.address, "; check that no other program uses this address"));
  RETURN_IF_ERROR(welcome->status);
  ASSIGN_OR_RETURN(std::shared_ptr<RemoteChannel> channel,
                   RemoteChannel::Start(*std::move(socket), silence));
  const std::shared_ptr<Inbox> inbox = channel->inbox();
  return std::make_unique<HostCollective>(std::move(channel), inbox, 0, here.rank, here.ranks);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> ConnectRanks(const RankProcesses& processes) {
  if (processes.ranks == 1) return std::move(CollectiveOfThreads(1)[0]);
  ASSIGN_OR_RETURN(const HostAndPort where, transfer::tcp::ParseAddress(processes.address));
  const Clock::time_point deadline =
      Clock::now() + absl::ToChronoMilliseconds(processes.connect_timeout);
  const std::chrono::milliseconds silence = absl::ToChronoMilliseconds(processes.silence);
  return processes.rank == 0 ? ListenAsRoot(processes, where, deadline, silence)
                             : ConnectToRoot(processes, where, deadline, silence);
}

}  // namespace penstock::replica
