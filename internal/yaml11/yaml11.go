// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package yaml11 reads YAML as PyYAML's safe loader does: the scalars of YAML 1.1,
// where yes is true, 017 is 15 and 1e-5 is a string. Configurations of mergekit and
// tasks of lm-evaluation-harness are written in it.
package yaml11
