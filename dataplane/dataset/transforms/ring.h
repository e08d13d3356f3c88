// SPDX-License-Identifier: Apache-2.0
// Places that are taken at one end and given up at the other, made once and used
// again and again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace penstock {

// A place stays where it is in memory for as long as the ring lives.
template <class Place>
class Ring {
 public:
  size_t taken() const { return taken_; }
  size_t places() const { return places_.size(); }

  // The place taken longest ago. REQUIRES: taken() > 0.
  Place& front() { return *places_[first_]; }
  // The place to be taken next. REQUIRES: taken() < places().
  Place& next() { return *places_[(first_ + taken_) % places_.size()]; }
  void Take() { ++taken_; }
  void Pop() {
    first_ = (first_ + 1) % places_.size();
    --taken_;
  }

  // One place more, used behind all others. next() stays the same if there was one.
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
