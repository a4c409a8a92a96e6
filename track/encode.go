// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"time"
)

const timeFormat = "2006-01-02T15:04:05.000Z"

// Encode appends the line of an event, with its end, to b.
func Encode(b []byte, at time.Time, e Event) ([]byte, error) {
	if _, ok := e.(Unknown); ok {
		return nil, invalid(e, errors.New("only read, never written"))
	}
	b = append(b, `{"event":"`...)
	b = append(b, e.Kind()...)
	b = append(b, `","time":"`...)
	b = at.UTC().AppendFormat(b, timeFormat)
	b = append(b, '"')
	v := reflect.ValueOf(e)
	nonfinite := map[string]string{}
	for i := range v.NumField() {
		name, opts, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if opts == "omitempty" && (f.IsZero() || f.Kind() == reflect.Map && f.Len() == 0) {
			continue
		}
		b = append(b, `,"`...)
		b = append(b, name...)
		b = append(b, `":`...)
		if f.Kind() == reflect.Float64 {
			if s := special(f.Float()); s != "" {
				nonfinite[name] = s
				b = append(b, "null"...)
				continue
			}
		}
		var err error
		if b, err = appendJSON(b, f.Interface()); err != nil {
			return nil, invalid(e, err)
		}
	}
	if len(nonfinite) > 0 {
		b = append(b, `,"nonfinite":`...)
		b, _ = appendJSON(b, nonfinite) // strings cannot fail
	}
	return append(b, "}\n"...), nil
}

// appendJSON leaves <, > and & as they are: the file is for people too.
func appendJSON(b []byte, v any) ([]byte, error) {
	var w bytes.Buffer
	enc := json.NewEncoder(&w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return b, err
	}
	return append(b, bytes.TrimSuffix(w.Bytes(), []byte{'\n'})...), nil
}

// special is how a number that JSON does not have is called, or "".
func special(x float64) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "+Inf"
	case math.IsInf(x, -1):
		return "-Inf"
	}
	return ""
}
