// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/listener.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/ucx/compatibility.h"
#include "dataplane/transfer/ucx/engine.h"
#include "dataplane/transfer/ucx/send_end.h"
#include "include/status_macros.h"

namespace penstock::transfer::ucx {
namespace {

class UcxListener final : public Listener, public SendEnd::Owner {
 public:
  UcxListener(Resources& resources, const Settings& settings, Listener::Accept accept)
      : resources_(resources), settings_(settings), accept_(std::move(accept)) {}
  ~UcxListener() override {
    if (engine_ == nullptr) return;
    if (!engine_->stopped()) CloseLinks();  // otherwise the program has ended
    engine_->Stop();
  }

  absl::Status Start() {
    ASSIGN_OR_RETURN(engine_,
                     Engine::Start(resources_, settings_.lanes, [this] { return LetIn(); }));
    MutexLock lock(mu_);
    begun_ = engine_;
    return absl::OkStatus();
  }

  std::string address() const override { return engine_->address(); }
  std::string compatibility() const override {
    return CompatibilityOf(resources_.fabric.release(), settings_.lanes, engine_->number());
  }

 private:
  // Called on the engine's thread.
  std::shared_ptr<Link> LetIn() {
    MutexLock lock(mu_);
    // The client tries again, or tries another worker.
    if (stopped_ || begun_ == nullptr) return nullptr;
    links_.push_back(std::make_shared<SendEnd>(begun_, resources_.pool, *this));
    return links_.back();
  }
  absl::StatusOr<std::shared_ptr<SendEvents>> OnHello(const Hello& hello,
                                                      std::shared_ptr<SendLink> link) override {
    return accept_(hello, std::move(link));
  }
  void OnOver(SendEnd& end) override {
    {
      MutexLock lock(mu_);
      std::erase_if(links_, [&](const auto& link) { return link.get() == &end; });
    }
    none_.NotifyAll();
  }

  // Closes all links, breaks the links whose clients do not answer, and returns when no link is
  // left.
  void CloseLinks() {
    const absl::Status reason = absl::UnavailableError("the worker has stopped");
    for (const std::shared_ptr<SendEnd>& link : Stop()) link->Close(reason);
    MutexLock lock(mu_);
    const auto none = [this]() REQUIRES(mu_) { return links_.empty(); };
    if (none_.WaitFor(lock, absl::FromChrono(Listener::kStopTimeout), none)) return;
    for (const std::shared_ptr<SendEnd>& link : links_) link->Break(reason);
    none_.Wait(lock, none);
  }
  // Prevents new links and returns the existing ones.
  std::vector<std::shared_ptr<SendEnd>> Stop() {
    MutexLock lock(mu_);
    stopped_ = true;
    return links_;
  }

  Resources& resources_;
  const Settings settings_;
  const Listener::Accept accept_;
  std::shared_ptr<Engine> engine_;

  Mutex mu_;
  Condition none_;
  std::shared_ptr<Engine> begun_ GUARDED_BY(mu_);  // engine_, once its thread may use it
  bool stopped_ GUARDED_BY(mu_) = false;
  std::vector<std::shared_ptr<SendEnd>> links_ GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> StartListener(Resources& resources,
                                                        const Settings& settings,
                                                        Listener::Accept accept) {
  auto listener = std::make_unique<UcxListener>(resources, settings, std::move(accept));
  RETURN_IF_ERROR(listener->Start());
  return listener;
}

}  // namespace penstock::transfer::ucx
