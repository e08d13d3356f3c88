// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/link_writer.h"

#include "dataplane/transfer/tcp/wire.h"

namespace penstock::transfer::tcp {

void LinkWriter::Configure(LinkCompression compression, uint8_t sums) {
  codec_.SetCompression(compression);
  sums_ = sums;
}

MessageWriter::Wrote LinkWriter::Write(int fd) {
  return writer_.Write(
      fd, [this](QueuedMessage& message) { Finish(message); }, [this] { return compresses(); });
}

void LinkWriter::Finish(QueuedMessage& message) {
  if (std::exchange(message.encoded, true)) return;
  if (!message.text.empty()) {
    const bool counts_as_received =
        message.type == MessageType::kError || message.type == MessageType::kStriped;
    if (counts_as_received) codec_.OnOther(message.elsewhere);
    return;
  }
  LinkCodec::Encoded encoded =
      codec_.Encode(message.type, message.bytes, std::move(message.loan), message.count);
  message.bytes = encoded.bytes;
  message.loan = std::move(encoded.loan);
  message.head = HeadOf(encoded.type, sums_, encoded.bytes);
}

}  // namespace penstock::transfer::tcp
