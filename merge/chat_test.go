// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pleach/internal/fault"
)

// folder is a folder with files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestChatTemplates checks that the templates are those that the script beside
// testdata/chat.json rendered, and what came out.
func TestChatTemplates(t *testing.T) {
	b, err := os.ReadFile("testdata/chat.json")
	if err != nil {
		t.Fatal(err)
	}
	var rendered map[string]struct {
		Template string
		Chats    map[string]string
	}
	if err := json.Unmarshal(b, &rendered); err != nil {
		t.Fatal(err)
	}
	const key = "a talk with a system message"
	want := map[string]string{
		"alpaca": "Be brief.\n\n### Instruction:\nWhat is 1 + 1?\n\n### Response:\n2.\n\n### Instruction:\nWhy?\n\n### Response:\n2.",
		"chatml": "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is 1 + 1?<|im_end|>\n" +
			"<|im_start|>assistant\n2.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n2.<|im_end|>\n",
		"exaone": "[|system|]Be brief.[|endofturn|]\n[|user|]What is 1 + 1?\n[|assistant|]2.[|endofturn|]\n" +
			"[|user|]Why?\n[|assistant|]2.[|endofturn|]\n",
		"llama3": "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>" +
			"<|start_header_id|>user<|end_header_id|>\n\nWhat is 1 + 1?<|eot_id|>" +
			"<|start_header_id|>assistant<|end_header_id|>\n\n2.<|eot_id|>" +
			"<|start_header_id|>user<|end_header_id|>\n\nWhy?<|eot_id|>" +
			"<|start_header_id|>assistant<|end_header_id|>\n\n2.<|eot_id|>",
		"mistral": "<s> [INST] Be brief.\n\nWhat is 1 + 1? [/INST] 2.</s> [INST] Why? [/INST] 2.</s>",
	}
	if got := chatNames(); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Errorf("names: got %v", got)
	}
	for name, text := range want {
		b, err := chats.ReadFile("chat/" + name + ".jinja")
		if err != nil {
			t.Fatal(err)
		}
		if string(b) != rendered[name].Template {
			t.Errorf("%s: the template was changed and not rendered again: run testdata/chat.py", name)
		}
		if got := rendered[name].Chats[key]; got != text {
			t.Errorf("%s: got %q, want %q", name, got, text)
		}
		got, _, err := chatTemplate(name, nil)
		if err != nil || got != strings.TrimSpace(string(b)) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestChatTemplateAuto(t *testing.T) {
	config := func(v string) string {
		return folder(t, map[string]string{"tokenizer_config.json": `{"a": 1, "chat_template": ` + v + `}`})
	}
	a, a2, b := config(`"A {{ x }}"`), config(`" A {{ x }}\n"`), config(`"B {{ x }}"`)
	list := config(`[{"name": "tool", "template": "T"}, {"name": "default", "template": "B {{ x }}"}]`)
	byName := config(`{"tool": "T", "default": "B {{ x }}"}`)
	jinja := folder(t, map[string]string{
		"tokenizer_config.json": `{"chat_template": "A {{ x }}"}`, "chat_template.jinja": "C {{ x }}\n",
	})
	null, none, bad := config("null"), t.TempDir(), folder(t, map[string]string{"tokenizer_config.json": "["})
	for _, c := range []struct {
		name string
		dirs []string
		want string
		warn int
	}{
		{"most", []string{b, a, a2}, "A {{ x }}", 0},
		{"the first of two", []string{b, a}, "B {{ x }}", 0},
		{"lists", []string{a, list, byName}, "B {{ x }}", 0},
		{"a file of its own wins", []string{jinja, jinja, a}, "C {{ x }}", 0},
		{"none count", []string{null, none, a}, "A {{ x }}", 0},
		{"a bad file", []string{bad, a}, "A {{ x }}", 1},
		{"no template at all", []string{null, none}, "", 1},
	} {
		got, warnings, err := chatTemplate("auto", c.dirs)
		if err != nil || got != c.want || len(warnings) != c.warn {
			t.Errorf("%s: got %q, %v, %v; want %q and %d warnings", c.name, got, warnings, err, c.want, c.warn)
		}
	}
}

func TestChatTemplateLiteral(t *testing.T) {
	for _, c := range []struct {
		setting, want, err string
	}{
		{"", "", ""},
		{"{{ messages[0]['content'] }}", "{{ messages[0]['content'] }}", ""},
		{"{{ messages }}", "", "20 characters"},
		{"a long text without any template", "", "20 characters"},
		{"chatlm", "", "(chatml?)"},
		{"../chat/chatml", "", "20 characters"},
	} {
		got, _, err := chatTemplate(c.setting, nil)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: got %q, %v; want %q, %q", c.setting, got, err, c.want, c.err)
		}
		if err != nil && fault.Exit(err) != fault.Exit(fault.Configf("x")) {
			t.Errorf("%q: got %v, want an error of the configuration", c.setting, err)
		}
	}
}

func TestSetChat(t *testing.T) {
	for _, c := range []struct {
		name     string
		was, now map[string]string
	}{
		{"nothing there", nil, map[string]string{
			"tokenizer_config.json": "{\"chat_template\": \"{{ \\\"é\\\" }}\\n\"\n}\n",
		}},
		{"a list", map[string]string{"tokenizer_config.json": `{"chat_template": [{"name": "x"}], "b": 1.0}`}, map[string]string{
			"tokenizer_config.json": `{"chat_template": "{{ \"é\" }}\n", "b": 1.0}`,
		}},
		{"other files", map[string]string{
			"tokenizer_config.json": "{\n  \"b\": 1\n}", "chat_template.jinja": "x", "chat_template.json": `{"chat_template": "x"}`,
		}, map[string]string{
			"tokenizer_config.json": "{\n  \"b\": 1,\n  \"chat_template\": \"{{ \\\"é\\\" }}\\n\"\n}",
			"chat_template.jinja":   "{{ \"é\" }}\n", "chat_template.json": `{"chat_template": "{{ \"é\" }}\n"}`,
		}},
	} {
		files := map[string][]byte{}
		for k, v := range c.was {
			files[k] = []byte(v)
		}
		if err := setChat(files, "{{ \"é\" }}\n"); err != nil {
			t.Fatal(err)
		}
		for k, v := range c.now {
			if string(files[k]) != v {
				t.Errorf("%s: %s: got %q, want %q", c.name, k, files[k], v)
			}
		}
		if len(files) != len(c.now) {
			t.Errorf("%s: got %d files, want %d", c.name, len(files), len(c.now))
		}
	}
	files := map[string][]byte{"tokenizer_config.json": []byte("[]")}
	if err := setChat(files, ""); err != nil || string(files["tokenizer_config.json"]) != "[]" {
		t.Errorf("no template: got %v", err)
	}
	if err := setChat(files, "x"); err == nil || !strings.Contains(err.Error(), "want an object") {
		t.Errorf("a file that is no object: got %v", err)
	}
}
