// SPDX-License-Identifier: Apache-2.0
// The bench's output for people.
#pragma once

#include <string>
#include <vector>

#include "bench/row.h"

namespace penstock::bench {

// The workload of rows between any two hosts: the reader need not be this host.
inline constexpr char kPairWorkload[] = "pair";

// A table with units in the head and a line of cells for each row. Columns without a figure in any
// row are left out.
struct Report {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> lines;
};
inline constexpr size_t kWordColumns = 3;  // first columns; figures and a note follow
Report ReportOn(const std::vector<Row>& rows);

// For rows of pairs: the GB/s of each pair's fastest row. Readers are lines, senders are columns.
struct Matrix {
  Report table;         // no lines without such rows
  std::string slowest;  // "slowest: a to b, 0.31 GB/s, of a median of 1.2"
};
Matrix MatrixOf(const std::vector<Row>& rows);

// Returns "T1 shm 1 MiB: 12.1 GB/s, 0.91 of fill1", for a row that is done.
std::string ReportLine(const Row& row);

// Returns what moves the row's elements: our protocol, or another system and its protocol.
std::string SubjectOf(const Row& row);

// Returns "64 KiB" for a whole number of units, else "9,633,792 B".
std::string SizeText(int64_t bytes);

}  // namespace penstock::bench
