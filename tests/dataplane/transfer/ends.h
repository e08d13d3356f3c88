// SPDX-License-Identifier: Apache-2.0
// Two ends of links that record their events, for tests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dataplane/memory/pool.h"
#include "dataplane/transfer/transport.h"
#include "tests/eventually.h"

namespace penstock::transfer {

// An object whose state several threads change and a test waits for.
class Watched {
 public:
  // Waits until `condition` holds. Returns false after a time that only a broken program needs.
  bool Await(const std::function<bool()>& condition) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(60), condition);
  }

 protected:
  template <class F>
  void Change(F change) {
    {
      std::lock_guard lock(mu_);
      change();
    }
    changed_.notify_all();
  }
  template <class F>
  auto Look(F look) const {
    std::lock_guard lock(mu_);
    return look();
  }

 private:
  mutable std::mutex mu_;
  std::condition_variable changed_;
};

class WorkerEnd : public SendEvents, public Watched {
 public:
  explicit WorkerEnd(std::shared_ptr<SendLink> link) : link_(std::move(link)) {}

  void OnCredits(Credits granted) override {
    Change([&] { granted_ += granted.count; });
    if (on_credits) on_credits(*link_, granted);
  }
  void OnReceived(absl::Span<const Acknowledged> received) override {
    Change([&] { received_.insert(received_.end(), received.begin(), received.end()); });
  }
  void OnClosed(const absl::Status& reason, std::vector<Sent> unconfirmed) override {
    if (on_closed) on_closed();
    Change([&] {
      closed_ = reason;
      unconfirmed_ = std::move(unconfirmed);
    });
  }

  SendLink& link() { return *link_; }
  void LetGo() { link_.reset(); }
  bool AwaitGranted(int64_t count) {
    return Await([&] { return granted_ >= count; });
  }
  bool AwaitReceived(int64_t count) {
    return Await([&] { return static_cast<int64_t>(received_.size()) >= count; });
  }
  // Returns the status of OnClosed; Internal if it never comes.
  absl::Status AwaitClosed() {
    if (!Await([&] { return closed_.has_value(); })) return absl::InternalError("never closed");
    return *closed_;
  }
  int64_t received() const {
    return Look([&] { return static_cast<int64_t>(received_.size()); });
  }
  // Returns the elements that were reported as received, in the order of the reports.
  std::vector<Acknowledged> acknowledged() const {
    return Look([&] { return received_; });
  }
  void ForgetUnconfirmed() {
    Change([&] { unconfirmed_.clear(); });
  }
  std::vector<Index> unconfirmed() const {
    return Look([&] {
      std::vector<Index> indices;
      for (const Sent& sent : unconfirmed_) indices.push_back(sent.identity.index);
      return indices;
    });
  }

  // Returns the errors of the unconfirmed, OK for an element.
  std::vector<absl::Status> unconfirmed_errors() const {
    return Look([&] {
      std::vector<absl::Status> errors;
      for (const Sent& sent : unconfirmed_) errors.push_back(sent.error);
      return errors;
    });
  }

  std::function<void(SendLink&, Credits)> on_credits;  // set before credits come
  std::function<void()> on_closed;                     // set before anyone closes

 private:
  std::shared_ptr<SendLink> link_;
  int64_t granted_ = 0;
  std::vector<Acknowledged> received_;
  std::optional<absl::Status> closed_;
  std::vector<Sent> unconfirmed_;
};

// A listener that accepts every client with the token "sesame".
class Worker : public Watched {
 public:
  explicit Worker(Transport& transport) {
    absl::StatusOr<std::unique_ptr<Listener>> listener =
        transport.Listen({}, [this](const Hello& hello, std::shared_ptr<SendLink> link) {
          return Accept(hello, std::move(link));
        });
    if (listener.ok()) listener_ = *std::move(listener);
  }

  bool listening() const { return listener_ != nullptr; }
  std::string address() const { return listener_->address(); }
  TransportOffer offer(std::string_view protocol) const {
    return {std::string(protocol), listener_->address(), listener_->compatibility()};
  }
  // Returns the link accepted as number `i`, from 0; nullptr if it never comes.
  std::shared_ptr<WorkerEnd> Link(size_t i) {
    return Await([&] { return links_.size() > i; }) ? links_[i] : nullptr;
  }
  // Returns all accepted links.
  std::vector<std::shared_ptr<WorkerEnd>> links() const {
    return Look([&] { return links_; });
  }
  void Stop() { listener_.reset(); }

  std::function<void(WorkerEnd&)> on_accept;

 private:
  absl::StatusOr<std::shared_ptr<SendEvents>> Accept(const Hello& hello,
                                                     std::shared_ptr<SendLink> link) {
    if (hello.token != "sesame") return absl::PermissionDeniedError("wrong token for this job");
    auto end = std::make_shared<WorkerEnd>(std::move(link));
    if (on_accept) on_accept(*end);
    Change([&] { links_.push_back(end); });
    return end;
  }

  std::vector<std::shared_ptr<WorkerEnd>> links_;
  std::unique_ptr<Listener> listener_;  // destroyed first
};

// Returns the transports that run on this machine: `ucx` may not.
inline std::vector<std::string> TransportsThatRun() {
  std::vector<std::string> names = TransportNames();
  std::erase_if(names,
                [](const std::string& name) { return !Worker(**FindTransport(name)).listening(); });
  return names;
}

class ClientEnd : public ReceiveEvents, public Watched {
 public:
  void OnOpen() override {
    Change([&] { open_ = true; });
  }
  void OnElements(absl::Span<Element> elements) override {
    const std::function<void(const Element&)> look_at = Look([&] { return on_element; });
    for (Element& element : elements) {
      if (look_at) look_at(element);
      Change([&] {
        indices_.push_back(element.identity().index);
        elements_.push_back(std::move(element));
        events_behind_end_ += over_;
      });
    }
  }
  void OnError(const Identity& identity, const absl::Status& error) override {
    Change([&] {
      indices_.push_back(identity.index);
      errors_.push_back(error);
      events_behind_end_ += over_;
    });
  }
  void OnRecalled(Credits credits) override {
    Change([&] { recalled_.push_back(credits.count); });
  }
  void OnClosed(const absl::Status& reason) override {
    Change([&] {
      closed_ = reason;
      events_behind_end_ += over_;
    });
  }

  bool AwaitOpen() {
    return Await([&] { return open_; });
  }
  bool AwaitCount(size_t count) {
    return Await([&] { return indices_.size() >= count; });
  }
  bool AwaitRecalled(size_t times) {
    return Await([&] { return recalled_.size() >= times; });
  }
  // Waits until each of `granted` credits has come back or brought an element or error.
  bool AwaitSettled(int64_t granted) {
    return Await([&] {
      return std::accumulate(recalled_.begin(), recalled_.end(), std::ssize(indices_)) >= granted;
    });
  }
  absl::Status AwaitClosed() {
    if (!Await([&] { return closed_.has_value(); })) return absl::InternalError("never closed");
    return *closed_;
  }
  // Counts every later event as an event after the end.
  void DeclareOver() {
    Change([&] { over_ = true; });
  }

  std::vector<Index> indices() const {
    return Look([&] { return indices_; });
  }
  std::vector<int64_t> recalled() const {
    return Look([&] { return recalled_; });
  }
  std::vector<absl::Status> errors() const {
    return Look([&] { return errors_; });
  }
  std::vector<Element> TakeElements() {
    std::vector<Element> taken;
    Change([&] { taken = std::exchange(elements_, {}); });
    return taken;
  }
  bool closed() const {
    return Look([&] { return closed_.has_value(); });
  }
  int events_behind_end() const {
    return Look([&] { return events_behind_end_; });
  }

  // Replaces on_element from now on.
  void LookAtElements(std::function<void(const Element&)> look) {
    Change([&] { on_element = std::move(look); });
  }
  std::function<void(const Element&)> on_element;  // set before the link opens

 private:
  bool open_ = false;
  bool over_ = false;
  int events_behind_end_ = 0;
  std::vector<Index> indices_;  // of elements and errors, in the order received
  std::vector<Element> elements_;
  std::vector<absl::Status> errors_;
  std::vector<int64_t> recalled_;
  std::optional<absl::Status> closed_;
};

}  // namespace penstock::transfer
