package redact

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"iter"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	longLine = 32      // bytes of the shortest line that is looked for by itself: a shorter one may not be secret
	minCode  = 16      // bytes of the shortest secret that is also looked for in decoded form, and in two encodings at once
	maxCode  = 4 << 10 // bytes of the longest secret that is looked for in two encodings: a key of 4096 bits is shorter
)

// wholes returns the texts that give a secret away, each of which is looked for as a whole: the secret, its long lines and, because of Basic
// authentication, the text that it decodes to from base64.
func wholes(s string) []string {
	list := []string{s}
	if strings.Contains(s, "\n") {
		for line := range strings.SplitSeq(s, "\n") {
			line = strings.TrimSuffix(line, "\r")
			if len(line) >= longLine && !strings.HasPrefix(line, "-----") { // a line such as "-----BEGIN …" is the same in all keys of a kind
				list = append(list, line)
			}
		}
	}
	if len(s) >= minCode {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if text, err := e.DecodeString(strings.TrimRight(s, "=")); err == nil && printable(string(text)) && Findable(string(text)) {
				list = append(list, string(text))
			}
		}
	}
	return list
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// forms yields a text unchanged, in each encoding, and in some encodings within others. Escapes are decoded in the text that is searched, so here
// they only matter within other encodings.
func forms(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		inner := map[string]bool{s: true}
		for _, form := range append(append(codes(s), escaped(s)...), wide(s)...) {
			inner[form] = true
		}
		for form := range inner {
			if !yield(form) || !yield(strings.ReplaceAll(form, " ", "+")) { // the form that is left after the escapes of a query are decoded
				return
			}
			// Base64 in base64 leaves two bytes at each end open. In a short secret, an attacker could guess these separately.
			if form != s && (len(s) < minCode || len(s) > maxCode) {
				continue
			}
			for _, outer := range codes(form) {
				if !yield(outer) {
					return
				}
			}
		}
		for _, code := range inBase32(s) {
			if !yield(code) || !yield(strings.ToLower(code)) {
				return
			}
		}
	}
}

// inBase32 returns, for each position that s can have in a larger text, the part of the text's base32 that depends on s alone, as codes does for
// base64.
func inBase32(s string) (list []string) {
	for offset := range 5 {
		code := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte("\x00\x00\x00\x00"[:offset] + s))
		list = append(list, code[(offset*8+4)/5:(offset+len(s))*8/5])
	}
	return list
}

// codes returns a text in hexadecimal, and the base64 digits that depend on it alone when it is part of a larger text. There are three variants, one
// for each position modulo three.
func codes(s string) []string {
	digits := hex.EncodeToString([]byte(s))
	list := []string{digits, strings.ToUpper(digits)}
	for offset := range 3 {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			code := e.EncodeToString([]byte("\x00\x00"[:offset] + s))
			list = append(list, code[(offset*8+5)/6:(offset+len(s))*8/6])
		}
	}
	return list
}

// escaped returns a text with the escapes of URLs, JSON and HTML. Programs escape different characters; these are the usual sets.
func escaped(s string) []string {
	list := []string{
		strings.ReplaceAll(s, " ", "+"), strings.ReplaceAll(s, "+", " "), // some programs read and write queries in this way
		html.EscapeString(s), htmlOfOthers.Replace(s), htmlByNumber.Replace(s),
	}
	for _, plain := range []string{"-_.~", "-_.", "-_.*", "-_.~!'()*", "-_.~/", "-_.~$&+:=@", "-_.~!'()*;/?:@&=+$,#"} {
		for _, format := range []string{"%%%02X", "%%%02x"} {
			text := percentEscaped(s, plain, format)
			list = append(list, text, strings.ReplaceAll(text, "%20", "+"))
		}
	}
	for _, forHTML := range []bool{true, false} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(forHTML)
		_ = e.Encode(s) // can't fail: it writes a string to memory
		text := strings.TrimSuffix(b.String(), "\n")
		text = text[1 : len(text)-1]
		for _, text := range []string{text, asciiOnly(text), jsonOfNET.Replace(text)} {
			list = append(list, text, strings.ReplaceAll(text, "/", `\/`))
		}
	}
	return list
}

var (
	htmlOfOthers = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#039;")
	htmlByNumber = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;")
	jsonOfNET    = strings.NewReplacer("+", `\u002B`, "'", `\u0027`, "`", `\u0060`, `\"`, `\u0022`, `\u003c`, `\u003C`, `\u003e`, `\u003E`)
)

// percentEscaped returns a text in which all bytes but letters, digits and the characters in plain are written in a format.
func percentEscaped(s, plain, format string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if isWord[c] && c < utf8.RuneSelf && c != '_' || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, format, c)
		}
	}
	return b.String()
}

// asciiOnly returns a text with \u escapes in place of characters beyond ASCII.
func asciiOnly(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// wide returns a text in UTF-16, without the zero byte at its beginning or end.
func wide(s string) []string {
	if !utf8.ValidString(s) {
		return nil
	}
	var big []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		big = append(big, byte(unit>>8), byte(unit))
	}
	little := make([]byte, len(big))
	for i, c := range big {
		little[i^1] = c
	}
	return []string{string(bytes.TrimPrefix(big, []byte{0})), string(bytes.TrimSuffix(little, []byte{0}))}
}
