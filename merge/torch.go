// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import "context"

func (p *Plan) runCompat(ctx context.Context, sink Sink, lim Limits, progress Progress) error {
	return nil
}
