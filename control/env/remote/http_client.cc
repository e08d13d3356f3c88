// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/http_client.h"

#include <curl/curl.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <list>
#include <stop_token>
#include <utility>
#include <vector>

#include "control/env/remote/transfer.h"
#include "control/observe/event_log.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::remote {
namespace {

// Unused buffers may take 1/kSpareShare of read_ahead_bytes.
constexpr size_t kSpareShare = 4;
constexpr auto kLongestPoll = std::chrono::seconds(10);
constexpr auto kBetweenComplaints = std::chrono::seconds(30);

// Passes the outcome from the client's thread to the caller.
struct Ticket {
  Mutex mu;
  Condition done_cv;
  std::optional<absl::StatusOr<GetReply>> outcome GUARDED_BY(mu);
  std::atomic<bool> abandoned = false;

  void Finish(absl::StatusOr<GetReply> with) {
    MutexLock lock(mu);
    outcome = std::move(with);
    done_cv.NotifyAll();
  }
};

struct Job {
  std::shared_ptr<Ticket> ticket;
  std::unique_ptr<Transfer> transfer;
  CURL* easy = nullptr;  // while a try is under way
};
using Jobs = std::list<Job>;

class Client final : public HttpClient {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Make(const FilesConfig& config) {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    CURLM* multi = ready == CURLE_OK ? curl_multi_init() : nullptr;
    if (multi == nullptr) return absl::InternalError("cannot start libcurl");
    std::unique_ptr<Client> client(new Client(config, multi));
    ASSIGN_OR_RETURN(client->thread_,
                     StartThread("files over HTTP", [c = client.get()] { c->Run(); }));
    return client;
  }
  ~Client() override {
    Stop();
    for (CURL* easy : idle_) curl_easy_cleanup(easy);
    curl_multi_cleanup(multi_);
  }

  std::unique_ptr<PendingGet> Start(GetRequest request) override;
  void Stop() override;

 private:
  class Pending;

  Client(const FilesConfig& config, CURLM* multi)
      : config_(config),
        multi_(multi),
        buffers_(static_cast<size_t>(config.range_bytes),
                 static_cast<size_t>(config.read_ahead_bytes / config.range_bytes) / kSpareShare) {
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(config.max_connections));
  }

  // --- On the client's thread
  void Run();
  bool TakeNew();  // false once stopped
  void DropAbandoned(Jobs& jobs);
  void BeginDue();
  void EndFinished();
  void EndStalled();
  void End(Jobs::iterator job, CURLcode code);
  void Release(Job& job);  // releases the job's easy handle
  void Complain(const Transfer& transfer);
  int PollMilliseconds() const;

  const FilesConfig config_;
  CURLM* const multi_;
  Buffers buffers_;
  Thread thread_;

  Mutex mu_;
  bool stopping_ GUARDED_BY(mu_) = false;
  Jobs new_ GUARDED_BY(mu_);

  // Used only by the client's thread.
  Jobs waiting_;  // wait until they are due, or for a connection
  Jobs active_;
  std::vector<CURL*> idle_;
  Clock::time_point complained_;
};

class Client::Pending final : public PendingGet {
 public:
  Pending(Client& client, std::shared_ptr<Ticket> ticket)
      : client_(client), ticket_(std::move(ticket)) {}
  ~Pending() override {
    {
      MutexLock lock(ticket_->mu);
      if (taken_ || ticket_->outcome.has_value()) return;
    }
    ticket_->abandoned = true;
    curl_multi_wakeup(client_.multi_);
  }

  absl::StatusOr<GetReply> Wait(const std::stop_token& stop) override {
    const std::stop_callback wake(stop, [this] {
      MutexLock lock(ticket_->mu);
      ticket_->done_cv.NotifyAll();
    });
    MutexLock lock(ticket_->mu);
    while (!ticket_->outcome.has_value()) {
      if (stop.stop_requested()) return absl::CancelledError("reading was stopped");
      ticket_->done_cv.Wait(lock);
    }
    taken_ = true;
    return *std::move(ticket_->outcome);
  }

 private:
  Client& client_;
  const std::shared_ptr<Ticket> ticket_;
  bool taken_ = false;
};

std::unique_ptr<PendingGet> Client::Start(GetRequest request) {
  auto ticket = std::make_shared<Ticket>();
  Job job{ticket, std::make_unique<Transfer>(std::move(request), config_, buffers_)};
  {
    MutexLock lock(mu_);
    if (stopping_) {
      ticket->Finish(absl::CancelledError("this process no longer reads files"));
    } else {
      new_.push_back(std::move(job));
    }
  }
  curl_multi_wakeup(multi_);
  return std::make_unique<Pending>(*this, std::move(ticket));
}

void Client::Stop() {
  {
    MutexLock lock(mu_);
    if (stopping_) return;
    stopping_ = true;
  }
  curl_multi_wakeup(multi_);
  if (thread_.joinable()) thread_.join();
}

void Client::Run() {
  // Writing to a TLS connection that was cut raises SIGPIPE.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);

  while (TakeNew()) {
    DropAbandoned(waiting_);
    DropAbandoned(active_);
    BeginDue();
    int running = 0;
    curl_multi_perform(multi_, &running);
    EndFinished();
    EndStalled();
    curl_multi_poll(multi_, nullptr, 0, PollMilliseconds(), nullptr);
  }
  waiting_.splice(waiting_.end(), active_);
  for (Job& job : waiting_) {
    Release(job);
    job.ticket->Finish(absl::CancelledError("this process no longer reads files"));
  }
  waiting_.clear();
}

bool Client::TakeNew() {
  MutexLock lock(mu_);
  waiting_.splice(waiting_.end(), new_);
  return !stopping_;
}

void Client::DropAbandoned(Jobs& jobs) {
  for (auto job = jobs.begin(); job != jobs.end();) {
    if (!job->ticket->abandoned) {
      ++job;
      continue;
    }
    Release(*job);
    job = jobs.erase(job);
  }
}

void Client::BeginDue() {
  const Clock::time_point now = Clock::now();
  for (auto next = waiting_.begin();
       next != waiting_.end() && active_.size() < static_cast<size_t>(config_.max_connections);) {
    const auto job = next++;
    if (job->transfer->due() > now) continue;
    if (idle_.empty()) idle_.push_back(curl_easy_init());
    job->easy = idle_.back();
    PENSTOCK_CHECK(job->easy != nullptr);
    idle_.pop_back();
    job->transfer->Begin(job->easy);
    curl_easy_setopt(job->easy, CURLOPT_PRIVATE, &*job);
    active_.splice(active_.end(), waiting_, job);
    curl_multi_add_handle(multi_, job->easy);
  }
}

void Client::EndFinished() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURL* easy = message->easy_handle;
    const CURLcode code = message->data.result;
    const auto job = std::find_if(active_.begin(), active_.end(),
                                  [&](const Job& each) { return each.easy == easy; });
    if (job != active_.end()) End(job, code);
  }
}

void Client::EndStalled() {
  const Clock::time_point now = Clock::now();
  for (auto next = active_.begin(); next != active_.end();) {
    const auto job = next++;
    if (job->transfer->stalls_at() <= now) End(job, CURLE_OPERATION_TIMEDOUT);
  }
}

void Client::End(Jobs::iterator job, CURLcode code) {
  std::optional<absl::StatusOr<GetReply>> outcome = job->transfer->End(code);
  Release(*job);
  if (!outcome.has_value()) {
    Complain(*job->transfer);
    waiting_.splice(waiting_.end(), active_, job);
    return;
  }
  job->ticket->Finish(*std::move(outcome));
  active_.erase(job);
}

void Client::Release(Job& job) {
  if (job.easy == nullptr) return;
  curl_multi_remove_handle(multi_, job.easy);
  idle_.push_back(std::exchange(job.easy, nullptr));
}

// Logs one event for all requests, because many requests fail together when a server is down.
void Client::Complain(const Transfer& transfer) {
  std::string complaint = transfer.Complaint();
  const Clock::time_point now = Clock::now();
  if (complaint.empty() || now - complained_ < kBetweenComplaints) return;
  complained_ = now;
  StderrEventLog()->Write({"waiting_for_file", {{"reason", std::move(complaint)}}});
}

int Client::PollMilliseconds() const {
  const Clock::time_point now = Clock::now();
  Clock::time_point until = now + kLongestPoll;
  for (const Job& job : active_) until = std::min(until, job.transfer->stalls_at());
  if (active_.size() < static_cast<size_t>(config_.max_connections)) {
    for (const Job& job : waiting_) until = std::min(until, job.transfer->due());
  }
  return static_cast<int>(
      std::chrono::ceil<std::chrono::milliseconds>(std::max(until - now, Clock::duration::zero()))
          .count());
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Make(const FilesConfig& config) {
  return Client::Make(config);
}

}  // namespace penstock::remote
