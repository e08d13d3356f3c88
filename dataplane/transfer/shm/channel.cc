// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/channel.h"

#include <utility>

#include "control/sync/mutex.h"

namespace penstock::transfer::shm {
namespace {

ControlMemory& In(const SharedSegment& control) {
  return *reinterpret_cast<ControlMemory*>(control.memory().data());
}

}  // namespace

Channel::Channel(SharedSegment control, Side side)
    : control_(std::move(control)),
      own_(side == Side::kClient ? In(control_).client : In(control_).worker),
      other_(side == Side::kClient ? In(control_).worker : In(control_).client),
      reader_(side == Side::kClient ? In(control_).to_client : In(control_).to_worker),
      writer_(side == Side::kClient ? In(control_).to_worker : In(control_).to_client) {}

void Channel::Send(uint64_t word) {
  {
    MutexLock lock(mu_);
    if (!waiting_.empty() || !writer_.Write(word)) {
      waiting_.Push(word);
      WriteWaiting();
      has_waiting_ = !waiting_.empty();
    }
  }
  RingIfAsleep();
}

void Channel::Flush() {
  if (!has_waiting_) return;
  {
    MutexLock lock(mu_);
    WriteWaiting();
    has_waiting_ = !waiting_.empty();
  }
  RingIfAsleep();
}

void Channel::WriteWaiting() {
  while (!waiting_.empty()) {
    if (!writer_.Write(waiting_.front())) {
      own_.blocked.store(1, std::memory_order_seq_cst);
      if (!writer_.Write(waiting_.front())) return;  // the reader will ring
    }
    waiting_.Pop();
  }
}

bool Channel::flushed() const {
  return !has_waiting_;
}

void Channel::SetDoorbell(const PacketSocket& socket) {
  {
    MutexLock lock(doorbell_mu_);
    doorbell_ = &socket;
  }
  RingDoorbell();
}

void Channel::ClearDoorbell() {
  MutexLock lock(doorbell_mu_);
  doorbell_ = nullptr;
}

RingReader::Found Channel::Read(uint64_t& word) {
  const RingReader::Found found = reader_.Read(word);
  if (found == RingReader::Found::kWord && other_.blocked.load(std::memory_order_seq_cst) != 0) {
    other_.blocked.store(0, std::memory_order_seq_cst);
    RingDoorbell();
  }
  return found;
}

void Channel::RingIfAsleep() {
  // Rings only once per sleep, because the other side may take time to wake.
  if (other_.sleeps.load(std::memory_order_seq_cst) != 0 &&
      other_.sleeps.exchange(0, std::memory_order_seq_cst) != 0) {
    RingDoorbell();
  }
}

void Channel::RingDoorbell() {
  MutexLock lock(doorbell_mu_);
  // If the socket is full, the packets in it wake the other side anyway.
  if (doorbell_ != nullptr) doorbell_->Send(PacketKind::kRing).IgnoreError();
}

}  // namespace penstock::transfer::shm
