package redact_test

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/redact"
)

// secrets are of the kinds that operators have.
var secrets = []string{
	"hunter2!",
	"sk_live_51H8mN2eZvKYlo2C0",
	"user+name:pa/ss word?&=%#\"'<\\>",
	"AbCdEf%2FGhIjKl%3D%3D0123", // escaped already
	"dXNlcjpwYXNz/+ab/+cd/+ef/+gh/+ij/+kl",
	"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----",
	"\xff\xfe\x00 binary \x80\x81\x82\x83",
}

// escapeOf returns the content of a JSON string for s, as Go writes it.
func escapeOf(t *testing.T, s string, html bool) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return strings.Trim(strings.TrimSpace(b.String()), `"`)
}

// TestForms puts each secret in each encoding into the middle of other text: the secret is replaced, and nothing else.
// Proves: Secrets stay secret
func TestForms(t *testing.T) {
	t.Parallel()
	for _, secret := range secrets {
		r := redact.New(secret)
		binary := strings.HasPrefix(secret, "\xff")
		forms := map[string]string{
			"plain":        secret,
			"hex":          hex.EncodeToString([]byte(secret)),
			"capital hex":  strings.ToUpper(hex.EncodeToString([]byte(secret))),
			"query":        url.QueryEscape(secret),
			"path":         url.PathEscape(secret),
			"small query":  lowerPercent(url.QueryEscape(secret)),
			"HTML":         html.EscapeString(secret),
			"HTML by name": strings.ReplaceAll(html.EscapeString(secret), "&#34;", "&quot;"),
			"UTF-16":       strings.TrimSuffix(utf16(secret), "\x00"), // a zero byte at the end would be left in place
		}
		if binary {
			delete(forms, "UTF-16") // no program would write bytes in this way
		} else {
			forms["JSON"] = escapeOf(t, secret, false)
			forms["JSON of Go"] = escapeOf(t, secret, true)
			forms["JSON of PHP"] = strings.ReplaceAll(escapeOf(t, secret, false), "/", `\/`)
			forms["JSON in JSON"] = escapeOf(t, escapeOf(t, secret, false), false)
			forms["HTML in JSON"] = escapeOf(t, html.EscapeString(secret), true)
			forms["JSON in a query"] = url.QueryEscape(escapeOf(t, secret, true))
			forms["hex of UTF-16"] = hex.EncodeToString([]byte(strings.TrimSuffix(utf16(secret), "\x00")))
			forms["UTF-16 of hex"] = strings.TrimSuffix(utf16(hex.EncodeToString([]byte(secret))), "\x00")
			forms["hex of JSON"] = hex.EncodeToString([]byte(escapeOf(t, secret, true)))
			forms["hex of a query"] = hex.EncodeToString([]byte(url.QueryEscape(secret)))
			forms["hex of a small query"] = hex.EncodeToString([]byte(lowerPercent(url.QueryEscape(secret))))
			forms["hex of JSON of PHP"] = hex.EncodeToString([]byte(strings.ReplaceAll(escapeOf(t, secret, false), "/", `\/`)))
			forms["hex of JSON of .NET"] = hex.EncodeToString([]byte(jsonOfNET(t, secret)))
			forms["hex of a form"] = hex.EncodeToString([]byte(strings.ReplaceAll(secret, " ", "+")))
			forms["hex of the text that a form was read as"] = hex.EncodeToString([]byte(strings.ReplaceAll(secret, "+", " ")))
			forms["hex of encodeURIComponent"] = hex.EncodeToString([]byte(strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(url.QueryEscape(secret))))
			forms["hex of quote of Python"] = hex.EncodeToString([]byte(strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(secret))))
		}
		forms["hex of hex"] = hex.EncodeToString([]byte(hex.EncodeToString([]byte(secret))))
		for style, format := range map[string]string{
			"hex with blanks": "%02x ", "hex with colons": "%02x:", "hex numbers": "0x%02X, ", "decimal numbers": "%d, ", "decimal lines": "%d\n",
			"octal escapes": `\%03o`, "hex escapes": `\x%02x`, "escapes of JavaScript": `\u{%x}`, "long ones": `\u%04X`, "URL as IIS has it": "%%u%04x",
			"HTML without ;": "&#%d", "hex HTML": "&#x%x;", "HTML with zeros": "&#%05d;", "quoted-printable": "=%02X",
		} {
			if binary && (strings.Contains(format, "u") || strings.Contains(format, "&")) {
				continue
			}
			var b strings.Builder
			for i := range len(secret) {
				if binary || secret[i] != '\n' { // some escapes can't be followed by every character
					fmt.Fprintf(&b, format, secret[i])
				}
			}
			forms[style] = strings.TrimRight(b.String(), " ,:\n")
		}
		if strings.HasPrefix(secret, "---") {
			delete(forms, "hex with colons") // without line breaks in the middle, which don't matter here
		}
		for name, form := range forms {
			if len(secret) < 16 && strings.Contains(name, "hex of") {
				continue // not looked for, since it could be guessed in steps
			}
			for _, around := range [][2]string{{"", ""}, {"see ", "."}, {`{"authorization":["Bearer `, `"]}`}} {
				got := string(r.Bytes([]byte(around[0] + form + around[1])))
				if want := around[0] + redact.Mark + around[1]; got != want {
					t.Errorf("%.20q as %s: got %q, want %q", secret, name, got, want)
				}
			}
		}
	}
}

// jsonOfNET returns the content of a JSON string for s, as System.Text.Json writes it.
func jsonOfNET(t *testing.T, s string) string {
	return strings.NewReplacer("+", `\u002B`, "'", `\u0027`, `\"`, `\u0022`, `\u003c`, `\u003C`, `\u003e`, `\u003E`).Replace(escapeOf(t, s, true))
}

func lowerPercent(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' {
			b.WriteString(strings.ToLower(s[i : i+3]))
			i += 2
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func utf16(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteByte(byte(r))
		b.WriteByte(byte(r >> 8))
	}
	return b.String()
}

// TestLists writes each secret as the numbers of its bytes, in the ways in which programs list them: only the text around the list is left.
func TestLists(t *testing.T) {
	t.Parallel()
	for _, secret := range secrets {
		r := redact.New(secret)
		list := func(format string) string {
			var b strings.Builder
			for i := range len(secret) {
				fmt.Fprintf(&b, format, secret[i])
			}
			return b.String()
		}
		object := func(format string) string {
			var b strings.Builder
			for i := range len(secret) {
				fmt.Fprintf(&b, format, i, secret[i])
			}
			return b.String()
		}
		for name, text := range map[string]string{
			"Uint8Array":                 "{" + strings.TrimSuffix(object(`"%d":%d,`), ",") + "}",
			"Uint8Array in lines":        "{\n" + strings.TrimSuffix(object("  \"%d\": %d,\n"), ",\n") + "\n}",
			"Uint8Array in a string":     escapeOf(t, "{\n"+object("  \"%d\": %d,\n")+"}", false),
			"dict of Python":             "{" + object("%d: %d, ") + "}",
			"numbers in lines, as JSON":  escapeOf(t, "[\n"+list("  %d,\n")+"]", false),
			"octal numbers":              list("%o, "),
			"octal numbers with zeros":   list("%03o "),
			"octal numbers of Python":    list("0o%o, "),
			"octal numbers of C":         list("0%o, "),
			"od -b":                      dump(secret, "%07o", " %03o", 1, false),
			"od -t x1":                   dump(secret, "%07o", " %02x", 1, false),
			"od -t u1":                   dump(secret, "%07o", " %3d", 1, false),
			"xxd":                        dump(secret, "%08x:", " %02x%02x", 2, true),
			"xxd in a string":            escapeOf(t, dump(secret, "%08x:", " %02x%02x", 2, true), false),
			"xxd -g 1":                   dump(secret, "%08x:", " %02x", 1, true),
			"xxd -g 4":                   dump(secret, "%08x:", " %02x%02x%02x%02x", 4, true),
			"hexdump -C":                 strings.ReplaceAll(dump(secret, "%08x ", " %02x", 1, true), "  \x00", "  |"),
			"groups of two bytes":        strings.ReplaceAll(dump(secret, "", " %02x%02x", 2, false), "\n", " "),
			"groups of two bytes, lines": dump(secret, "", " %02x%02x", 2, false),
			"braces of Perl":             list(`\x{%x}`),
			"capital braces of Perl":     list(`\x{%02X}`),
			"long escapes of Python":     list(`\U%08x`),
		} {
			if secret[0] == 0xff && strings.Contains(name, "escapes") {
				continue // these are the numbers of characters, not of bytes
			}
			got := r.String("see " + text + " there")
			rest := strings.Replace(got, redact.Mark, "", 1)
			if !strings.Contains(got, redact.Mark) || len(rest) > 64 || strings.Contains(got, secret[len(secret)-3:]) {
				t.Errorf("%.20q as %s: got %q of %q", secret, name, got, text)
			}
		}
	}
}

// dump returns bytes in lines of sixteen, each with its offset, in groups of that many bytes, and optionally with their text.
func dump(s, place, group string, size int, text bool) string {
	var b strings.Builder
	for at := 0; at < len(s); at += 16 {
		line := s[at:min(at+16, len(s))]
		if b.WriteByte('\n'); place != "" {
			fmt.Fprintf(&b, place, at)
		}
		for i := 0; i < len(line); i += size {
			bytes := []any{}
			for _, c := range []byte(line[i:min(i+size, len(line))]) {
				bytes = append(bytes, c)
			}
			fmt.Fprintf(&b, group[:1+(len(group)-1)/size*len(bytes)], bytes...)
		}
		if text {
			shown := strings.Map(func(r rune) rune {
				if r < ' ' || r > '~' {
					return '.'
				}
				return r
			}, line)
			b.WriteString("  " + shown)
		}
	}
	return b.String()
}

// TestBase64 puts each secret into longer texts, at each position, and encodes these as base64. Only the characters at the secret's ends may be left,
// since they depend on other bytes, too.
// Proves: Secrets stay secret
func TestBase64(t *testing.T) {
	t.Parallel()
	for _, secret := range secrets {
		r := redact.New(secret)
		for before := range 7 {
			for after := range 4 {
				text := []byte(strings.Repeat("u", before) + secret + strings.Repeat("z", after))
				for name, e := range map[string]*base64.Encoding{
					"standard": base64.StdEncoding, "for URLs": base64.URLEncoding, "raw": base64.RawStdEncoding, "raw for URLs": base64.RawURLEncoding,
				} {
					code := e.EncodeToString(text)
					for style, escaped := range map[string]string{
						"": code, " in a query": url.QueryEscape(code), " in JSON of PHP": strings.ReplaceAll(code, "/", `\/`),
					} {
						got := r.String(escaped)
						if kept := before*8/6 + after*8/6 + 16; len(got) > kept+len(redact.Mark) || !strings.Contains(got, redact.Mark) {
							t.Errorf("%.20q, %s base64%s between %d and %d bytes: got %q of %q", secret, name, style, before, after, got, escaped)
						}
					}
				}
			}
		}
	}
}

// TestWithin puts each secret in two encodings, one within the other, into the middle of other text: only a few characters at its ends are left,
// which depend on other bytes, too.
// Proves: Secrets stay secret
func TestWithin(t *testing.T) {
	t.Parallel()
	encodings := map[string]func(string) string{
		"base64":         func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 of URLs": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
		"hex":            func(s string) string { return hex.EncodeToString([]byte(s)) },
		"query":          url.QueryEscape,
		"JSON":           func(s string) string { return escapeOf(t, s, true) },
		"JSON of PHP":    func(s string) string { return strings.ReplaceAll(escapeOf(t, s, false), "/", `\/`) },
		"JSON of .NET":   func(s string) string { return jsonOfNET(t, s) },
		"small query":    func(s string) string { return lowerPercent(url.QueryEscape(s)) },
		"form":           func(s string) string { return strings.ReplaceAll(s, " ", "+") },
		"HTML":           html.EscapeString,
		"UTF-16":         utf16,
		"numbers":        func(s string) string { return fmt.Sprint([]byte(s)) },
		"base32":         func(s string) string { return base32.StdEncoding.EncodeToString([]byte(s)) },
	}
	for _, secret := range secrets[1:5] {
		r := redact.New(secret)
		for inner, first := range encodings {
			for outer, then := range encodings {
				if inner == "numbers" || inner == "base32" || outer == "base32" && inner != "" {
					continue // is not promised
				}
				for before := range 4 {
					text := then(first("userpass"[:before] + secret + "&c"))
					got := r.String(text)
					if rest := len(strings.ReplaceAll(got, redact.Mark, "")); !strings.Contains(got, redact.Mark) || rest > 64 {
						t.Errorf("%.20q, %s of %s after %d bytes: got %q of %q", secret, outer, inner, before, got, text)
					}
				}
			}
		}
		for before := range 6 {
			text := encodings["base32"]("userpass"[:before] + secret + "&c")
			if got := r.String(text); !strings.Contains(got, redact.Mark) {
				t.Errorf("%.20q, base32 after %d bytes: got %q", secret, before, got)
			}
		}
	}
}

// TestNoOracle lets somebody who knows most of a secret guess the next character, in each encoding. The redacted text must not show whether a guess
// is right until all of the secret is known.
// Proves: Secrets stay secret
func TestNoOracle(t *testing.T) {
	t.Parallel()
	encodings := map[string]func(string) string{
		"plain":          func(s string) string { return s },
		"hex":            func(s string) string { return hex.EncodeToString([]byte(s)) },
		"capital hex":    func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"base64":         func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 of URLs": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
		"base64 twice": func(s string) string {
			return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(s))))
		},
		"query":   url.QueryEscape,
		"HTML":    html.EscapeString,
		"UTF-16":  utf16,
		"numbers": func(s string) string { return fmt.Sprint([]byte(s)) },
	}
	const signs = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-+/ .%="
	for _, secret := range []string{"hunter2!", "sk_live_51H8mN2eZvKYlo2C0", "00000000", "abababababababababababababababababababab1", strings.Repeat("key-8f3a.", 7)} {
		r := redact.New(secret)
		for name, encode := range encodings {
			same := func(guess string) {
				t.Helper()
				for _, text := range []string{encode(guess), "a b" + encode(guess) + "?"} {
					if got := r.String(text); got != text {
						t.Errorf("%.20q: the guess %q in %s becomes %q", secret, guess, name, got)
					}
				}
			}
			// Base64 leaves some bits at the ends open: a guess with all other bits right is a find.
			undecided := 1
			if name == "base64 twice" && len(secret) >= 16 {
				undecided = 3
			}
			for known := range len(secret) - undecided {
				for _, next := range signs {
					same(secret[:known] + string(next))
					if last := string(next) + secret[len(secret)-known:]; last != secret {
						same(last)
					}
				}
			}
		}
		for _, wrong := range []string{strings.ToUpper(secret), strings.ToUpper(secret[:1]) + secret[1:], secret[:len(secret)-1] + strings.ToUpper(secret[len(secret)-1:])} {
			if got := r.String(wrong); wrong != secret && got != wrong {
				t.Errorf("%.20q: the guess %q becomes %q", secret, wrong, got)
			}
		}
		for _, around := range []string{"", "x", secret[:1], secret[:4], secret[len(secret)-4:]} {
			if got := r.String(around + "|" + secret + "|" + around); got != around+"|"+redact.Mark+"|"+around {
				t.Errorf("%.20q between %q: got %q", secret, around, got)
			}
		}
	}
}

// TestLines has a secret of several lines: each long line is found by itself, but only as a whole.
func TestLines(t *testing.T) {
	t.Parallel()
	key := secrets[5]
	line := strings.Split(key, "\n")[1]
	r := redact.New(key, "short one\nand another\n")
	for text, want := range map[string]string{
		"<" + line + ">":                      "<" + redact.Mark + ">",
		"<" + line[1:] + ">":                  "<" + line[1:] + ">",
		"-----BEGIN PRIVATE KEY-----\n":       "-----BEGIN PRIVATE KEY-----\n",
		strings.ReplaceAll(key, "\n", ""):     redact.Mark,
		strings.ReplaceAll(key, "\n", "\r\n"): redact.Mark,
		"and another":                         "and another",
		"short one\r\nand another":            redact.Mark,
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestDecoded has a secret that is base64, as in Basic authentication: the decoded text is found, too.
func TestDecoded(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		base64.StdEncoding.EncodeToString([]byte("admin:correct horse")), base64.RawURLEncoding.EncodeToString([]byte("admin:correct horse")),
	} {
		r := redact.New(secret)
		for text, want := range map[string]string{
			secret:                              redact.Mark,
			"I am admin:correct horse, really":  "I am " + redact.Mark + ", really",
			"user admin, password correct hors": "user admin, password correct hors",
			"admin%3Acorrect+horse":             redact.Mark,
		} {
			if got := strings.TrimRight(r.String(text), "="); got != want {
				t.Errorf("%q: got %q, want %q", text, got, want)
			}
		}
	}
}

// TestInnocent checks that texts without a secret are not changed, and not even copied.
func TestInnocent(t *testing.T) {
	t.Parallel()
	r := redact.New(secrets...)
	for _, text := range []string{"", "a", "hunter2", "sk_live", "-----BEGIN CERTIFICATE-----", strings.Repeat("the quick brown fox ", 1000)} {
		b := []byte(text)
		if got := r.Bytes(b); string(got) != text || len(b) > 0 && &got[0] != &b[0] {
			t.Errorf("%.40q became %.40q", text, got)
		}
	}
	for _, none := range []*redact.Redactor{nil, redact.New(), redact.New("", "short")} {
		if got := none.String("short is short"); got != "short is short" || !none.Empty() {
			t.Errorf("a redactor of nothing makes %q", got)
		}
	}
}

// TestSeveral has several secrets that contain each other, follow each other and overlap.
func TestSeveral(t *testing.T) {
	t.Parallel()
	r := redact.New("first-secret", "second-secret", "a first-secret that is longer")
	for text, want := range map[string]string{
		"first-secretsecond-secret":                  redact.Mark + redact.Mark,
		"first-secret second-secret":                 redact.Mark + " " + redact.Mark,
		"a first-secret that is longer than that":    redact.Mark + " than that",
		"FIRST-SECRET and first%2Dsecret":            "FIRST-SECRET and " + redact.Mark,
		strings.Repeat("first-secret, ", 3) + "none": strings.Repeat(redact.Mark+", ", 3) + "none",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestLinear checks that texts with many near misses of the secret take about as long as others, so that the time is not quadratic.
func TestLinear(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("a", 60_000) + "b"
	r := redact.New(secret)
	text := []byte(strings.Repeat(strings.Repeat("a", 59_000)+"c", 10))
	if got := r.Bytes(text); &got[0] != &text[0] {
		t.Errorf("%d bytes became %d", len(text), len(got))
	}
	for _, unit := range []string{`"0000: `, `"0000:  `, "00000000 ", "0000  ", `\n0000: 00  `, "00  ", `0"0':`, `"0":`, `\U0000`, `\x{00`} {
		if text := []byte(strings.Repeat(unit, 700_000/len(unit))); &r.Bytes(text)[0] != &text[0] {
			t.Errorf("something was found in many %q", unit)
		}
	}
	if got, want := r.String(strings.Repeat("a", 100_000)+"bc"), strings.Repeat("a", 40_000)+redact.Mark+"c"; got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

// FuzzBytes checks that no form of a secret is left, that the text doesn't get longer, and that nothing but "[secret]" was
// added.
// Proves: Secrets stay secret
func FuzzBytes(f *testing.F) {
	for _, s := range secrets {
		f.Add(s, "see ", " and "+s)
		f.Add(s, s[:len(s)-1], hex.EncodeToString([]byte(s)))
	}
	f.Add("aaaaaaaab", "aaaaaaaaaaaaaaaa", "aaaaaaab")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if !redact.Findable(secret) || strings.Contains(redact.Mark, secret[:1]) || len(secret) > 1000 {
			t.Skip()
		}
		r := redact.New(secret)
		// An escaped secret is in something like quotes: if the text before it ended in half an escape, its meaning would change.
		quoted := strconv.Quote(url.QueryEscape(secret))
		for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret)), quoted} {
			text := before + form + after
			got := r.String(text)
			if strings.Contains(got, form) {
				t.Errorf("%q is left of %q: %q", form, text, got)
			}
			if len(got) > len(text) {
				t.Errorf("%q has become longer: %q", text, got)
			}
			rest := text
			for part := range strings.SplitSeq(got, redact.Mark) {
				_, after, ok := strings.Cut(rest, part)
				if !ok {
					t.Fatalf("%q has become %q: the text around the secrets differs", text, got)
				}
				rest = after
			}
		}
	})
}

func BenchmarkBytes(b *testing.B) {
	r := redact.New(secrets...)
	for _, size := range []int{100, 1 << 10, 64 << 10} {
		text := bytes.Repeat([]byte("The quick brown fox. "), size/20)[:size]
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				r.Bytes(text)
			}
		})
	}
}
