// SPDX-License-Identifier: Apache-2.0
// A queue of places that are made once and reused: places are taken at one end and released at the
// other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace penstock {

// A place keeps its address as long as the ring lives.
template <class Place>
class Ring {
 public:
  size_t taken() const { return taken_; }
  size_t places() const { return places_.size(); }

  // The place that was taken first. REQUIRES: taken() > 0.
  Place& front() { return *places_[first_]; }
  // The place that Take() takes. REQUIRES: taken() < places().
  Place& next() { return *places_[(first_ + taken_) % places_.size()]; }
  void Take() { ++taken_; }
  void Pop() {
    first_ = (first_ + 1) % places_.size();
    --taken_;
  }

  // Adds a place, which is used after all others. If there was a free place, next() stays the same.
  void Add(std::unique_ptr<Place> place) {
    std::rotate(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(first_),
                places_.end());
    first_ = 0;
    places_.push_back(std::move(place));
  }

 private:
  std::vector<std::unique_ptr<Place>> places_;
  size_t first_ = 0;
  size_t taken_ = 0;
};

}  // namespace penstock
