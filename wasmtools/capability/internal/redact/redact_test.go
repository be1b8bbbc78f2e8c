package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools/capability/internal/redact"
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

// escapeOf returns s as it stands in a string of JSON, as Go writes it.
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

// TestForms has each secret in each encoding, in the middle of other text: it is replaced, and nothing else is.
func TestForms(t *testing.T) {
	t.Parallel()
	for _, secret := range secrets {
		r := redact.New(secret)
		binary := strings.HasPrefix(secret, "\xff")
		forms := map[string]string{
			"plain":        secret,
			"capitals":     strings.ToUpper(secret),
			"hex":          hex.EncodeToString([]byte(secret)),
			"capital hex":  strings.ToUpper(hex.EncodeToString([]byte(secret))),
			"query":        url.QueryEscape(secret),
			"path":         url.PathEscape(secret),
			"small query":  lowerPercent(url.QueryEscape(secret)),
			"HTML":         html.EscapeString(secret),
			"HTML by name": strings.ReplaceAll(html.EscapeString(secret), "&#34;", "&quot;"),
			"UTF-16":       strings.TrimSuffix(utf16(secret), "\x00"), // the last half is no part of the secret
		}
		if binary {
			delete(forms, "UTF-16") // not what a program would make of bytes
			delete(forms, "capitals")
		} else {
			forms["JSON"] = escapeOf(t, secret, false)
			forms["JSON of Go"] = escapeOf(t, secret, true)
			forms["JSON of PHP"] = strings.ReplaceAll(escapeOf(t, secret, false), "/", `\/`)
			forms["JSON in JSON"] = escapeOf(t, escapeOf(t, secret, false), false)
		}
		for name, form := range forms {
			for _, around := range [][2]string{{"", ""}, {"see ", "."}, {`{"authorization":["Bearer `, `"]}`}} {
				got := string(r.Bytes([]byte(around[0] + form + around[1])))
				if want := around[0] + redact.Mark + around[1]; got != want {
					t.Errorf("%.20q as %s: got %q, want %q", secret, name, got, want)
				}
			}
		}
	}
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

// TestBase64 has each secret in the base64 of longer texts, at each place: all that is left are the characters at its ends that
// depend on other bytes, too.
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

// TestPieces cuts a secret: whatever piece of one and a half widths is left is found.
func TestPieces(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ length, piece int }{{8, 8}, {12, 11}, {15, 11}, {16, 15}, {31, 17}, {32, 23}, {3000, 23}} {
		secret := make([]byte, c.length)
		for i := range secret {
			secret[i] = "0123456789ghijklmnopqrstuvwxyz"[random.IntN(30)]
		}
		r := redact.New(string(secret))
		for begin := 0; begin+c.piece <= c.length; begin++ {
			for _, end := range []int{begin + c.piece, min(begin+c.piece+5, c.length)} {
				text := "<<" + string(secret[begin:end]) + ">>"
				if got := r.String(text); got != "<<"+redact.Mark+">>" {
					t.Fatalf("bytes %d to %d of %d: got %q", begin, end, c.length, got)
				}
			}
		}
	}
}

// TestInnocent has texts that hold no secret come back as they are, not even copied.
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

// TestSeveral has several secrets, one of them within another, beside and over each other.
func TestSeveral(t *testing.T) {
	t.Parallel()
	r := redact.New("first-secret", "second-secret", "a first-secret that is longer")
	for text, want := range map[string]string{
		"first-secretsecond-secret":                  redact.Mark,
		"first-secret second-secret":                 redact.Mark + " " + redact.Mark,
		"a first-secret that is longer than that":    redact.Mark + " than that",
		"FIRST-SECRET and first%2Dsecret":            redact.Mark + " and " + redact.Mark,
		strings.Repeat("first-secret, ", 3) + "none": strings.Repeat(redact.Mark+", ", 3) + "none",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestBlocks has finds of several widths in texts of all lengths, so that they lie across the blocks in which texts are read.
func TestBlocks(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	word := func(length int) string {
		b := make([]byte, length)
		for i := range b {
			b[i] = "0123456789ghijklmnopqrstuvwxyz"[random.IntN(30)]
		}
		return string(b)
	}
	short, middle, long := word(9), word(20), word(700)
	long += short + word(300)
	r := redact.New(short, middle, long)
	for before := range 600 {
		filler := strings.Repeat("ABC. ", 200)[:before]
		text := filler + long + "\n<" + short + ">" + filler + url.QueryEscape(middle+"%") + filler
		want := filler + redact.Mark + "\n<" + redact.Mark + ">" + filler + redact.Mark + "%25" + filler
		if got := r.String(text); got != want {
			t.Fatalf("after %d bytes: got %q, want %q", before, got, want)
		}
	}
}

// TestLinear has texts that are all but the secret, in any order of its pieces, take about as long as others. The work is counted by
// how much longer a text may be than another in the same time, so generously that only a square shows.
func TestLinear(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("a", 60_000) + "b"
	r := redact.New(secret)
	text := bytes.Repeat([]byte(strings.Repeat("a", 59_000)+"c"), 10)
	if got, want := string(r.Bytes(text)), strings.Repeat(redact.Mark+"c", 10); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

// FuzzBytes holds that no form of a secret is left, that the text doesn't get longer, and that what is left is of the text.
func FuzzBytes(f *testing.F) {
	for _, s := range secrets {
		f.Add(s, "see ", " and "+s)
		f.Add(s, s[:len(s)-1], hex.EncodeToString([]byte(s)))
	}
	f.Add("aaaaaaaab", "aaaaaaaaaaaaaaaa", "aaaaaaab")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if !redact.Findable(secret) || strings.Contains(redact.Mark, strings.ToLower(secret[:1])) || len(secret) > 1000 {
			t.Skip()
		}
		r := redact.New(secret)
		// An escaped secret stands in quotes, or the like: a text before it that ends in half an escape would have it read otherwise.
		quoted := strconv.Quote(url.QueryEscape(secret))
		for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret)), quoted} {
			text := before + form + after
			got := r.String(text)
			if strings.Contains(strings.ToLower(got), strings.ToLower(form)) {
				t.Errorf("%q is left of %q: %q", form, text, got)
			}
			if len(got) > len(text) {
				t.Errorf("%q has become longer: %q", text, got)
			}
			rest := text
			for part := range strings.SplitSeq(got, redact.Mark) {
				_, after, ok := strings.Cut(rest, part)
				if !ok {
					t.Fatalf("%q has become %q, with another text", text, got)
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
