// SPDX-License-Identifier: Apache-2.0
// The bench for people.
#pragma once

#include <string>
#include <vector>

#include "bench/row.h"

namespace penstock::bench {

// The workload of rows that have a reader of their own each, which need not be this host.
inline constexpr char kPairWorkload[] = "pair";

// Columns with their units in the head, a line of cells for each row. Columns
// of which no row has a figure are left out.
struct Report {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> lines;
};
inline constexpr size_t kWordColumns = 3;  // the first; figures and a note follow
Report ReportOn(const std::vector<Row>& rows);

// Of rows of pairs: GB/s of each pair's fastest row, a line for each reader and a column for each
// sender.
struct Matrix {
  Report table;         // no lines if there is no such row
  std::string slowest;  // "slowest: a to b, 0.31 GB/s, of a median of 1.2"
};
Matrix MatrixOf(const std::vector<Row>& rows);

// "T1 shm 1 MiB: 12.1 GB/s, 0.91 of fill1": a row as it is done.
std::string ReportLine(const Row& row);

// Who moves the elements of the row: our protocol, or another system and its.
std::string SubjectOf(const Row& row);

// "64 KiB" where it is a whole number of these, else "9,633,792 B".
std::string SizeText(int64_t bytes);

}  // namespace penstock::bench
