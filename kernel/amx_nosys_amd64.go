// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 && !linux

package kernel

import "errors"

// amxPermit knows how to ask Linux only.
func amxPermit() error { return errors.ErrUnsupported }
