// SPDX-License-Identifier: Apache-2.0
// How a transform charges an element that it keeps to its partition's account
// (dataplane/memory/buffer_budget.h).
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/memory/buffer_budget.h"
#include "penstock/element.h"

namespace penstock {

// A charge to the account of a partition, for one item that a node keeps: an element, or an error
// in its place. The destructor gives the bytes back. One thread at a time.
class BufferCharge {
 public:
  BufferCharge() = default;
  BufferCharge(BufferCharge&& other) noexcept
      : account_(std::exchange(other.account_, nullptr)),
        bytes_(other.bytes_),
        slot_(other.slot_) {}
  BufferCharge& operator=(BufferCharge&& other) noexcept {
    Return();
    account_ = std::exchange(other.account_, nullptr);
    bytes_ = other.bytes_;
    slot_ = other.slot_;
    return *this;
  }
  ~BufferCharge() { Return(); }

  // Charges the slot of an element that the node at `site` keeps, and kOverhead. A slot with
  // several holders counts once, if all of them charge it. If the budget does not have the bytes,
  // returns a ResourceExhausted error with IsExhausted(), which names the node. REQUIRES: nothing
  // is charged yet. The element must outlive the charge.
  absl::Status Add(const BuildSite& site, const Element& element);
  // The same for `bytes` bytes and kOverhead.
  absl::Status Add(const BuildSite& site, int64_t bytes);
  // The same for an error in place of an element.
  absl::Status Add(const BuildSite& site, const absl::Status& error);
  // For nodes that can do without. False if the budget should keep the bytes for others. `shared`:
  // other holders of the element will come.
  bool TryAdd(const BuildSite& site, const Element& element, bool shared = false);
  bool TryAdd(const BuildSite& site, const absl::Status& error);

  // The bytes that are added for each kept item: its place in the node, which may be part of a map,
  // and in the vectors of numbers beside it.
  static constexpr int64_t kOverhead = 256;

 private:
  bool Charge(BufferAccount* account, int64_t bytes);
  bool Charge(BufferAccount* account, const Element& element, bool shared);
  void Return();

  BufferAccount* account_ = nullptr;  // nullptr: nothing is charged
  int64_t bytes_ = 0;                 // without those of slot_
  const void* slot_ = nullptr;        // nullptr: not shared
};

}  // namespace penstock
