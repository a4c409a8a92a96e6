// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package half

// safetensors names the element types in the headers of safetensors files.
var safetensors = [numDTypes]string{
	F64: "F64", F32: "F32", BF16: "BF16", I32: "I32", F16: "F16",
	I64: "I64", I16: "I16", I8: "I8", U8: "U8", Bool: "BOOL",
}

// Safetensors is the name of the type in safetensors files.
func (t DType) Safetensors() string {
	if t >= numDTypes {
		return "?"
	}
	return safetensors[t]
}

// ParseSafetensors is the type of that name in safetensors files, and whether it
// is one of ours: the 8-bit floats and the unsigned integers other than U8 are
// not.
func ParseSafetensors(name string) (DType, bool) {
	for t, s := range safetensors {
		if s == name {
			return DType(t), true
		}
	}
	return 0, false
}
