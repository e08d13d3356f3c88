// SPDX-License-Identifier: Apache-2.0
// A trainer of a simulated cluster: a program that reads a dataset by the public API, and records
// what Next() returns. With ack=on_commit it saves states, and a new life continues from the last
// one that it has stored. If that one was not committed and the dispatcher refuses it, the life
// after it continues from the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/dataset.h"
#include "penstock/distribute.h"
#include "penstock/iterator.h"
#include "tools/simulator/check/history.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/service/consumers.h"
#include "tools/simulator/service/role.h"

namespace penstock::simulator {

// Which job a trainer reads, and how.
struct Seat {
  size_t job = 0;                  // number in World::jobs
  int64_t consumer = 0;            // its number, if the job has consumers
  Span step;                       // between two elements
  Consumers* consumers = nullptr;  // of a coordinated read; otherwise nullptr
};

class Trainer final : public Role {
 public:
  Trainer(World& world, std::string name, const Seat& seat)
      : Role(world, std::move(name)), seat_(seat), dice_(world.scheduler.dice().Split()) {}

  size_t job() const { return seat_.job; }
  // Returns whether the history of its present life, or of the last one, has reached the end.
  bool finished() const { return history_ != nullptr && history_->ended.has_value(); }
  // Its job is begun again, so its history no longer counts.
  void GiveUpHistory();
  // Return whether it has a state of a step, and all such steps. A step is a number of elements.
  bool HasStored(size_t step) const;
  std::vector<size_t> StoredSteps() const;

 private:
  // A state that is on the trainer's disk, which never loses it.
  struct Stored {
    State state;
    size_t elements = 0;  // of the history, that the state contains
    bool committed = false;
  };

  absl::Status Main(Life& life) override;
  void OnKilled() override;
  const JobPlan& plan() const { return world().jobs[seat_.job]; }
  bool commits() const { return plan().ack == AckMode::kOnCommit; }
  bool in_rounds() const { return seat_.consumers != nullptr; }
  DeliveryMode Delivery() const;
  Dataset MakeDataset() const;
  void BeginHistory(const Life& life);
  void NoteStates();  // in the history: which states may be committed
  // Reads until the end, until an error that ends reading, or until the process shall end.
  absl::Status Read(Life& life, Iterator& iterator);
  bool HasEnough() const;  // of an endless dataset
  void Record(const Element& element);
  // Stores and commits the present state.
  absl::Status Save(Life& life, Iterator& iterator);
  // Does the same with the other consumers, and waits for them. After an error this process must
  // end.
  absl::Status SaveTogether(Life& life, Iterator& iterator);
  absl::Status Store(Life& life, Iterator& iterator);
  absl::Status Commit(Life& life, Iterator& iterator);  // the state that was stored last
  // Forgets the state that this life restored, and later ones, if that is why reading failed.
  void ForgetRefused(const absl::Status& failure);
  // Next() has returned the end.
  absl::Status FinishReading(Life& life, Iterator& iterator);
  void NoteGone();

  const Seat seat_;
  Dice dice_;
  std::vector<Stored> stored_;  // the committed one, if there is one, and later ones
  size_t before_restored_ = 0;  // states before the one that this life restored
  History* history_ = nullptr;  // of the present life; nullptr: none has begun
};

// Returns the number of partitions of a job with read=order. It is a multiple of the consumers, so
// that what a consumer has committed is kept as indices (control/protocol/positions.h).
int64_t OrderPartitions(const JobPlan& plan);

}  // namespace penstock::simulator
