// SPDX-License-Identifier: Apache-2.0
// The identities of Penstock as types, so that a job cannot be mistaken for a partition. For the
// meaning of each word see docs/architecture.md, "Words".
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>

#pragma GCC visibility push(default)
namespace penstock {

// A number that names a thing of one kind. Zero names nothing.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(uint64_t value) : value_(value) {}

  constexpr uint64_t value() const { return value_; }
  constexpr explicit operator bool() const { return value_ != 0; }
  friend constexpr auto operator<=>(Id, Id) = default;

  template <class H>
  friend H AbslHashValue(H state, Id id) {
    return H::combine(std::move(state), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, Id id) {
    return out << Tag::kName << ' ' << id.value_;
  }

 private:
  uint64_t value_ = 0;
};

// Returns "job 7": the text of an id in messages and logs.
template <class Tag>
std::string ToString(Id<Tag> id) {
  return std::string(Tag::kName) + ' ' + std::to_string(id.value());
}

// clang-format off
struct JobTag { static constexpr const char* kName = "job"; };
struct IterationTag { static constexpr const char* kName = "iteration"; };
struct PartitionTag { static constexpr const char* kName = "partition"; };
struct PlacementTag { static constexpr const char* kName = "placement"; };
struct WorkerTag { static constexpr const char* kName = "worker"; };
struct ClientTag { static constexpr const char* kName = "client"; };
struct IncarnationTag { static constexpr const char* kName = "incarnation"; };
struct TermTag { static constexpr const char* kName = "term"; };

using JobId = Id<JobTag>;              // a dataset read under one name, or anonymously
using IterationId = Id<IterationTag>;  // one pass of a job
using PartitionId = Id<PartitionTag>;  // counts from 1 within its iteration
using Placement = Id<PlacementTag>;    // number of a partition's assignment; grows with every move
using WorkerId = Id<WorkerTag>;        // a worker's life: random, new in every process
using ClientId = Id<ClientTag>;        // a trainer's session on an iteration; its state outlives it
using Incarnation = Id<IncarnationTag>;  // a process's life, a random 64-bit number
using Term = Id<TermTag>;              // a dispatcher's life; grows with every start
// clang-format on

// An element's number in its partition, from 0.
using Index = int64_t;

}  // namespace penstock
#pragma GCC visibility pop
