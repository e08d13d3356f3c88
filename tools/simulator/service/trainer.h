// SPDX-License-Identifier: Apache-2.0
// A trainer of a simulated cluster: a program that reads a dataset by the public API, and records
// what Next() returns. With ack=on_commit it saves states, and a new life continues from the last
// one that it has stored. If that one was not committed and the dispatcher refuses it, the life
// after it continues from the one before.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/dataset.h"
#include "penstock/iterator.h"
#include "tools/simulator/check/history.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/service/role.h"

namespace penstock::simulator {

class Trainer final : public Role {
 public:
  Trainer(World& world, std::string name)
      : Role(world, std::move(name)), dice_(world.scheduler.dice().Split()) {}

 private:
  // A state that is on the trainer's disk, which never loses it.
  struct Stored {
    State state;
    size_t elements = 0;  // of the history, that the state contains
    bool committed = false;
  };

  absl::Status Main(Life& life) override;
  void OnKilled() override;
  bool commits() const { return world().scenario.ack == AckMode::kOnCommit; }
  Dataset MakeDataset() const;
  void BeginHistory(const Life& life);
  void NoteStates();  // in the history: which states may be committed
  // Reads until the end, until an error that ends reading, or until the process shall end.
  absl::Status Read(Life& life, Iterator& iterator);
  void Record(const Element& element);
  // Stores and commits the present state.
  absl::Status SaveAndCommit(Life& life, Iterator& iterator);
  // Forgets the last stored state if that is why reading failed.
  void ForgetRefused(const absl::Status& failure);
  // Next() has returned the end.
  absl::Status FinishReading(Life& life, Iterator& iterator);
  void NoteGone();

  Dice dice_;
  std::vector<Stored> stored_;  // the committed one, if there is one, and later ones
  History* history_ = nullptr;  // of the present life; nullptr: none has begun
};

// Returns the value of element number `index` of the dataset.
int64_t ElementValue(const Scenario& scenario, int64_t index);

}  // namespace penstock::simulator
