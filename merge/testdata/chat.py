# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

"""Renders the templates of ../chat, in the environment that transformers gives them.

    python chat.py        with jinja2; writes chat.json beside this file

chat.json has the text of each template, so that a template that was changed and not
rendered again is seen.
"""

import json
import os

from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = os.path.dirname(os.path.abspath(__file__))

SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "What is 1 + 1?"}
REPLY = {"role": "assistant", "content": "2."}
MORE = {"role": "user", "content": "Why?"}

CHATS = {
    "a question": ([USER], True),
    "a system message": ([SYSTEM, USER], True),
    "a talk": ([USER, REPLY, MORE], True),
    "a talk with a system message": ([SYSTEM, USER, REPLY, MORE, REPLY], False),
}


def fail(message):
    raise ValueError(message)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
env.globals["raise_exception"] = fail

out = {}
for file in sorted(os.listdir(os.path.join(HERE, "..", "chat"))):
    with open(os.path.join(HERE, "..", "chat", file), encoding="utf-8") as f:
        text = f.read()
    t = env.from_string(text)
    out[file.removesuffix(".jinja")] = {
        "template": text,
        "chats": {
            name: t.render(
                messages=m, add_generation_prompt=g, bos_token="<s>", eos_token="</s>"
            )
            for name, (m, g) in CHATS.items()
        },
    }
with open(os.path.join(HERE, "chat.json"), "w", encoding="utf-8") as f:
    json.dump(out, f, indent=1, ensure_ascii=False)
    f.write("\n")
