// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// Key is a row of the reference: one key of the recipe.
type Key struct {
	Key     string // dotted; [] stands for an index, NAME for a name of the user's
	Default string
	Meaning string
	Built   bool
}

// Keys is every key of the recipe in the order of the reference.
func Keys() []Key {
	var r Recipe
	return keys(nil, "", r.fields())
}

func keys(ks []Key, key string, fields []field) []Key {
	for i := range fields {
		f := &fields[i]
		k := join(key, f.key)
		ks = append(ks, Key{k, f.fallback(), f.meaning(), f.plan == ""})
		switch to := f.to.(type) {
		case choice:
			for _, kind := range to.kinds() {
				doc := kind.doc
				if kind.later {
					doc += " Not yet."
				}
				ks = append(ks, Key{join(k, kind.name), "", doc, !kind.later})
				ks = keys(ks, join(k, kind.name), kind.fields)
			}
		case list:
			to.resize(1)
			name := k + "[]"
			if _, ok := to.(dict); ok {
				name = k + ".NAME"
			}
			ks = keys(ks, name, to.at(0).fields())
		case group:
			ks = keys(ks, k, to.fields())
		}
	}
	return ks
}

func (f *field) fallback() string {
	switch {
	case f.need:
		return "required"
	case f.def != "":
		return "`" + f.def + "`"
	}
	return f.auto
}

func (f *field) meaning() string {
	s := f.doc
	if len(f.words) > 0 {
		s = "One of `" + strings.Join(f.words, "`, `") + "`. " + s
		if _, ok := f.to.(*[]string); ok {
			s = "Some of" + strings.TrimPrefix(s, "One of")
		}
	}
	if len(f.later) > 0 {
		s += " Not yet: `" + strings.Join(f.later, "`, `") + "`."
	}
	if f.plan != "" {
		s += " Not yet."
	}
	return s
}

// Reference is the page docs/recipe.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(preamble)
	for _, k := range Keys() {
		d := k.Default
		if d == "" {
			d = " "
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Key, d, strings.ReplaceAll(k.Meaning, "|", `\|`))
	}
	return b.String()
}

const preamble = `<!-- SPDX-FileCopyrightText: 2026 The pleach authors -->
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Generated from the fields of package config by its tests: go test ./config -update -->

# The recipe

A recipe is one YAML mapping. A key that is not in this table is an error, and so is a
value that is not built yet: nothing is ignored. All errors are reported at once.

- Quantities carry their unit: ` + "`20 steps`, `88B tokens`, `1 epoch`, `1024 sequences`, " +
	"`30min`, `5 %`" + `.
  Counts may end in k, M, B or T (10³ to 10¹²).
- Relative paths start at the folder of the recipe, on the command line too.
- ` + "`key=value`" + ` on the command line sets any key of the table:
  ` + "`train.batch=\"8 sequences\"`, `data.sources.0.weight=0.5`, " +
	"`train.schedule=\"{constant: {}}\"`" + `.
- Values come from the command line, else the recipe, else the model directory, else the
  default. ` + "`run.yaml`" + ` in the run directory says for each which it was.
- Booleans are ` + "`true` and `false`" + `; numbers have no sign and no leading zeros. A key
  without a value is an error.
- A run may go on with other values of ` + "`train.until`, `train.micro`, `train.recompute`, " +
	"`parallel`, `engine`,\n  `checkpoint`, `evaluate`, `price` and `out`" + `; with any other
  change it is another run.

| key | default | meaning |
|---|---|---|
`
