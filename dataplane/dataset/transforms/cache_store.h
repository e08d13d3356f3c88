// SPDX-License-Identifier: Apache-2.0
// Where Cache keeps the elements of its input: filled from front to back by one
// pass, read by those behind it. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/build_site.h"
#include "dataplane/dataset/split.h"
#include "penstock/element.h"

namespace penstock {

// In memory: what all iterators over a dataset read once one of them has been through it.
// Never changes.
struct CachedElements {
  std::vector<Element> elements;
  uint64_t seed = 0;  // and the node's number: what they were drawn by
  int number = 0;
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

  // Whether everything is kept here. FailedPrecondition, naming the file, for a
  // cache that is damaged, of another dataset, or not the one demanded.
  virtual absl::StatusOr<bool> IsWhole() = 0;
  // Tells contents that may differ (those of other seeds) apart. Of what is
  // kept; before that, of what filling would keep.
  virtual uint64_t key() const = 0;
  // With which the input is to be built to be filled from.
  virtual uint64_t seed() const = 0;
  // From now on only contents of this key will do.
  virtual absl::Status Demand(uint64_t key) = 0;

  // Begins to fill, from nothing; what an earlier pass began is dropped. The
  // input is to ask the given splits; nullptr: the run's.
  virtual absl::StatusOr<SplitFeed*> Begin() = 0;
  virtual absl::Status Append(const Element& element) = 0;  // REQUIRES: begun
  virtual absl::Status Commit() = 0;                        // all were appended
  virtual void Discard() = 0;                               // gives up filling

  virtual std::unique_ptr<CacheReader> Read() = 0;  // from the first; REQUIRES: IsWhole()
};

// In memory: as long as the store, and what is whole as long as the node where that is for all
// runs of the dataset.
std::unique_ptr<CacheStore> CacheInMemory(const BuildSite& site);

// In the file named by the site's attribute "path" (for a partition: that and
// its number), beyond the store.
std::unique_ptr<CacheStore> CacheOnDisk(const BuildSite& site);

}  // namespace penstock
