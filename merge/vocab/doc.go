// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package vocab makes one vocabulary of those of several models, and says which
// row of which model's embedding becomes which row of the merged one. A line belongs
// here if it is about tokens and the rows that they have; it sees no tensor but
// through a function that reads rows.
//
// The types to know: [Vocabulary], built by [Build]; [Matrix], the embedding of a
// model over that vocabulary.
package vocab
