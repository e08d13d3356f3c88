// SPDX-License-Identifier: Apache-2.0
#include "control/stub/scheme.h"

#include <map>
#include <utility>

#include "control/sync/mutex.h"

namespace penstock::control {
namespace {

struct Makers {
  Mutex mu;
  std::map<std::string, MakeStub> by_scheme GUARDED_BY(mu);
};

Makers& OfProcess() {
  static Makers& makers = *new Makers;
  return makers;
}

}  // namespace

void RegisterScheme(const std::string& scheme, MakeStub make) {
  Makers& makers = OfProcess();
  MutexLock lock(makers.mu);
  if (make == nullptr) {
    makers.by_scheme.erase(scheme);
  } else {
    makers.by_scheme[scheme] = std::move(make);
  }
}

MakeStub FindScheme(const std::string& scheme) {
  Makers& makers = OfProcess();
  MutexLock lock(makers.mu);
  const auto found = makers.by_scheme.find(scheme);
  return found == makers.by_scheme.end() ? nullptr : found->second;
}

}  // namespace penstock::control
