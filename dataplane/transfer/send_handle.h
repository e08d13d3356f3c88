// SPDX-License-Identifier: Apache-2.0
// The worker's handle to its end of a link.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "dataplane/transfer/transport.h"

#pragma GCC visibility push(default)
namespace penstock::transfer {

// Closes the link when it is destroyed. `End` has the methods of SendLink.
template <class End>
class SendHandle : public SendLink {
 public:
  explicit SendHandle(std::shared_ptr<End> end) : end_(std::move(end)) {}
  ~SendHandle() override { end_->Close(absl::CancelledError("the worker let go of the link")); }
  const Hello& hello() const override { return end_->hello(); }
  int64_t credits() const override { return end_->credits(); }
  absl::Status Send(Sent&& sent) override { return end_->Send(std::move(sent)); }
  void Flush() override { end_->Flush(); }
  void Close(const absl::Status& reason) override { end_->Close(reason); }

 protected:
  const std::shared_ptr<End> end_;
};

}  // namespace penstock::transfer
#pragma GCC visibility pop
