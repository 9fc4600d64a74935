package planner

import (
	"html"
	"regexp"
	"strings"
	"unicode"

	"assay/corpus"
)

// MinAlphanumerics is how many letters and digits a body must have beside its links to say anything
// (methods 3.1, stage 2).
const MinAlphanumerics = 30

// Reasons why a document is no evidence.
const (
	ReasonEmpty    = "empty"     // no body at all
	ReasonLinkPost = "link_post" // the body stands elsewhere
	ReasonDeleted  = "deleted"   // by its author
	ReasonRemoved  = "removed"   // by a moderator or the site
	ReasonShort    = "short"     // fewer than MinAlphanumerics beside links
)

// Usable reports whether a document's body can decide anything, and if not, why. Titles do not
// count: a title without a body is what a search engine shows, not what somebody argued.
func Usable(d corpus.Document) (ok bool, reason string) {
	reason = unusable(d.Text)
	// An import empties what was deleted, and may know of it although the text still stands.
	if reason == "" || reason == ReasonEmpty {
		switch d.BodyStatus {
		case corpus.BodyDeleted:
			reason = ReasonDeleted
		case corpus.BodyRemoved:
			reason = ReasonRemoved
		case corpus.BodyShort:
			reason = ReasonShort
		case corpus.BodyMissing:
			reason = ReasonEmpty
			if d.Outbound != "" {
				reason = ReasonLinkPost
			}
		}
	}
	return reason == "", reason
}

// BodyStatusOf says what a post's or comment's text is worth. The title of a post that its author
// deleted is a placeholder too. Deleted names who took the text away where the source says so apart
// from the text (Reddit's removed_by_category), "" where it does not.
func BodyStatusOf(title, text, deleted string) corpus.BodyStatus {
	reason := unusable(text)
	if deleted != "" {
		reason = removal(deleted)
	} else if t := placeholder(title); t == ReasonDeleted || t == ReasonRemoved {
		if reason != ReasonRemoved {
			reason = t
		}
	}
	switch reason {
	case ReasonEmpty, ReasonLinkPost:
		return corpus.BodyMissing
	case ReasonDeleted:
		return corpus.BodyDeleted
	case ReasonRemoved:
		return corpus.BodyRemoved
	case ReasonShort:
		return corpus.BodyShort
	}
	return corpus.BodyFull
}

// removal tells an author's deletion from everybody else's.
func removal(by string) string {
	switch strings.ToLower(by) {
	case "author", "deleted", "user":
		return ReasonDeleted
	}
	return ReasonRemoved
}

func unusable(text string) string {
	if reason := placeholder(text); reason != "" {
		return reason
	}
	if !says(withoutLinks(text)) {
		return ReasonShort
	}
	return ""
}

// maxPlaceholder is longer than any placeholder with its grounds, escaped twice.
const maxPlaceholder = 400

var markdownMarks = strings.NewReplacer(`\`, "", "*", "", "`", "")

// placeholder recognises what stands in the place of a body, in whatever form it reached us:
// HTML-escaped, once or twice, with Markdown's backslashes and asterisks, spaced or not.
func placeholder(text string) string {
	if len(text) > maxPlaceholder {
		return ""
	}
	text = html.UnescapeString(html.UnescapeString(text))
	text = markdownMarks.Replace(text)
	text = strings.ToLower(corpus.Fold(text))
	if text == "" {
		return ReasonEmpty
	}
	inside, ok := strings.CutPrefix(text, "[")
	if !ok || !strings.HasSuffix(strings.TrimRight(inside, "."), "]") || strings.Count(inside, "]") != 1 {
		return ""
	}
	inside = strings.Trim(inside, "[]. ")
	switch inside {
	case "link post", "linkpost":
		return ReasonLinkPost
	case "deleted", "deleted by user", "deleted by author", "deleted by the user":
		return ReasonDeleted
	case "removed", "removed by moderator", "removed by moderators":
		return ReasonRemoved
	}
	// Reddit appends its grounds: "[ Removed by Reddit in response to a copyright notice. ]"
	if strings.HasPrefix(inside, "removed by reddit") || strings.HasPrefix(inside, "deleted by reddit") {
		return ReasonRemoved
	}
	return ""
}

var (
	markdownLink = regexp.MustCompile(`!?\[([^\[\]]*)\]\(\s*<?[^()\s]*(?:\([^()\s]*\)[^()\s]*)*>?(?:\s+"[^"]*")?\s*\)`)
	bareLink     = regexp.MustCompile(`(?i)\b(?:https?://|ftp://|www\.)[^\s<>()\[\]]+(?:\([^\s<>()\[\]]*\)[^\s<>()\[\]]*)*`)
	reference    = regexp.MustCompile(`&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,10});`)
)

// withoutLinks keeps the words of a link and drops where it leads. Character references are marks,
// not letters.
func withoutLinks(text string) string {
	if strings.Contains(text, "&") {
		text = reference.ReplaceAllString(text, " ")
	}
	if strings.Contains(text, "](") {
		text = markdownLink.ReplaceAllString(text, " $1 ")
	}
	if strings.Contains(text, "://") || strings.Contains(strings.ToLower(text), "www.") {
		text = bareLink.ReplaceAllString(text, " ")
	}
	return text
}

// says reports whether a text has MinAlphanumerics letters and digits.
func says(text string) bool {
	n := 0
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			if n++; n == MinAlphanumerics {
				return true
			}
		}
	}
	return false
}
