// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/network.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/protocol/host_port.h"
#include "penstock/check.h"
#include "tools/simulator/world/link.h"

namespace penstock::simulator {

class Network::ListeningAcceptor final : public Acceptor {
 public:
  ListeningAcceptor(Network& network, std::string address, uint64_t number)
      : network_(network), address_(std::move(address)), number_(number) {}
  ~ListeningAcceptor() override {
    const auto found = network_.listeners_.find(address_);
    if (found == network_.listeners_.end() || found->second.number != number_) return;
    network_.listeners_.erase(found);
  }

 private:
  Network& network_;
  const std::string address_;
  const uint64_t number_;
};

Network::~Network() {
  for (const auto& [number, link] : std::exchange(links_, {})) link->Abandon();
}

absl::StatusOr<std::unique_ptr<Acceptor>> Network::Listen(const std::shared_ptr<Process>& at,
                                                          const std::string& address,
                                                          AcceptConnection accept) {
  if (const Listener* there = Find(address)) {
    return absl::AlreadyExistsError(
        absl::StrCat(there->process->name(), " listens at ", address, " already"));
  }
  const uint64_t number = ++last_number_;
  if (at->alive()) listeners_[address] = {at, std::move(accept), number};
  return std::make_unique<ListeningAcceptor>(*this, address, number);
}

std::unique_ptr<Connection> Network::Connect(const std::string& address,
                                             std::shared_ptr<ConnectionEvents> events) {
  const std::shared_ptr<Process> process = scheduler_.current_process();
  PENSTOCK_CHECK(process != nullptr);
  const Listener* listener = Find(address);
  const std::string& here = process->host();
  const std::string there =
      listener != nullptr ? listener->process->host() : control::HostOf(address);
  const auto link = std::make_shared<Link>(*this, ++last_number_, process, std::move(events),
                                           pinged.contains(there));
  std::unique_ptr<Connection> connection = link->NewEnd(Link::kClient);
  if (!process->alive()) {
    link->Abandon();
    return connection;
  }
  const uint64_t number = last_number_;
  links_.emplace(number, link);
  NoteEnd(number, *process);
  if (IsCut(here, there) || IsCut(there, here)) {
    link->TimeOut();
  } else if (listener == nullptr) {
    link->Refuse();
  } else {
    NoteEnd(number, *listener->process);
    link->Reach(address, listener->number, listener->process);
  }
  return connection;
}

void Network::Cut(const std::string& from, const std::string& to, absl::Duration time) {
  const auto [cut, is_new] = cuts_.try_emplace({from, to}, absl::InfinitePast());
  cut->second = std::max(cut->second, scheduler_.now() + time);
}

void Network::Break(const std::string& a, const std::string& b) {
  for (const auto& [number, link] : links_) link->BreakBetween(a, b);
}

void Network::OnKilled(const Process& process) {
  std::erase_if(listeners_,
                [&](const auto& each) { return each.second.process.get() == &process; });
  for (auto end = ends_.lower_bound({process.number(), 0});
       end != ends_.end() && end->first == process.number(); ++end) {
    links_.at(end->second)->OnKilled(process);
  }
}

void Network::OnPaused(const Process& process) {
  if (!pinged.contains(process.host())) return;
  for (auto end = ends_.lower_bound({process.number(), 0});
       end != ends_.end() && end->first == process.number(); ++end) {
    links_.at(end->second)->OnPaused(process);
  }
}

bool Network::Refuses(const std::string& address) const {
  return Find(address) == nullptr;
}

const Network::Listener* Network::Find(const std::string& address) const {
  const auto found = listeners_.find(address);
  if (found == listeners_.end() || !found->second.process->alive()) return nullptr;
  return &found->second;
}

void Network::NoteEnd(uint64_t link, const Process& process) {
  ends_.emplace(process.number(), link);
}

void Network::Forget(uint64_t link, const Process& client, const Process* server) {
  ends_.erase({client.number(), link});
  if (server != nullptr) ends_.erase({server->number(), link});
  links_.erase(link);
}

bool Network::IsCut(const std::string& from, const std::string& to) const {
  if (cuts_.empty()) return false;
  const auto found = cuts_.find({from, to});
  return found != cuts_.end() && scheduler_.now() < found->second;
}

absl::Duration Network::DrawDelay() {
  Dice& dice = scheduler_.dice();
  absl::Duration delay = dice.Draw(weather.delay);
  if (weather.slow > 0 && dice.WithChance(weather.slow)) delay += dice.Draw(weather.slow_delay);
  return delay;
}

}  // namespace penstock::simulator
