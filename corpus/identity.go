package corpus

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// ClaimID names one wording of one statement: c_ and 16 hex digits over the text, the speaker and
// the identity address of the review, or the stated date where there is no review.
func ClaimID(text, speaker, reviewURL, date string) string {
	last := date
	if reviewURL != "" {
		last = IdentityURL(reviewURL)
	}
	return "c_" + digest16(Wording(text), strings.ToLower(cases.Fold().String(norm.NFC.String(speaker))), last)
}

// PairID names a (claim, document) pair: p_ and 16 hex digits over the two ids.
func PairID(claimID, documentID string) string { return "p_" + digest16(claimID, documentID) }

// DocumentID names a document by its address: d_ and 16 hex digits over the identity address.
// Posts and imported rows have ids of their own, see RedditID and RowID.
func DocumentID(url string) string { return "d_" + digest16(IdentityURL(url)) }

// RowID names a row of an imported table that has no address of its own, e.g. raguard:17.
func RowID(table string, number int) string { return table + ":" + strconv.Itoa(number) }

// RedditID names a post or comment by its fullname without prefix check, e.g. t3_18r2fkv.
func RedditID(fullname string) string { return "reddit:" + strings.ToLower(fullname) }

// digest16 hashes length-prefixed parts, so that moving a character between parts changes the id.
func digest16(parts ...string) string {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Wording is a claim's text as its id reads it: NFC, without invisible characters. Two spellings of one
// wording share an id, so whatever hangs on the id must see this form.
func Wording(text string) string { return norm.NFC.String(visible(text)) }

// visible drops format characters and other default-ignorable code points, which a reader cannot see.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return r
	}, s)
}

// Fold returns text in the form in which wordings are compared: NFC, no invisible characters,
// white space folded, curly quotes straightened.
func Fold(s string) string {
	s = norm.NFC.String(visible(s))
	s = strings.Map(func(r rune) rune {
		switch r {
		case '‘', '’', '‚', '‛', '′':
			return '\''
		case '“', '”', '„', '‟', '″', '«', '»':
			return '"'
		}
		return r
	}, s)
	return Space(s)
}

// NameSlug is a name as recipes and sites write it in addresses: in lower case, without diacritics, and with one hyphen for
// whatever stands between its letters and digits.
func NameSlug(name string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(strings.ToLower(Fold(name))) {
		switch {
		case unicode.Is(unicode.Mn, r), r == '\'':
		case unicode.IsLetter(r), unicode.IsDigit(r):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.TrimSuffix(b.String(), "-")
}

// Space folds every run of white space to one blank and trims the ends.
func Space(s string) string { return strings.Join(strings.Fields(s), " ") }
