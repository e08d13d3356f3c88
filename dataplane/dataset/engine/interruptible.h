// SPDX-License-Identifier: Apache-2.0
// Reading from a thread that must not block for long, such as one that handles signals.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dataplane/memory/pool.h"
#include "penstock/dataset.h"
#include "penstock/iterator.h"

#pragma GCC visibility push(default)
namespace penstock {

class InterruptibleIterator : public IteratorImpl {
 public:
  // Does what Next() does, but returns nullopt if the element is not ready by `until`. Nothing is
  // lost: the next call waits for the same element. An element that is already available, or that
  // can be made quickly on this thread (see kManyQuick in iterator.cc), is returned without the use
  // of another thread. Such a call may take as long as making that element takes.
  virtual std::optional<absl::StatusOr<std::optional<Element>>> NextBy(absl::Time until) = 0;
};

// Makes the iterator that Dataset::MakeIterator() returns. `epoch`: the dataset's epoch that the
// iterator reads; nullopt: the next one (epochs.h). MakeIterator() passes 0 if a seed is given.
// `output`: as for MakeIteratorInto() (iterator_output.h).
absl::StatusOr<std::unique_ptr<InterruptibleIterator>> MakeInterruptible(
    const Dataset& dataset, IteratorOptions options, std::optional<int64_t> epoch = std::nullopt,
    Pool* output = nullptr);

// A NodeIterator that can report that the next call of Next() will not wait. One thread at a time,
// as for Next().
class ReadyHint {
 public:
  virtual ~ReadyHint() = default;
  // True if Next() has its result: the element, an error, or an end for which
  // CommitListeners::AwaitEnd() does not wait.
  virtual bool Ready() = 0;
};

}  // namespace penstock
#pragma GCC visibility pop
