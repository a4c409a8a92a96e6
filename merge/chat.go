// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pleach/internal/fault"
	"pleach/internal/strictjson"
)

// chats is the chat templates that have a name. They are our own.
//
//go:embed chat/*.jinja
var chats embed.FS

// chatNames are the names of the chat templates that have one.
func chatNames() (names []string) {
	list, _ := chats.ReadDir("chat") // of the program itself: no failure is possible
	for _, e := range list {
		names = append(names, strings.TrimSuffix(e.Name(), ".jinja"))
	}
	return names
}

// chatAuto asks for the template that most inputs have.
const chatAuto = "auto"

// Files that hold a chat template.
const (
	fileTokenizerConfig = "tokenizer_config.json"
	fileChatJinja       = "chat_template.jinja"
	fileChatJSON        = "chat_template.json" // of a processor
)

// checkChat checks chat_template of a configuration, which may be empty: auto, a
// name, or a template of at least 20 characters with a brace.
func checkChat(setting string) error {
	if setting == "" || setting == chatAuto {
		return nil
	}
	names := chatNames()
	for _, n := range names {
		if n == setting {
			return nil
		}
	}
	if len([]rune(setting)) >= 20 && strings.Contains(setting, "{") {
		return nil
	}
	hint := ""
	if n := fault.Nearest(setting, append(names, chatAuto)); n != "" {
		hint = fmt.Sprintf(" (%s?)", n)
	}
	return fault.Configf("merge: chat_template: got %q%s, want auto, one of %s, or a template "+
		"of 20 characters or more", setting, hint, strings.Join(names, ", "))
}

// chatTemplate is the template that a configuration asks for, empty for none. dirs
// are the folders of the inputs in listed order. auto is the template that most of
// them have, of several such the one that comes first; spaces around it do not count.
func chatTemplate(setting string, dirs []string) (template string, warnings []string, err error) {
	if err := checkChat(setting); err != nil || setting == "" {
		return "", nil, err
	}
	if setting != chatAuto {
		if b, err := chats.ReadFile("chat/" + setting + ".jinja"); err == nil {
			return strings.TrimSpace(string(b)), nil, nil
		}
		return setting, nil, nil
	}
	count := map[string]int{}
	var found []string
	for _, dir := range dirs {
		t, err := readChat(dir)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("chat_template: auto: an input does not count: %v", err))
			continue
		}
		if t = strings.TrimSpace(t); t != "" {
			if count[t]++; count[t] == 1 {
				found = append(found, t)
			}
		}
	}
	for _, t := range found {
		if count[t] > count[template] {
			template = t
		}
	}
	if template == "" {
		warnings = append(warnings, "chat_template: auto: no input has one")
	}
	return template, warnings, nil
}

// readChat is the chat template of a model, empty for none. That of its own file
// wins over that of tokenizer_config.json, of which default counts if there are
// several.
func readChat(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, fileChatJinja))
	if err == nil {
		return string(b), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fault.Machinef("merge: %w", err)
	}
	file := filepath.Join(dir, fileTokenizerConfig)
	b, err = os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fault.Machinef("merge: %w", err)
	}
	root, err := parseObject(file, b)
	if err != nil {
		return "", err
	}
	v, _ := root.Lookup("chat_template")
	switch v.Kind {
	case strictjson.String:
		return v.Text, nil
	case strictjson.Object: // by name
		if t, _ := v.Lookup("default"); t.Kind == strictjson.String {
			return t.Text, nil
		}
	case strictjson.Array: // of objects with a name
		for _, e := range v.Kids {
			name, _ := e.Lookup("name")
			t, _ := e.Lookup("template")
			if name.Text == "default" && t.Kind == strictjson.String {
				return t.Text, nil
			}
		}
	}
	return "", nil
}

// setChat puts a chat template into the files of a tokenizer: tokenizer_config.json,
// which is made if need be, and the files that hold nothing else where there are
// some, since they win.
func setChat(files map[string][]byte, template string) error {
	if template == "" {
		return nil
	}
	for _, name := range []string{fileTokenizerConfig, fileChatJSON} {
		b, ok := files[name]
		if !ok && name != fileTokenizerConfig {
			continue
		}
		if !ok {
			b = []byte("{\n}\n")
		}
		out, err := patchConfig(name, b, []Change{{Key: "chat_template", Value: strictjson.Quote(template)}})
		if err != nil {
			return err
		}
		files[name] = out
	}
	if _, ok := files[fileChatJinja]; ok {
		files[fileChatJinja] = []byte(template)
	}
	return nil
}
