// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/request_writer.h"

#include <sys/socket.h>

#include <cerrno>

#include "dataplane/transfer/tcp/wire.h"

namespace penstock::transfer::tcp {

void RequestWriter::Grant(int64_t count) {
  (waiting_.recall ? waiting_.granted_after_recall : waiting_.granted) += count;
}

void RequestWriter::Recall() {
  // A message carries at most one recall. If that recall stands for two, credits granted between
  // the two recalls are returned too.
  waiting_.granted += std::exchange(waiting_.granted_after_recall, 0);
  waiting_.recall = true;
}

void RequestWriter::Write(int fd) {
  while (writable_) {
    if (out_at_ == out_.size()) {
      out_.clear();
      out_at_ = 0;
      AddWaiting();
      if (out_.empty()) return;
    }
    const ssize_t put =
        ::send(fd, out_.data() + out_at_, out_.size() - out_at_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put >= 0) {
      out_at_ += static_cast<size_t>(put);
    } else if (errno != EINTR) {
      writable_ = false;  // or broken, which the reading side will notice
    }
  }
}

void RequestWriter::WriteAndShutDown(int fd) {
  Write(fd);
  if (out_at_ == out_.size() && !std::exchange(shut_down_, true)) ::shutdown(fd, SHUT_WR);
}

void RequestWriter::AddWaiting() {
  if (waiting_.received > 0 || waiting_.granted > 0 || waiting_.recall) {
    const size_t at = BeginMessage(out_);
    Append(std::exchange(waiting_, Update()), out_);
    FinishMessage(out_, at);
  }
  if (closed_ && !std::exchange(goodbye_sent_, true)) out_ += WithPrefix(Encode(Goodbye()));
}

}  // namespace penstock::transfer::tcp
