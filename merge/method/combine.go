// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package method

// combinations are the methods whose result is a combination of the inputs.
func combinations() []*Method {
	return []*Method{
		linearMethod(),
		slerpMethod(),
		nuslerpMethod(),
		multislerpMethod(),
		karcherMethod(),
		stockMethod(),
		nearswapMethod(),
		ramMethod(),
		ramPlusMethod(),
		passthroughMethod(),
	}
}
