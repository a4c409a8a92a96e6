// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

// Package lint holds the rules of this source tree that a machine can check. It
// is all tests:
//
//	go test ./internal/lint                  the gates
//	go test ./internal/lint -run Size -v     figures about sizes, never a gate
//
// The gates are: which room may import which (order_test.go, in the notation of
// go/build/deps_test.go), which module may be imported where and why
// (testdata/thirdparty.txt), a package comment for every room, the licence lines
// of every source file, and an issue number at every TODO.
//
// What gofumpt, go vet and staticcheck find is not repeated here; .ci/run calls
// them. A rule that needs an exception list longer than itself is no rule.
package lint
