// SPDX-License-Identifier: Apache-2.0
#include "control/observe/connection_pace.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "control/sync/clock.h"

namespace penstock {
namespace {

// How often waiting connections are looked at, unless a client proves itself.
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(50);
constexpr absl::Duration kBetweenEvents = absl::Seconds(1);
constexpr absl::Duration kBetweenForgetting = absl::Seconds(1);
// The source that stands for all sources above the limit. No address has this length.
constexpr char kOthers[] = "others";
constexpr rlim_t kKeptFree = 64;     // descriptors
constexpr size_t kNetworkBytes = 8;  // of an IPv6 address
constexpr absl::Duration kLongestPause = absl::Milliseconds(500);
constexpr int kPartOfLooks = 10;  // the time between two looks, by the time that one takes
// How many waiting connections are looked at when a place becomes free between two looks at all.
constexpr int kLooksForPlace = 16;
// The places that a source loses if one of its clients has not proved itself in time, while that
// many are free. A returning fleet keeps its places as long as more than this many of its clients
// prove themselves for each that does not.
constexpr size_t kPlacesLost = 8;
// Begins the host of a Unix socket. It is longer than any address.
constexpr char kProcess[] = "the process with id ";

std::string BytesOf(const in_addr& address) {
  return {reinterpret_cast<const char*>(&address), sizeof address};
}

std::string BytesOf(const in6_addr& address) {
  const char* bytes = reinterpret_cast<const char*>(&address);
  if (IN6_IS_ADDR_V4MAPPED(&address)) return {bytes + 12, sizeof(in_addr)};
  return {bytes, sizeof address};
}

// Returns the source as people write it.
std::string TextOf(const std::string& source) {
  char text[INET6_ADDRSTRLEN] = "";
  if (source.size() == sizeof(in_addr)) {
    return inet_ntop(AF_INET, source.data(), text, sizeof text);
  }
  if (source.empty()) return "unknown";  // the client has gone
  if (source.size() != kNetworkBytes) return source;
  in6_addr network{};
  source.copy(reinterpret_cast<char*>(&network), kNetworkBytes);
  return absl::StrCat(inet_ntop(AF_INET6, &network, text, sizeof text), "/64");
}

// Returns how many descriptors the process may have.
rlim_t MostDescriptors() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

bool IsKeptFreeOf(rlim_t most, int fd) {
  if (most == RLIM_INFINITY) return false;
  // The system gives out the lowest free number.
  return static_cast<rlim_t>(fd) + std::min(kKeptFree, most / 4) >= most;
}

}  // namespace

ClientAddress ClientOf(int fd) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return {};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return {BytesOf(v4.sin_addr), ntohs(v4.sin_port)};
  }
  if (address.ss_family == AF_UNIX) {
    ucred process{};
    bytes = sizeof process;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &bytes) != 0) return {};
    return {absl::StrCat(kProcess, process.pid), 0};
  }
  if (address.ss_family != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return {BytesOf(v6.sin6_addr), ntohs(v6.sin6_port)};
}

ClientAddress ClientFromGrpc(const std::string& text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port)) return {};
  const auto number = static_cast<uint16_t>(port);
  const std::string address = text.substr(0, colon);
  absl::string_view host = address;
  in_addr v4{};
  if (absl::ConsumePrefix(&host, "ipv4:")) {
    if (inet_pton(AF_INET, std::string(host).c_str(), &v4) != 1) return {};
    return {BytesOf(v4), number};
  }
  if (!absl::ConsumePrefix(&host, "ipv6:")) return {};
  std::string v6_text = absl::StrReplaceAll(host, {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  v6_text = v6_text.substr(0, v6_text.find('%'));  // without the interface of a link-local address
  in6_addr v6{};
  if (inet_pton(AF_INET6, v6_text.c_str(), &v6) != 1) return {};
  return {BytesOf(v6), number};
}

bool IsKeptFree(int fd) {
  return IsKeptFreeOf(MostDescriptors(), fd);
}

ConnectionPace::ConnectionPace(Port counted_as, PaceLimits limits, std::shared_ptr<EventLog> events)
    : counted_as_(counted_as), limits_(limits), events_(std::move(events)) {}

ConnectionPace::~ConnectionPace() {
  for (const auto& [name, source] : sources_) {
    for (const Waiting& one : source.waiting) close(one.fd);
  }
  for (const Arrived& one : admitted_) close(one.fd);
}

void ConnectionPace::Add(int fd, absl::Time now) {
  ClientAddress client = ClientOf(fd);
  Waiting refused;
  {
    MutexLock lock(mu_);
    const std::string client_source = client.source();
    Source& source = SourceOf(client_source, now);
    if (source.waiting.empty() && TakePlace(source, client.port, now)) {
      admitted_.push_back({fd, std::move(client)});
      return;
    }
    if (waiting_ == 0) look_at_ = now + kBetweenLooks;
    const bool is_full = IsFull(fd);
    source.waiting.push_back({fd, std::move(client), now});
    ++waiting_;
    if (const auto noted = sources_.find(with_most_);
        noted == sources_.end() || noted->second.waiting.size() < source.waiting.size())
      with_most_ = client_source;
    if (!is_full) return;
    refused = TakeNewestOfMost(source);
  }
  Refuse(refused, now);
}

bool ConnectionPace::IsFull(int fd) const {
  const rlim_t most = MostDescriptors();
  return waiting_ >= limits_.waiting || waiting_ >= most / 2 || IsKeptFreeOf(most, fd);
}

void ConnectionPace::NoteSourceWithMost() {
  const auto most = std::ranges::max_element(
      sources_, {}, [](const auto& named) { return named.second.waiting.size(); });
  if (most != sources_.end()) with_most_ = most->first;
}

// Returns the newest connection of the source that has most of those that wait. In constant time:
// no connection of a flood costs a look at all sources.
ConnectionPace::Waiting ConnectionPace::TakeNewestOfMost(Source& newcomers) {
  const auto noted = sources_.find(with_most_);
  const bool has_more =
      noted != sources_.end() && noted->second.waiting.size() > newcomers.waiting.size();
  std::deque<Waiting>& from = has_more ? noted->second.waiting : newcomers.waiting;
  Waiting newest = std::move(from.back());
  from.pop_back();
  --waiting_;
  return newest;
}

void ConnectionPace::Refuse(const Waiting& one, absl::Time now) {
  CountRefused(counted_as_, Refused::kTooMany);
  close(one.fd);
  {
    MutexLock lock(mu_);
    if (now < reported_ + kBetweenEvents) return;
    reported_ = now;
  }
  events_->Write({"connections_refused",
                  {{"address", TextOf(one.client.source())},
                   {"why", "the connection must wait, and no more connections may wait"}}});
}

std::vector<ConnectionPace::Arrived> ConnectionPace::Take(absl::Time now) {
  MutexLock lock(mu_);
  if (waiting_ > 0 && now >= look_at_) {
    const absl::Time began = BootTime();
    for (auto& [name, source] : sources_) {
      if (!source.waiting.empty()) Look(source, now);
    }
    NoteSourceWithMost();
    look_at_ = now + std::clamp(kPartOfLooks * (BootTime() - began), kBetweenLooks, kLongestPause);
  } else {
    for (const std::string& name : with_free_place_) {
      if (const auto found = sources_.find(name); found != sources_.end())
        AdmitNewest(found->second, now);
    }
  }
  with_free_place_.clear();
  return std::exchange(admitted_, {});
}

absl::Time ConnectionPace::NextTake() const {
  MutexLock lock(mu_);
  if (waiting_ == 0) return absl::InfiniteFuture();
  return with_free_place_.empty() ? look_at_ : absl::InfinitePast();
}

bool ConnectionPace::Proved(const ClientAddress& client) {
  MutexLock lock(mu_);
  auto found = sources_.find(client.source());
  if (found == sources_.end()) found = sources_.find(kOthers);
  if (found == sources_.end()) return false;
  Source& source = found->second;
  if (client.port == 0) {
    const auto its = std::ranges::find(source.unproven, client.port);
    if (its == source.unproven.end()) return false;
    source.unproven.erase(its);
  } else if (std::erase(source.unproven, client.port) == 0) {
    return false;
  }
  source.places = std::min(source.places + 1, std::max(limits_.places, limits_.most_places));
  if (source.waiting.empty()) return false;
  with_free_place_.insert(found->first);
  return true;
}

void ConnectionPace::Sent(const ClientAddress& client, uint64_t bytes, absl::Time now) {
  MutexLock lock(mu_);
  Source& source = SourceOf(client.source(), now);
  FreePlaces(source, now);
  source.bytes += bytes;
  const uint64_t places = source.bytes / limits_.bytes_per_place;
  source.bytes %= limits_.bytes_per_place;
  const size_t all = std::max(source.places, source.unproven.size());
  const size_t taken = std::min<uint64_t>(places, all - source.unproven.size());
  if (taken > 0 && source.unproven.empty()) source.next_free = now + limits_.per_place;
  source.unproven.insert(source.unproven.end(), taken, client.port);
  source.next_free = std::min(source.next_free + (places - taken) * limits_.per_place,
                              std::max(source.next_free, now + limits_.most_delay));
}

ConnectionPace::Source& ConnectionPace::SourceOf(const std::string& name, absl::Time now) {
  if (sources_.size() >= limits_.sources && !sources_.contains(name)) {
    ForgetIdle(now);
    if (sources_.size() >= limits_.sources) return Named(kOthers);
  }
  return Named(name);
}

ConnectionPace::Source& ConnectionPace::Named(const std::string& name) {
  const auto [named, is_new] = sources_.try_emplace(name);
  if (is_new) named->second.places = limits_.places;
  return named->second;
}

// Forgets the sources whose places are all free.
void ConnectionPace::ForgetIdle(absl::Time now) {
  if (now < forgot_ + kBetweenForgetting) return;
  forgot_ = now;
  for (auto named = sources_.begin(); named != sources_.end();) {
    Source& source = named->second;
    FreePlaces(source, now);
    const bool idle = source.unproven.empty() && source.waiting.empty();
    named = idle ? sources_.erase(named) : std::next(named);
  }
}

void ConnectionPace::FreePlaces(Source& source, absl::Time now) const {
  while (!source.unproven.empty() && now >= source.next_free) {
    source.unproven.pop_front();
    const size_t fewer = source.places - std::min(source.places, kPlacesLost);
    source.places = std::max({limits_.places, fewer, source.unproven.size() + 1});
    source.next_free += limits_.per_place;
  }
}

// Returns false if there is no place.
bool ConnectionPace::TakePlace(Source& source, uint16_t port, absl::Time now) const {
  FreePlaces(source, now);
  if (source.unproven.size() >= source.places) return false;
  if (source.unproven.empty()) source.next_free = now + limits_.per_place;
  source.unproven.push_back(port);
  return true;
}

// Admits connections whose clients have said something, while there are free places. The newest is
// first, since honest clients of an attacker's address give up soon, and come again.
void ConnectionPace::AdmitNewest(Source& source, absl::Time now) {
  std::deque<Waiting>& waiting = source.waiting;
  for (size_t i = waiting.size(), looks = 0; i-- > 0 && looks < kLooksForPlace; ++looks) {
    pollfd look = {waiting[i].fd, POLLIN | POLLRDHUP, 0};
    poll(&look, 1, 0);
    if (Leaves(waiting[i], look.revents, now)) {
      close(waiting[i].fd);
    } else if (look.revents == 0) {
      continue;
    } else if (TakePlace(source, waiting[i].client.port, now)) {
      admitted_.push_back({waiting[i].fd, std::move(waiting[i].client)});
    } else {
      return;
    }
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
    --waiting_;
  }
}

// As above, with all that wait, and drops the connections that have ended.
void ConnectionPace::Look(Source& source, absl::Time now) {
  std::vector<pollfd> looks;
  for (const Waiting& one : source.waiting) looks.push_back({one.fd, POLLIN | POLLRDHUP, 0});
  poll(looks.data(), looks.size(), 0);
  std::deque<Waiting> stay;
  for (size_t i = looks.size(); i-- > 0;) {
    Waiting& one = source.waiting[i];
    if (Leaves(one, looks[i].revents, now)) {
      close(one.fd);
    } else if (looks[i].revents != 0 && TakePlace(source, one.client.port, now)) {
      admitted_.push_back({one.fd, std::move(one.client)});
    } else {
      stay.push_front(std::move(one));
    }
  }
  waiting_ -= source.waiting.size() - stay.size();
  source.waiting = std::move(stay);
}

bool ConnectionPace::Leaves(const Waiting& one, short events, absl::Time now) const {
  if ((events & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return true;
  if (now < one.since + limits_.patience) return false;
  CountRefused(counted_as_, Refused::kTooLate);
  return true;
}

}  // namespace penstock
