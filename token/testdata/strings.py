# SPDX-FileCopyrightText: 2026 The pleach authors
# SPDX-License-Identifier: Apache-2.0

# The hard strings, and the text that the small tokenizers are trained on.

import random

TEXT = """
The hedge was laid in winter, when the sap is low and the ditches stand full of water.
A good worker cuts each stem almost through, bends it over, and weaves it between stakes;
in spring the cut stems send up new shoots, and in three years' time no sheep gets through.
It's said that you can't hurry it, that we've forgotten more than they'll ever learn, and
that I'd do better if I'm patient: "don't pull," she'd say, "let it lean where it's leaning".
Numbers: 1, 2, 3, 10, 42, 100, 1000, 2024, 3.14159, 1,234,567 and 0xff; dates like 2026-11-20.
func main() {
	for i := 0; i < 10; i++ {
		fmt.Println("hello, world", i)
		if err != nil {
			return err
		}
	}
}
def layers(n):
    return [stem for stem in range(n) if stem % 2 == 0]
Die Hecke wurde im Winter gelegt; müde Hände, größere Äste, und überall Schnee.
La haie était pliée à la main, où les enfants jouaient après l'école, déjà fatigués.
El seto crecía rápido; mañana vendrán los niños con pingüinos y cigüeñas.
Плетень стоит у реки, и вода тихо течёт мимо старых деревьев.
Ο φράχτης στέκεται δίπλα στο ποτάμι και το νερό κυλάει ήσυχα.
垣根は冬に編まれ、春になると新しい芽が出る。川のそばに立っている。
树篱在冬天编成，到了春天就会长出新芽。它站在河边。
울타리는 겨울에 엮어지고 봄이 되면 새싹이 돋는다.
हिन्दी में बाड़ सर्दियों में बनाई जाती है और वसंत में नई कोंपलें आती हैं।
السياج منسوج في الشتاء وفي الربيع تنمو براعم جديدة.
הגדר נארגת בחורף ובאביב צומחים ניצנים חדשים.
รั้วถูกถักทอในฤดูหนาว และในฤดูใบไม้ผลิก็จะแตกหน่อใหม่
"""

FIXED = [
    "", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\t\t", " \n", "\n ", " \n ", "\n \n", "\r", "\x0b", "\x0c",
    "a", "a ", " a", " a ", "  a", "a  ", "a  b", "a   b", "a\nb", "a\n\nb", "a \n b", "a\t b", "a \tb", "\ta",
    "hello world", "Hello, World!", "hello  world", " hello world ", "hello\nworld\n", "HELLO", "hELLO wORLD",
    "it's", "It's", "IT'S", "I'm you're we've they'll he'd isn't", "I'M YOU'RE WE'VE THEY'LL HE'D ISN'T",
    "'s", "'S", "'ſ", "it'ſ", "'t 'T 'd 'D 'm 'M 're 'RE 'Re 'rE 've 'll 'LL 'Ll 'lL", "'", "''", "'''s", "' s", "''s",
    "'st", "'sſ", "x'llll", "x'rex", "'ve'", "o'clock", "rock'n'roll", "l'été", "’s it’s", "'\n's", " 's", "  's",
    "0", "1", "12", "123", "1234", "12345", "123456", "1234567", "12345678901234567890", "1 2 3", "1.5", "-1", "+1e-5",
    "1,234,567.89", "2026-11-20T16:13:00Z", "0x1F", "1st 2nd 3rd", "abc123def456", "٣٤٥٦٧", "१२३४५", "①②③④⑤", "Ⅷ Ⅸ", "½ ¾ ⅓", "x²y³", "１２３４５",
    "!", "!!", "!!!", "...", "…", "?!?!", "--", "---", "----------", "==========", "//////", "#!/bin/sh", "<html>", "</html>", "a<b>c", "{}[]()", "a;b;c",
    "x=1;\n", "x = 1;\n\ty = 2;\n", "if (a) {\n\treturn;\n}\n", "!\n", "!\n\n", "!\r\n\r\n", " !\n", "  !\n", "! \n", "a!\nb", ";\n\n\n", ")\n    }\n",
    "    indented", "        deeper", "\tindented", "\t\t\tdeeper", "line\n    line\n        line", "trailing   \n", "\n\n\n\n", " \n \n \n", "  \n\n  x", "\n   x", "\r\n\r\n  x",
    "\u00a0", "a\u00a0b", "\u00a0\u00a0a", "\u2003a", "\u3000日本", "\u2028x\u2029", "\u1680a", "\u200ba\u200bb", "\ufeffbom", "\u202fa", "a\u205fb", "\u0085", "a\u0085b", "\u180e",
    "\x00", "a\x00b", "\x01\x02\x03", "\x1b[31mred\x1b[0m", "\x7f", "\x80", "\x9f", "\x1c\x1d\x1e\x1f", "\ufffd", "\ufffe", "\uffff", "\U0010ffff", "\ud7ff", "\ue000",
    "é", "e\u0301", "ÉÈÊË", "e\u0301e\u0300", "Å\u030a", "\u0301", "a\u0301\u0323", "a\u0323\u0301", "ﬁ ﬂ ﬀ", "Ǆ ǅ ǆ", "ß ẞ", "İ ı", "Σίσυφος ΣΊΣΥΦΟΣ", "ŉ", "ǰ", "ΐ",
    "müde Hände", "mu\u0308de Ha\u0308nde", "naïve café", "piñata", "Çatalhöyük", "Łódź", "Đặng Thị", "Ħ", "œuvre", "Æsir", "ŒŒ", "ǅungla",
    "Привет, мир!", "ПРИВЕТ", "Ёлка ё", "Київ", "Γειά σου Κόσμε", "Ωμέγα ώ", "שלום עולם", "שָׁלוֹם", "مرحبا بالعالم", "مُحَمَّد", "ہیلو", "नमस्ते दुनिया", "क्षि", "বাংলা", "தமிழ்", "తెలుగు", "ಕನ್ನಡ", "മലയാളം", "සිංහල", "ไทยแลนด์", "ລາວ", "မြန်မာ", "ខ្មែរ", "ქართული", "Հայերեն", "አማርኛ", "ᏣᎳᎩ", "ᐃᓄᒃᑎᑐᑦ", "ᠮᠣᠩᠭᠣᠯ", "བོད་ཡིག",
    "你好，世界", "你好 世界", "漢字とひらがなとカタカナ", "ｶﾀｶﾅ", "한국어 텍스트", "한국어", "𠜎𠜱𠝹𠱓", "㊗㊙", "㍿", "ㄅㄆㄇ", "々〆〤", "。、「」", "Ａｂｃ",
    "😀", "😀😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "❤️", "☺", "1️⃣", "🧑🏿‍🚀", "a😀b", " 😀 ", "😀's", "👩‍❤️‍💋‍👨👩‍❤️‍💋‍👨", "\U0001f9ff", "\U0001fae8", "\U0001fae9", "\U0001fac8",
    "\u1c89\u1c8a", "\U00010d40\U00010d41", "\U00010d4a\U00010d50", "\U0001ccf0\U0001ccf9", "\U00016d40", "\U00010ec2", "\U0002ebf0", "\U000323b0", "\U000105c0", "\u0c5c", "\U00011de0", "\U00016ff4", "\ua7ce\ua7cf", "\u088f", "\U00011b61", "\U0001e6c0", "\ua7cb\ua7da\ua7dc",
    "a\u1c89b", " \u1c89", "x\U0002ebf0y 1\U0001ccf0", "\U00011de0\U00011de1", "٣\U00010d401",
    "𝐀𝐁𝐂", "𝟘𝟙𝟚", "ℕℤℚ", "x∈ℝ", "∑∏∫", "a→b", "≠≤≥", "①", "㋀", "™®©", "€£¥₿", "°C", "µm", "№5", "§ 12", "¶",
    "<|endoftext|>", "a<|endoftext|>b", "<|endoftext|><|endoftext|>", " <|endoftext|> ", "<|endoftext|", "|endoftext|>", "<|ENDOFTEXT|>", "<<|endoftext|>>", "<|endoftext|>\n", "<|end<|endoftext|>oftext|>",
    "<s>", "</s>", "<s> hello </s>", "a</s>b", "</s></s>", " </s> ", "<unk>", "a<unk>b", "<pad>", "<0x41>", "<0xE2>", "<0x0A>", "<0x00>", "x<0xFF>y",
    "<|begin_of_text|>", "<|begin_of_text|>hi<|eot_id|>", "<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>", "<|im_start|>user\nhi<|im_end|>\n",
    "<mask>", "a <mask> b", "a  <mask>  b", "<mask><mask>", " <mask>", "\n<mask>\n", "[R]", "a [R] b", "a[R]  b", "[R]\n\nx", "[R][R]", "[R] <mask>", "[R]  <mask>", "whole", "a whole b", "wholesale", "awhole", "whole-some", "_whole_", "whole whole", "whole\u0301", "éwhole", "whole1", "WHOLE", "Whole", "<extra>", " <extra> a", "a<extra>",
    "▁", "▁▁", "a▁b", "▁a", " ▁a", "▁ a", "a ▁ b", "▁▁▁▁a", "a ▁", "Ġ", "Ġa", "aĠb", "Ċ", "ĉ", "Ā", "Ł", "Ġ Ġ", "ĠĠ  a",
    "supercalifragilisticexpialidocious", "antidisestablishmentarianism", "https://example.org/a/b?c=d&e=f#g", "user@example.org", "C:\\Windows\\System32", "/usr/local/bin", "snake_case_name", "camelCaseName", "SCREAMING_SNAKE", "kebab-case-name", "v1.2.3-rc.4+build.5", "192.168.0.1", "2001:db8::1", "a.b.c.d", "f(x)=x^2", "$x_{i}^{2}$", "100%", "#hashtag", "@mention",
    '{"a": [1, 2.5, null, true], "b": "c\\n"}', "SELECT * FROM t WHERE a='b';", "<p class=\"x\">y &amp; z</p>", "| a | b |\n|---|---|\n", "- [ ] todo\n- [x] done\n", "```go\nx := 1\n```\n", "\\begin{align}\n", "a\\nb", "%s %d %v\n", "0b1010 0o777", "1_000_000", "\"quoted\"", "“quoted” ‘single’", "em—dash en–dash", "a…b",
    "aaaaaaaaaaaaaaaa", "abababababababab", "the the the the", "thethethethe", " the", "the ", "ing ing", "zzzzzzzz", "qqqq",
    "a" * 40, "ab" * 60, "the" * 50, "x" * 300, "word" * 40 + " " + "1" * 40, " " * 33, "\n" * 35, "-" * 70, "é" * 40, "日本" * 30, "😀" * 12, "e" + "\u0301" * 20, " a" * 40, "a " * 40, "1 " * 20, "1a" * 20, "\t\n" * 10, "=" * 31 + "\n", "'s" * 12, "▁" * 17, "\u200d" * 9,
    "naïve   café\t\tdéjà\r\nvu", "mixed тест 测试 テスト 테스트 ทดสอบ", "rtl שלום ltr", "a\u202eb\u202c", "zero\u200dwidth\u200cjoin", "soft\u00adhyphen", "com\u0337bi\u0338ning", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
    "e" + "\u0301" * 40, "a" + "\u0323\u0301" * 20 + "b", "\U0001e030\U0001e067", "\u32ff令和", "x\U00010781y", "\u0fb2\u0f71\u0f80" * 9,
    "가각갂", "가\u11a8", "\u1100\u1161\u11a8", "ཀྵ", "க்ஷ", "र्क", "ക്‍", "ค่ำ", "กำ",
]

# Not UTF-8: only for references that take bytes.
BAD = [
    b"\xff", b"\xfe\xff", b"\x80", b"a\x80b", b"\xc3", b"\xc3(", b"\xa0\xa1", b"\xe2\x82", b"\xe2(\xa1", b"\xe2\x82(", b"\xf0\x9f\x98",
    b"\xf0\x28\x8c\xbc", b"\xf0\x90\x28\xbc", b"\xf8\xa1\xa1\xa1\xa1", b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80",
    b"\xf4\x90\x80\x80", b"caf\xe9", b"caf\xe9 au lait", b"\xe2\x96", b" \xe2\x96\x81\xe2", b"ab\xff\xffcd", b"\xff the \xff", b"\xf0\x9f\x98\x80\xf0\x9f",
    b"\xef\xbf\xbd\xff", b"\x00\xff\x00", b"the\xcc", b"\xe6\x97\xa5\xe6\x97", b" \xff", b"\xff ", b"\xc3\xc3\xa9",
]

POOLS = [
    list("abcdefghijklmnopqrstuvwxyz"), list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), list("0123456789"), list(".,;:!?'\"()[]{}<>/\\|@#$%^&*-_=+~`"),
    [" ", " ", " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u2009", "\u3000", "\u0085", "\u2028"],
    ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'ſ", "’s"],
    [" the", " and", " in", " that", "ing", "tion", " it", " new", "fmt", " err", "return", " = ", ":=", "\n\t"],
    list("äöüßéèêçñåøæœłđžšćřůőűāēīōū"), list("абвгдежзийклмнопрстуфхцчшщъыьэюяё"), list("αβγδεζηθικλμνξοπρστυφχψωάέήίόύώς"),
    list("你我他的是在有个人这中大来上国到说们为子和地出道也时年得就那要下以生会自着去之过家学对可她里后"), list("あいうえおかきくけこさしすせそアイウエオカキクケコ"), list("가나다라마바사아자차카타파하한국어말글"),
    list("कखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुूेैोौ्ं"), list("ابتثجحخدذرزسشصضطظعغفقكلمنهويَُِّ"), list("אבגדהוזחטיכלמנסעפצקרשתְֱָ"), list("กขคงจฉชซญดตถทนบปผพฟมยรลวศสหอาิีึืุูเแโไ่้"),
    list("😀😂🤣😍🥰😎🤔👍👎🙏🔥💯🎉🚀❤☀⚡🌍🏽🏿") + ["\u200d", "\ufe0f", "🇩🇪", "👩‍💻"], ["\u0301", "\u0300", "\u0308", "\u0323", "\u0327", "\u0303", "\u20dd", "\u093c"],
    ["\x00", "\x01", "\x07", "\x08", "\x1b", "\x7f", "\x80", "\x9c", "\ufeff", "\u200b", "\u200e", "\u2060", "\ufffd"],
    ["<|endoftext|>", "</s>", "<s>", "<mask>", "[R]", "whole", "<unk>", "<|eot_id|>", "<0x0A>", "▁", "Ġ", "<extra>"],
    ["①", "Ⅳ", "½", "²", "٣", "५", "０", "𝟙", "\U00010d40", "\U0001ccf1", "\U00011de1", "\u1c89", "\U0002ebf1", "\U000323b1", "\ua7ce", "\U0001fae9"],
]


def randoms(n, seed):
    rng = random.Random(seed)
    out = []
    for i in range(n):
        pools = rng.sample(POOLS, rng.randint(1, 4))
        if i % 3 == 0:
            pools.append(POOLS[4])
        out.append("".join(rng.choice(rng.choice(pools)) for _ in range(rng.randint(1, 24))))
    return out


def valid():
    """The strings, each once, in a fixed order."""
    anything = []
    rng = random.Random(7)
    for _ in range(40):
        s = "".join(chr(rng.choice([rng.randrange(0x80, 0x3000), rng.randrange(0x10000), rng.randrange(0x110000)])) for _ in range(8))
        anything.append("".join(c for c in s if not 0xD800 <= ord(c) < 0xE000))
    return list(dict.fromkeys(FIXED + TEXT.strip().split("\n") + randoms(230, 3) + anything))
