// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

// TopKBegin empties candidates: value −Inf and id −1.
func TopKBegin(value []float32, id []int32) {
	for i := range id {
		value[i], id[i] = negInf(), -1
	}
}

// TopK keeps the k largest logits of each token while tiles of the vocabulary
// pass by.
//
// value and id are [N,k] and sorted: larger values first, equal ones by rising
// id. z has N = len(id)/k rows of V logits with distance ldz, that of id first+i
// at i. The result does not depend on the tiles or their order. A NaN is never a
// candidate, −Inf is one; if fewer than k are there, ids of −1 follow.
func TopK(value []float32, id []int32, z []float32, k, first, V, ldz int) {
	for n := range rows(len(id), k) {
		vs, ids := value[n*k:][:k], id[n*k:][:k]
		for i, v := range z[n*ldz:][:V] {
			if v >= vs[k-1] {
				insert(vs, ids, v, int32(first+i))
			}
		}
	}
}

// insert puts a candidate at its place, and the last one out.
func insert(vs []float32, ids []int32, v float32, id int32) {
	i := len(vs)
	for i > 0 && (ids[i-1] < 0 || v > vs[i-1] || v == vs[i-1] && id < ids[i-1]) {
		i--
	}
	if i == len(vs) {
		return
	}
	copy(vs[i+1:], vs[i:])
	copy(ids[i+1:], ids[i:])
	vs[i], ids[i] = v, id
}
