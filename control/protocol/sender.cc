// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/sender.h"

#include <algorithm>

#include "penstock/check.h"

namespace penstock::protocol {

Sender::Sender(const Assign& assign, Broken broken)
    : partition_(assign.partition),
      placement_(assign.placement),
      broken_(broken),
      next_(assign.bookmark ? assign.bookmark->index : 0),
      skip_(assign.skip) {
  for (const Reader& reader : assign.readers) readers_.push_back({.reader = reader});
}

Sender::Served* Sender::Find(ClientId client) {
  for (Served& served : readers_)
    if (served.reader.client == client) return &served;
  return nullptr;
}

const Sender::Served* Sender::Find(ClientId client) const {
  return const_cast<Sender*>(this)->Find(client);
}

bool Sender::Wants(Index index) const {
  return index >= next_ && !skip_.Contains(index);
}

bool Sender::MaySendTo(ClientId client) const {
  const Served* served = Find(client);
  return served && served->linked;
}

void Sender::OnSent(ClientId client, Index index) {
  PENSTOCK_CHECK(MaySendTo(client));
  if (again_.Contains(index)) {
    again_.Remove(IndexSet::Of(index, index + 1));
  } else {
    PENSTOCK_CHECK(Wants(index));
    next_ = index + 1;
  }
  Find(client)->unconfirmed.Add(index);
}

void Sender::OnRefused(ClientId client, Index index) {
  const IndexSet refused = IndexSet::Of(index, index + 1);
  if (Served* served = Find(client)) served->unconfirmed.Remove(refused);
  again_.Add(refused);
}

void Sender::OnPassed(Index index) {
  PENSTOCK_CHECK(!Wants(index));
  next_ = std::max(next_, index + 1);
}

void Sender::OnEnd(Index end) {
  end_ = end;
  next_ = std::max(next_, end);
}

bool Sender::OnLinkUp(ClientId client, Incarnation incarnation, const IndexSet& received) {
  Served* served = Find(client);
  if (broken_ == Broken::kSendToTheDead && !served) {
    readers_.push_back({.reader = {client, incarnation}});
    served = &readers_.back();
  }
  if (!served) return false;
  if (served->reader.incarnation != incarnation) {
    if (broken_ != Broken::kSendToTheDead) return false;
    served->reader.incarnation = incarnation;
  }
  OnLinkBroken(client);  // the break was perhaps not noticed yet
  served->unconfirmed.Remove(received);
  again_.Add(served->unconfirmed);
  served->unconfirmed.clear();
  served->linked = true;
  return true;
}

void Sender::OnLinkBroken(ClientId client) {
  Served* served = Find(client);
  if (!served) return;
  served->linked = false;
  if (broken_ == Broken::kResendWithoutAsking) {
    again_.Add(served->unconfirmed);
    served->unconfirmed.clear();
  }
}

void Sender::OnReceived(ClientId client, const IndexSet& indices) {
  if (Served* served = Find(client)) served->unconfirmed.Remove(indices);
}

bool Sender::OnAddReader(const Reader& reader) {
  if (Find(reader.client)) return false;
  readers_.push_back({.reader = reader});
  return true;
}

bool Sender::ended() const {
  if (!end_ || next_ < *end_ || !again_.empty()) return false;
  return std::all_of(readers_.begin(), readers_.end(), [](const Served& served) {
    return served.linked || served.unconfirmed.empty();
  });
}

IndexSet Sender::unconfirmed() const {
  IndexSet all;
  for (const Served& served : readers_) all.Add(served.unconfirmed);
  return all;
}

}  // namespace penstock::protocol
