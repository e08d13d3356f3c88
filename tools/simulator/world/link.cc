// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/link.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock::simulator {
namespace {

// The time within which TCP or a keep-alive notices a lost message. The service sends keep-alives
// after 10 s, and waits 5 s for the answer.
constexpr Span kLossIsNoticed = {absl::ZeroDuration(), absl::Seconds(15)};
constexpr Span kResetIsNoticed = {absl::ZeroDuration(), absl::Milliseconds(500)};
constexpr Span kCrashIsNoticed = {absl::ZeroDuration(), absl::Milliseconds(50)};
constexpr Span kConnectTimeout = {absl::Seconds(9), absl::Seconds(11)};
// The same for a client that pings (control/rpc/grpc_dispatcher_stub.cc).
constexpr Span kPingIsMissed = {absl::Seconds(2), absl::Seconds(3)};
constexpr absl::Duration kPingedConnectTimeout = absl::Seconds(1);

Link::Side Other(Link::Side side) {
  return side == Link::kClient ? Link::kServer : Link::kClient;
}

absl::Status TimedOut() {
  return absl::UnavailableError("connection timed out");
}
absl::Status Refused() {
  return absl::UnavailableError("connection refused");
}
absl::Status Reset() {
  return absl::UnavailableError("connection reset by peer");
}

class LinkEnd final : public Connection {
 public:
  LinkEnd(std::shared_ptr<Link> link, Link::Side side) : link_(std::move(link)), side_(side) {}
  ~LinkEnd() override { link_->Release(side_); }
  void Send(std::string message) override { link_->Send(side_, std::move(message)); }
  void Close(const absl::Status& reason) override { link_->Close(side_, reason); }
  void Stop() override { link_->Stop(side_); }

 private:
  const std::shared_ptr<Link> link_;
  const Link::Side side_;
};

}  // namespace

Link::Link(Network& network, uint64_t number, std::shared_ptr<Process> client,
           std::shared_ptr<ConnectionEvents> events, bool pinged)
    : network_(network), scheduler_(network.scheduler_), number_(number), pinged_(pinged) {
  ends_[kClient].process = std::move(client);
  ends_[kClient].events = std::move(events);
  ends_[kServer].over = true;  // until it is reached
}

std::unique_ptr<Connection> Link::NewEnd(Side side) {
  return std::make_unique<LinkEnd>(shared_from_this(), side);
}

// --- The beginning ----------------------------------------------------------------

void Link::Reach(const std::string& address, uint64_t listener, std::shared_ptr<Process> server) {
  ends_[kServer].process = std::move(server);
  ends_[kServer].over = false;
  Transmit(kClient, Opening{address, listener}, /*delays=*/3);
  if (pinged_) CheckPauseAfter(kPingedConnectTimeout);
}

void Link::Refuse() {
  EndAt(kClient, Now() + network_.DrawDelay() + network_.DrawDelay(), Refused());
}

void Link::TimeOut() {
  const absl::Duration time =
      pinged_ ? kPingedConnectTimeout : scheduler_.dice().Draw(kConnectTimeout);
  EndAt(kClient, Now() + time, TimedOut());
}

void Link::Accept(const Opening& opening) {
  End& end = ends_[kServer];
  const Network::Listener* listener = network_.Find(opening.address);
  const bool listens = listener != nullptr && listener->number == opening.listener;
  if (!listens || PathIsCut()) {
    end.over = true;
    end.arriving.clear();
    return listens ? TimeOut() : EndAt(kClient, Now() + network_.DrawDelay(), Refused());
  }
  const AcceptConnection accept = listener->accept;  // may stop listening
  std::shared_ptr<ConnectionEvents> events = accept(NewEnd(kServer));
  if (!end.stopped && !end.over) end.events = std::move(events);
}

// --- Calls of the ends ------------------------------------------------------------

void Link::Send(Side from, std::string message) {
  Transmit(from, std::move(message));
}

void Link::Close(Side side, const absl::Status& reason) {
  Transmit(side, reason);
  End& end = ends_[side];
  end.closed = true;
  end.lost = true;
  end.arriving.clear();
  EndAt(side, Now(), absl::OkStatus());
}

void Link::Stop(Side side) {
  End& end = ends_[side];
  end.stopped = true;
  end.lost = true;
  end.arriving.clear();
  const std::shared_ptr<ConnectionEvents> events = std::move(end.events);
  while (end.running != 0 && end.running != scheduler_.CurrentFiber()) {
    scheduler_.Wait(&end, absl::InfiniteFuture());
  }
  ForgetIfOver();
}

void Link::Release(Side side) {
  End& end = ends_[side];
  Transmit(side, absl::OkStatus());
  end.over = true;
  end.arriving.clear();
  const std::shared_ptr<ConnectionEvents> events = std::move(end.events);
  ForgetIfOver();
}

// --- Faults -----------------------------------------------------------------------

void Link::BreakBetween(const std::string& a, const std::string& b) {
  if (ends_[kServer].process == nullptr) return;
  const std::string& client = ends_[kClient].process->host();
  const std::string& server = ends_[kServer].process->host();
  if (!(client == a && server == b) && !(client == b && server == a)) return;
  for (const Side side : {kClient, kServer}) {
    End& end = ends_[side];
    if (end.over) continue;
    LoseSome(end);
    EndAt(side, Now() + scheduler_.dice().Draw(kResetIsNoticed), Reset());
  }
}

// What arrives before the drawn message still arrives, also from a process that is gone.
void Link::LoseSome(End& end) {
  const int64_t kept = scheduler_.dice().Between(0, static_cast<int64_t>(end.arriving.size()));
  end.arriving.erase(std::next(end.arriving.begin(), kept), end.arriving.end());
  end.lost = true;
}

void Link::OnKilled(const Process& process) {
  for (const Side side : {kClient, kServer}) {
    End& end = ends_[side];
    if (end.process.get() != &process) continue;
    end.over = true;
    end.arriving.clear();
    LoseSome(ends_[Other(side)]);
    EndAt(Other(side), Now() + scheduler_.dice().Draw(kCrashIsNoticed), Reset());
  }
}

std::array<std::shared_ptr<ConnectionEvents>, 2> Link::Abandon() {
  for (End& end : ends_) {
    end.over = true;
    end.arriving.clear();
  }
  return {std::move(ends_[kClient].events), std::move(ends_[kServer].events)};
}

void Link::LoseFromNowOn(Side to) {
  ends_[to].lost = true;
  for (const Side side : {kClient, kServer}) {
    const Span time = pinged_ && side == kClient ? kPingIsMissed : kLossIsNoticed;
    EndAt(side, Now() + scheduler_.dice().Draw(time), TimedOut());
  }
}

void Link::OnPaused(const Process& process) {
  if (ends_[kServer].process.get() != &process) return;
  CheckPauseAfter(scheduler_.dice().Draw(kPingIsMissed));
}

void Link::CheckPauseAfter(absl::Duration time) {
  scheduler_.At(Now() + time, ends_[kClient].process, [link = weak_from_this()] {
    const std::shared_ptr<Link> there = link.lock();
    if (there == nullptr || !there->ends_[kServer].process->paused()) return;
    there->Transmit(kClient, TimedOut());  // after what was sent before
    there->EndAt(kClient, there->Now(), TimedOut());
  });
}

// --- Messages in flight -----------------------------------------------------------

absl::Time Link::Now() const {
  return scheduler_.now();
}

bool Link::PathIsCut() const {
  const std::string& client = ends_[kClient].process->host();
  const std::string& server = ends_[kServer].process->host();
  return network_.IsCut(client, server) || network_.IsCut(server, client);
}

void Link::Transmit(Side from, What what, int delays) {
  const End& end = ends_[from];
  End& to = ends_[Other(from)];
  if (end.over || end.closed || !end.process->alive() || to.over || to.lost) return;
  if (network_.IsCut(end.process->host(), to.process->host())) return LoseFromNowOn(Other(from));
  absl::Duration delay;
  for (int i = 0; i < delays; ++i) delay += network_.DrawDelay();
  to.last_due = std::max(to.last_due, Now() + delay);
  to.arriving.push_back({to.last_due, std::move(what)});
  Wake(Other(from), to.last_due);
}

void Link::EndAt(Side side, absl::Time when, const absl::Status& why) {
  End& end = ends_[side];
  if (end.over || when >= end.ends) return;
  end.ends = when;
  end.why = why;
  Wake(side, when);
}

void Link::Wake(Side side, absl::Time when) {
  End& end = ends_[side];
  if (end.over || end.running != 0 || when >= end.wakes || !end.process->alive()) return;
  end.wakes = when;
  scheduler_.At(when, end.process, [link = weak_from_this(), side] {
    if (const std::shared_ptr<Link> there = link.lock()) there->Take(side);
  });
}

void Link::Take(Side side) {
  End& end = ends_[side];
  end.wakes = absl::InfiniteFuture();
  if (end.running != 0) return;  // that fiber goes on
  end.running = scheduler_.CurrentFiber();
  while (!end.over && end.process->alive()) {
    if (end.ends <= Now()) {
      Finish(end);
    } else if (!end.arriving.empty() && end.arriving.front().due <= Now()) {
      TakeFirst(side);
    } else {
      break;
    }
  }
  end.running = 0;
  scheduler_.Notify(&end, /*all=*/true);
  if (!end.arriving.empty()) Wake(side, end.arriving.front().due);
  if (end.ends != absl::InfiniteFuture()) Wake(side, end.ends);
  ForgetIfOver();
}

void Link::TakeFirst(Side side) {
  End& end = ends_[side];
  const std::shared_ptr<Process>& peer = ends_[Other(side)].process;
  What what = std::move(end.arriving.front().what);
  end.arriving.pop_front();
  if (const auto* opening = std::get_if<Opening>(&what)) {
    if (peer->alive()) Accept(*opening);
    return;
  }
  if (const auto* reason = std::get_if<absl::Status>(&what)) {
    end.why = *reason;
    return Finish(end);
  }
  auto& message = std::get<std::string>(what);
  scheduler_.trace().Add(Now(), "message", peer->number(), end.process->number(), message);
  const std::shared_ptr<ConnectionEvents> events = end.events;
  if (events != nullptr) events->OnMessage(std::move(message));
}

void Link::Finish(End& end) {
  end.over = true;
  end.arriving.clear();
  const std::shared_ptr<ConnectionEvents> events = std::move(end.events);
  if (events != nullptr) events->OnClosed(end.why);
}

void Link::ForgetIfOver() {
  for (const End& end : ends_) {
    if (!end.over || end.events != nullptr) return;
  }
  network_.Forget(number_, *ends_[kClient].process, ends_[kServer].process.get());
}

}  // namespace penstock::simulator
