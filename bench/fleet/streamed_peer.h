// SPDX-License-Identifier: Apache-2.0
// A light worker or client with its stream to a dispatcher. It opens streams one after another as
// control::KeepOpen() does, but without a thread of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "bench/fleet/latencies.h"
#include "bench/fleet/light_client.h"
#include "bench/fleet/light_worker.h"
#include "bench/fleet/timers.h"
#include "control/stub/dispatcher_stub.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"

namespace penstock::bench {

// The options that all peers of one kind share.
template <class Down>
struct PeerOptions {
  // They outlive the peers. To open a stream takes milliseconds. If the heartbeats had to wait for
  // the streams of others, a fleet that starts would seem dead.
  Timers* heartbeat_timers = nullptr;
  Timers* open_timers = nullptr;
  Latencies* heartbeats = nullptr;  // from a heartbeat's Send() to its answer
  // Called for each message, before the peer takes it. May be null.
  std::function<void(const Down&)> received;
  absl::Duration first_backoff = absl::Milliseconds(20);
  absl::Duration between_progress = absl::InfiniteDuration();  // the Light's Progress()
};

// Any thread may call any method, except Run().
template <class Light, class Up, class Down>
class StreamedPeer final : public Timers::Task, control::SessionEvents<Down> {
 public:
  using OpenStream = std::function<std::unique_ptr<control::Session<Up>>(
      control::DispatcherStub& stub, control::SessionEvents<Down>*)>;

  // `stub`: of this peer alone, so that it has a connection of its own. `open`: opens a stream on
  // it. `options` outlive the peer. Opens the first stream at `when`.
  StreamedPeer(Light light, std::unique_ptr<control::DispatcherStub> stub, OpenStream open,
               const PeerOptions<Down>& options, absl::Time when)
      : options_(options),
        stub_(std::move(stub)),
        open_(std::move(open)),
        light_(std::move(light)),
        backoff_(options.first_backoff),
        reopens_at_(when) {
    options_.open_timers->Schedule(opening_, when);
  }
  ~StreamedPeer() override {
    End();
    options_.open_timers->Forget(opening_);
    options_.heartbeat_timers->Forget(*this);
  }
  StreamedPeer(const StreamedPeer&) = delete;
  StreamedPeer& operator=(const StreamedPeer&) = delete;

  // Breaks the stream, and opens no other.
  void End() {
    std::unique_ptr<control::Session<Up>> over;
    {
      MutexLock lock(mu_);
      ended_ = true;
      light_.OnLost();
      over = std::move(session_);
    }
    if (over != nullptr) over->Stop();  // outside the lock: an event may wait for it
  }
  void Send(Up message) {
    MutexLock lock(mu_);
    if (session_ != nullptr && !closed_) session_->Send(std::move(message));
  }
  // Returns what `look` returns for the worker or client, under the lock.
  template <class Look>
  auto Get(Look look) const {
    MutexLock lock(mu_);
    return look(light_);
  }

  // Sends what is due.
  absl::Time Run(absl::Time now) override {
    MutexLock lock(mu_);
    if (ended_ || session_ == nullptr || closed_) return absl::InfiniteFuture();
    return Tend(now);
  }

 private:
  static constexpr absl::Duration kMaxBackoff = absl::Seconds(2);

  // Opens the next stream.
  class Opening final : public Timers::Task {
   public:
    explicit Opening(StreamedPeer& peer) : peer_(peer) {}
    absl::Time Run(absl::Time now) override { return peer_.Open(now); }

   private:
    StreamedPeer& peer_;
  };

  absl::Time Open(absl::Time now) {
    std::unique_ptr<control::Session<Up>> over;
    {
      MutexLock lock(mu_);
      if (ended_ || !light_.refused().ok() || (session_ != nullptr && !closed_))
        return absl::InfiniteFuture();
      if (now < reopens_at_) return reopens_at_;
      over = std::move(session_);
    }
    if (over != nullptr) over->Stop();  // outside the lock, as in End()
    over.reset();
    MutexLock lock(mu_);
    if (ended_) return absl::InfiniteFuture();
    closed_ = false;
    session_ = open_(*stub_, this);
    session_->Send(light_.Hello());
    return absl::InfiniteFuture();  // the end of the stream schedules the next one
  }

  static bool IsHeartbeatAnswer(const control::WorkerDown& message) {
    return std::holds_alternative<control::WorkerHeartbeatAnswer>(message);
  }
  static bool IsHeartbeatAnswer(const control::ClientDown& message) {
    return std::holds_alternative<control::ClientHeartbeatAnswer>(message);
  }

  void OnMessage(Down message, uint64_t sequence) override {
    if (options_.received) options_.received(message);
    const absl::Time now = BootTime();
    MutexLock lock(mu_);
    if (IsHeartbeatAnswer(message) && !unanswered_.empty()) {  // each is answered once, in order
      options_.heartbeats->Add(now - unanswered_.front());
      unanswered_.pop_front();
    }
    const bool before = light_.welcome();
    std::vector<Up> answers;
    light_.OnMessage(message, sequence, answers);
    if (session_ != nullptr)
      for (Up& answer : answers) session_->Send(std::move(answer));
    if (before || !light_.welcome()) return;
    backoff_ = options_.first_backoff;
    // At a random phase, so that the peers' heartbeats are spread after a restart.
    beats_at_ = now + RandomBetween(0, 1) * light_.interval();
    progresses_at_ = options_.between_progress == absl::InfiniteDuration()
                         ? absl::InfiniteFuture()
                         : now + RandomBetween(0, 1) * options_.between_progress;
    options_.heartbeat_timers->Schedule(*this, std::min(beats_at_, progresses_at_));
  }
  void OnClosed(const absl::Status& /*status*/) override {
    MutexLock lock(mu_);
    closed_ = true;
    light_.OnLost();
    unanswered_.clear();
    if (ended_) return;
    reopens_at_ = BootTime() + RandomBetween(0.5, 1) * backoff_;
    backoff_ = std::min(2 * backoff_, kMaxBackoff);
    options_.open_timers->Schedule(opening_, reopens_at_);
  }

  // Sends what is due. Returns when to call it again.
  absl::Time Tend(absl::Time now) REQUIRES(mu_) {
    if (!light_.welcome()) return absl::InfiniteFuture();
    if (now >= beats_at_) {
      unanswered_.push_back(BootTime());
      session_->Send(light_.Beat());
      beats_at_ = std::max(beats_at_ + light_.interval(), now);
    }
    if (now >= progresses_at_) {
      if (auto progress = light_.Progress()) session_->Send(*std::move(progress));
      progresses_at_ = std::max(progresses_at_ + options_.between_progress, now);
    }
    return std::min(beats_at_, progresses_at_);
  }

  const PeerOptions<Down>& options_;
  const std::unique_ptr<control::DispatcherStub> stub_;
  const OpenStream open_;
  Opening opening_{*this};

  mutable Mutex mu_;
  Light light_ GUARDED_BY(mu_);
  std::unique_ptr<control::Session<Up>> session_ GUARDED_BY(mu_);
  bool closed_ GUARDED_BY(mu_) = false;  // session_ is over
  bool ended_ GUARDED_BY(mu_) = false;
  std::deque<absl::Time> unanswered_ GUARDED_BY(mu_);  // heartbeats on this stream, oldest first
  absl::Duration backoff_ GUARDED_BY(mu_);
  absl::Time reopens_at_ GUARDED_BY(mu_);
  absl::Time beats_at_ GUARDED_BY(mu_) = absl::InfiniteFuture();
  absl::Time progresses_at_ GUARDED_BY(mu_) = absl::InfiniteFuture();
};

using StreamedWorker = StreamedPeer<LightWorker, control::WorkerUp, control::WorkerDown>;
using StreamedClient = StreamedPeer<LightClient, control::ClientUp, control::ClientDown>;

}  // namespace penstock::bench
