// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// A machine runs the text of the kernels of AMX on real memory, one instruction after
// the other, on any processor. It knows the instructions that they have and decodes
// the bytes of the others; it fails where the processor would, and where a kernel
// breaks a promise: what it touches, what it configures, what it leaves behind.

// routine is a function of an assembly file.
type routine struct {
	name        string
	frame, args int
	code        []line
	labels      map[string]int
}

// line is an instruction with its operands as text, or bytes of one that Go's
// assembler does not know.
type line struct {
	text  string
	op    string
	args  []string
	bytes []byte
}

// routinesOf reads an assembly file.
func routinesOf(path string) (map[string]*routine, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := map[string]*routine{}
	var r *routine
	for s := range strings.Lines(string(source)) {
		s, _, _ = strings.Cut(strings.TrimSpace(s), "//")
		s = strings.TrimSpace(s)
		switch {
		case s == "" || strings.HasPrefix(s, "#"):
		case strings.HasPrefix(s, "TEXT"):
			r = &routine{labels: map[string]int{}}
			name, sizes, _ := strings.Cut(strings.TrimPrefix(s, "TEXT ·"), "(SB), NOSPLIT, $")
			if _, err := fmt.Sscanf(sizes, "%d-%d", &r.frame, &r.args); err != nil {
				return nil, fmt.Errorf("%s: %w", s, err)
			}
			r.name, all[name] = name, r
		case strings.HasSuffix(s, ":"):
			r.labels[strings.TrimSuffix(s, ":")] = len(r.code)
		default:
			l, err := lineOf(s)
			if err != nil {
				return nil, err
			}
			r.code = append(r.code, l)
		}
	}
	return all, nil
}

func lineOf(s string) (line, error) {
	l := line{text: s}
	l.op, s, _ = strings.Cut(s, " ")
	if size := map[string]int{"LONG": 4, "WORD": 2, "BYTE": 1}[l.op]; size == 0 {
		if s != "" {
			l.args = strings.Split(s, ", ")
		}
		return l, nil
	}
	l.op = ""
	for part := range strings.SplitSeq(l.text, "; ") {
		name, digits, _ := strings.Cut(part, " $")
		v, err := strconv.ParseUint(digits, 0, 32)
		if err != nil {
			return l, fmt.Errorf("%s: %w", l.text, err)
		}
		for i := range map[string]int{"LONG": 4, "WORD": 2, "BYTE": 1}[name] {
			l.bytes = append(l.bytes, byte(v>>(8*i)))
		}
	}
	return l, nil
}

// region is memory that a routine sees, and what it may do with each byte of it.
type region struct {
	base          uint64
	bytes         []byte
	reads, writes []bool
}

// simTile is a tile as it is configured.
type simTile struct {
	rows, size int
	data       [16][64]byte
}

// machine is the state of a processor.
type machine struct {
	reg         [16]uint64
	zero        bool // the flag
	args, frame []byte
	memory      []*region
	configured  bool
	tile        [8]simTile
	dots        int // products so far
}

var registers = []string{"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}

// broken is what a panic of the machine carries.
type broken string

func (m *machine) fail(format string, a ...any) { panic(broken(fmt.Sprintf(format, a...))) }

// at is n bytes of memory, which must be allowed.
func (m *machine) at(address uint64, n int, write bool) []byte {
	for _, r := range m.memory {
		i := address - r.base
		if address < r.base || i+uint64(n) > uint64(len(r.bytes)) {
			continue
		}
		allowed := r.reads
		if write {
			allowed = r.writes
		}
		for b := range n {
			if !allowed[i+uint64(b)] {
				m.fail("byte %d of a region is touched, write: %v", i+uint64(b), write)
			}
		}
		return r.bytes[i:][:n]
	}
	m.fail("memory at %#x is touched", address)
	return nil
}

// run is a call with so many words of arguments.
func (m *machine) run(r *routine, args ...uint64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v", r.name, p)
		}
	}()
	m.args, m.frame = make([]byte, r.args), make([]byte, r.frame)
	for i, v := range args {
		binary.LittleEndian.PutUint64(m.args[8*i:], v)
	}
	for i := range m.reg {
		m.reg[i] = 0xdead_beef_0000_0001 * uint64(i+3) // nothing is known
	}
	for i := range m.frame {
		m.frame[i] = 0xa5
	}
	pc := 0
	for range 200_000 {
		if pc >= len(r.code) {
			m.fail("it runs past its end")
		}
		l := r.code[pc]
		if l.op == "RET" {
			if m.configured {
				m.fail("tiles are not released")
			}
			return nil
		}
		if to, jumps := m.step(r, l); jumps {
			pc = to
		} else {
			pc++
		}
	}
	m.fail("it does not end")
	return nil
}

// step is an instruction; it may jump.
func (m *machine) step(r *routine, l line) (to int, jumps bool) {
	defer func() {
		if p := recover(); p != nil {
			panic(broken(fmt.Sprintf("%s: %v", l.text, p)))
		}
	}()
	if l.op == "" {
		m.tiles(l.bytes)
		return 0, false
	}
	if l.op[0] == 'J' {
		to, ok := r.labels[l.args[0]]
		if !ok {
			m.fail("no such label")
		}
		switch l.op {
		case "JMP":
			return to, true
		case "JZ", "JEQ":
			return to, m.zero
		case "JNZ", "JNE":
			return to, !m.zero
		}
	}
	m.integer(l)
	return 0, false
}

// integer is what is not of AMX.
func (m *machine) integer(l line) {
	two := func() (x, y uint64) { return m.get(l.args[0], 8), m.get(l.args[1], 8) }
	var v uint64
	switch l.op {
	case "PREFETCHT0", "PREFETCHT1":
		m.address(l.args[0])
		return
	case "MOVQ":
		m.set(l.args[1], m.get(l.args[0], 8))
		return
	case "LEAQ": // of prefetches
		m.address(l.args[0])
		return
	case "MOVBLZX":
		m.set(l.args[1], m.get(l.args[0], 1))
		return
	case "TESTL":
		x, y := two()
		m.zero = uint32(x&y) == 0
		return
	case "CMPQ":
		x, y := two()
		m.zero = x == y
		return
	case "ADDQ":
		x, y := two()
		v = y + x
	case "SUBQ":
		x, y := two()
		v = y - x
	case "SHLQ":
		x, y := two()
		v = y << x
	default:
		m.fail("no such instruction")
	}
	m.zero = v == 0
	m.set(l.args[1], v)
}

// get reads an operand of so many bytes.
func (m *machine) get(s string, n int) uint64 {
	if i := slices.Index(registers, s); i >= 0 {
		return m.reg[i]
	}
	if digits, ok := strings.CutPrefix(s, "$"); ok {
		v, err := strconv.ParseInt(digits, 0, 32)
		if err != nil {
			m.fail("%v", err)
		}
		return uint64(v)
	}
	var b [8]byte
	copy(b[:], m.own(s, n))
	return binary.LittleEndian.Uint64(b[:])
}

// set writes a register, of which some are not a kernel's, or a word of the frame.
func (m *machine) set(s string, v uint64) {
	if i := slices.Index(registers, s); i >= 0 {
		if slices.Contains([]string{"SP", "BP", "R14", "R15"}, s) {
			m.fail("a register of Go is written")
		}
		m.reg[i] = v
		return
	}
	if !strings.HasSuffix(s, "(SP)") {
		m.fail("it writes to %s", s)
	}
	binary.LittleEndian.PutUint64(m.own(s, 8), v)
}

// own is an operand in the frame or among the arguments.
func (m *machine) own(s string, n int) []byte {
	if place, ok := strings.CutSuffix(s, "(SP)"); ok {
		return m.frame[m.number(place):][:n]
	}
	place, ok := strings.CutSuffix(s, "(FP)")
	if !ok {
		m.fail("no such operand: %s", s)
	}
	_, place, _ = strings.Cut(place, "+")
	return m.args[m.number(place):][:n]
}

func (m *machine) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		m.fail("%v", err)
	}
	return n
}

// address checks the address of a prefetch, disp(base), which may be anywhere.
func (m *machine) address(s string) {
	disp, base, ok := strings.Cut(strings.TrimSuffix(s, ")"), "(")
	if disp != "" {
		m.number(disp)
	}
	if !ok || !slices.Contains(registers, base) {
		m.fail("no such address")
	}
}

// tiles decodes an instruction of AMX and executes it. The fields are those of
// Intel's manual, volume 2, section 2.3.5 and the pages of the instructions; nothing
// is shared with the encoder.
func (m *machine) tiles(b []byte) {
	if len(b) < 5 || b[0] != 0xc4 || b[1]&0x1f != 2 || b[2]&0x84 != 0 {
		m.fail("no VEX prefix of the map 0F38, W and L zero")
	}
	prefix, code, vvvv := b[2]&3, b[3], int(^b[2]>>3&15)
	high := [3]int{int(^b[1] >> 7 & 1), int(^b[1] >> 6 & 1), int(^b[1] >> 5 & 1)} // R, X, B
	mod, reg, rm, rest := b[4]>>6, int(b[4]>>3&7), int(b[4]&7), b[5:]
	if high[0] != 0 {
		m.fail("tile %d", reg+8)
	}
	if code == 0x5c && prefix == 2 && mod == 3 && len(rest) == 0 && high[2] == 0 {
		m.dot(reg, rm, vvvv)
		return
	}
	if vvvv != 0 {
		m.fail("the field vvvv is used")
	}
	switch {
	case code == 0x49 && prefix == 0 && b[4] == 0xc0 && len(rest) == 0:
		if !m.configured {
			m.fail("nothing to release")
		}
		m.configured, m.tile = false, [8]simTile{}
	case code == 0x49 && prefix == 0 && mod == 0 && reg == 0 && rm != 4 && rm != 5 && len(rest) == 0:
		m.configure(m.at(m.reg[rm+8*high[2]], 64, false))
	case code == 0x49 && prefix == 3 && mod == 3 && rm == 0 && len(rest) == 0:
		m.used(reg).data = [16][64]byte{}
	case code == 0x4b && mod != 3 && rm == 4 && rest[0]>>6 == 0:
		base, index := int(rest[0]&7)+8*high[2], int(rest[0]>>3&7)+8*high[1]
		if index == 4 || base&7 == 5 && mod == 0 {
			m.fail("no index or no base")
		}
		m.move(prefix, reg, m.reg[base]+m.displacement(mod, rest[1:]), m.reg[index])
	default:
		m.fail("no such instruction of AMX")
	}
}

// displacement is what follows an address: nothing, a byte, or four.
func (m *machine) displacement(mod byte, b []byte) uint64 {
	switch {
	case mod == 0 && len(b) == 0:
		return 0
	case mod == 1 && len(b) == 1:
		return uint64(int8(b[0]))
	case mod == 2 && len(b) == 4:
		return uint64(int32(binary.LittleEndian.Uint32(b)))
	}
	m.fail("a displacement of %d bytes", len(b))
	return 0
}

// used is a tile, which must have a shape.
func (m *machine) used(i int) *simTile {
	if !m.configured || m.tile[i].rows == 0 {
		m.fail("tile %d is not configured", i)
	}
	return &m.tile[i]
}

// configure gives tiles their shapes, and clears them.
func (m *machine) configure(b []byte) {
	zeros := slices.Concat(b[1:16], b[32:48], b[56:64])
	if b[0] != 1 || slices.ContainsFunc(zeros, func(v byte) bool { return v != 0 }) {
		m.fail("a wrong palette, or bytes that are reserved")
	}
	m.configured = true
	for i := range m.tile {
		t := simTile{rows: int(b[48+i]), size: int(binary.LittleEndian.Uint16(b[16+2*i:]))}
		if t.rows > 16 || t.size > 64 || t.rows == 0 || t.size == 0 || t.size%4 != 0 {
			m.fail("tile %d of %d rows of %d bytes", i, t.rows, t.size)
		}
		m.tile[i] = t
	}
}

// move loads or stores a tile.
func (m *machine) move(prefix byte, i int, address, distance uint64) {
	t := m.used(i)
	var data [16][64]byte // what is beyond the shape becomes zero
	for r := range t.rows {
		memory := m.at(address+uint64(r)*distance, t.size, prefix == 2)
		switch prefix {
		case 1, 3:
			copy(data[r][:], memory)
		case 2:
			copy(memory, t.data[r][:])
		default:
			m.fail("no such prefix")
		}
	}
	if prefix != 2 {
		t.data = data
	}
}

// dot is TDPBF16PS: tile c += tile a · tile b.
func (m *machine) dot(c, a, b int) {
	x, y, z := m.used(a), m.used(b), m.used(c)
	switch {
	case a == b || b == c || a == c:
		m.fail("tiles %d, %d, %d are not three", c, a, b)
	case z.rows != x.rows || z.size != y.size || x.size/4 != y.rows:
		m.fail("shapes do not match")
	}
	m.dots++
	word := func(row *[64]byte, i int) uint16 { return binary.LittleEndian.Uint16(row[2*i:]) }
	for r := range z.rows {
		for j := range z.size / 4 {
			var sums [2]float32
			for k := range x.size / 2 {
				sums[k%2] = flushedFMA(word(&x.data[r], k), word(&y.data[k/2], 2*j+k%2), sums[k%2])
			}
			to := z.data[r][4*j:]
			old := math.Float32frombits(binary.LittleEndian.Uint32(to))
			v := flushed(flushed(old) + flushed(sums[0]+sums[1]))
			binary.LittleEndian.PutUint32(to, math.Float32bits(v))
		}
	}
}

// matrix is guarded memory of rows, of which only their bytes may be touched.
func (m *machine) matrix(rows, size, distance int, write bool) *region {
	const guard = 4096
	n := guard*2 + (rows-1)*distance + size
	r := &region{bytes: make([]byte, n), reads: make([]bool, n), writes: make([]bool, n)}
	r.base = uint64(uintptr(unsafe.Pointer(&r.bytes[0])))
	for i := range rows {
		for b := range size {
			r.reads[guard+i*distance+b], r.writes[guard+i*distance+b] = true, write
		}
	}
	m.memory = append(m.memory, r)
	return r
}

// start is the address of the first row.
func (r *region) start() uint64 { return r.base + 4096 }
