// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

// Config is a configuration of a merge, as it is written.
type Config struct {
	File string
	Text []byte
}
