// SPDX-License-Identifier: Apache-2.0
// The storage for the elements that Cache keeps. One pass fills it from start to end; later passes
// read it. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/split.h"
#include "dataplane/dataset/transforms/buffer_charge.h"
#include "penstock/element.h"

namespace penstock {

// The contents of a cache in memory. All iterators over a dataset read them after one iterator has
// read the whole input. Immutable.
struct CachedElements {
  std::vector<Element> elements;
  uint64_t seed = 0;  // used for random draws, with the node's number
  int number = 0;
  std::vector<BufferCharge> charges;  // one per element
};

class CacheReader {
 public:
  virtual ~CacheReader() = default;
  virtual absl::StatusOr<std::optional<Element>> Next() = 0;
  virtual absl::StatusOr<int64_t> Skip(int64_t count) = 0;
};

class CacheStore {
 public:
  virtual ~CacheStore() = default;

  // Returns whether the contents are complete. FailedPrecondition names the file if the cache is
  // damaged, belongs to another dataset, or is not the one demanded.
  virtual absl::StatusOr<bool> IsWhole() = 0;
  // Distinguishes contents that may differ because their seeds differ. Returns the key of the
  // stored contents or, before anything is stored, of the contents that filling would store.
  virtual uint64_t key() const = 0;
  // The seed with which the input is built to fill the store.
  virtual uint64_t seed() const = 0;
  // From now on, accepts only contents with this key.
  virtual absl::Status Demand(uint64_t key) = 0;

  // Starts to fill the store from nothing, and drops contents that an earlier pass began to store.
  // The input must use the returned split feed; nullptr means the feed of the run.
  virtual absl::StatusOr<SplitFeed*> Begin() = 0;
  // ResourceExhausted if the store has no room. REQUIRES: Begin().
  virtual absl::Status Append(const Element& element) = 0;
  virtual absl::Status Commit() = 0;  // REQUIRES: all elements were appended
  virtual void Discard() = 0;         // stops filling

  virtual std::unique_ptr<CacheReader> Read() = 0;  // from the first element; REQUIRES: IsWhole()
};

// Keeps elements in memory as long as the store lives. Complete contents live as long as the node
// if all runs of the dataset share them.
std::unique_ptr<CacheStore> CacheInMemory(const BuildSite& site);

// Keeps elements in the file that the site's attribute "path" names. A partition's number is
// appended to the name. The file outlives the store.
std::unique_ptr<CacheStore> CacheOnDisk(const BuildSite& site);

}  // namespace penstock
