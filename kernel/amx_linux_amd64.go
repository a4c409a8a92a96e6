// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import "golang.org/x/sys/unix"

// amxPermit asks the system for tiles, without which the first use ends the process.
// One call covers the threads that exist and those to come. It fails if a thread's
// signal stack has no room for them; Go's have. Linux 5.16,
// Documentation/arch/x86/xstate.rst.
func amxPermit() error {
	const requestPermission, tileData = 0x1023, 18
	if _, _, e := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0); e != 0 {
		return e
	}
	return nil
}
