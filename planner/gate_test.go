package planner

import (
	"testing"

	"assay/corpus"
)

func TestUsable(t *testing.T) {
	long := "The harbor board voted to raise the tolls in March."
	for _, c := range []struct {
		name, text string
		status     corpus.BodyStatus
		reason     string
	}{
		{"text", long, corpus.BodyFull, ""},
		{"text of unknown status", long, "", ""},
		{"a teaser", long, corpus.BodyPartial, ""},
		{"link post", "[Link Post]", "", ReasonLinkPost},
		{"link post, small", " [link post]\n", "", ReasonLinkPost},
		{"deleted", "[deleted]", "", ReasonDeleted},
		{"deleted, bold", "**[deleted]**", "", ReasonDeleted},
		{"deleted, escaped brackets", `\[deleted\]`, "", ReasonDeleted},
		{"deleted by user", "[deleted by user]", "", ReasonDeleted},
		{"removed", "[removed]", "", ReasonRemoved},
		{"removed by the site", "[removed by reddit]", "", ReasonRemoved},
		{"removed by the site, spaced", "[ Removed by Reddit ]", "", ReasonRemoved},
		{"removed by the site, with grounds", "[ Removed by Reddit in response to a copyright notice. ]", "", ReasonRemoved},
		{"numeric references", "&#91;removed&#93;", "", ReasonRemoved},
		{"named references", "&lbrack;deleted&rbrack;", "", ReasonDeleted},
		{"references escaped again", "&amp;#91; Removed by Reddit &amp;#93;", "", ReasonRemoved},
		{"hard blanks", "[\u00a0Removed by\u00a0Reddit\u00a0]", "", ReasonRemoved},
		{"invisible characters", "\u200b[deleted]\u200b", "", ReasonDeleted},
		{"empty", "", "", ReasonEmpty},
		{"blank", " \n\u00a0", "", ReasonEmpty},
		{"only an invisible character", "\u200b", "", ReasonEmpty},
		{"30 letters", "abcdefghijklmnopqrstuvwxyzabcd", "", ""},
		{"29 letters", "abcdefghijklmnopqrstuvwxyzabc", "", ReasonShort},
		{"29 letters and marks", "abcdefghijklmnopqrstuvwxyzabc!!!???...", "", ReasonShort},
		{"letters of another script", "Повышение портовых сборов в марте", "", ReasonShort},
		{"longer in another script", "Повышение портовых сборов в марте и апреле", "", ""},
		{"an address", "https://news.example.org/2019/03/harbor-board-raises-tolls-by-twelve-percent", "", ReasonShort},
		{"an address without scheme", "www.example.org/2019/03/harbor-board-raises-tolls-by-twelve-percent", "", ReasonShort},
		{"a link whose words are its address", "[https://news.example.org/harbor-board-raises-tolls](https://news.example.org/harbor-board-raises-tolls)", "", ReasonShort},
		{"a link to a name in brackets", "[map](https://maps.example.org/Harbor_(old_town)_and_everything_else_there)", "", ReasonShort},
		{"a link with words", "[The harbor board voted to raise the tolls](https://news.example.org/x)", "", ""},
		{"references are no letters", "&#x200B;&#x200B;&#x200B;&#x200B;&#x200B;&#x200B; ok", "", ReasonShort},
		{"a word in brackets is text", "[deleted] was what the board did to the minutes of March", "", ""},
		{"two remarks in brackets", "[edited for length] the board raised tolls [removed a name]", "", ""},
		{"emptied by import", "", corpus.BodyDeleted, ReasonDeleted},
		{"a title alone", "", corpus.BodyMissing, ReasonEmpty},
		{"text that should be gone", long, corpus.BodyDeleted, ReasonDeleted},
		{"text that a moderator took", long, corpus.BodyRemoved, ReasonRemoved},
	} {
		ok, reason := Usable(corpus.Document{Title: "A long title that says a lot about harbor tolls", Text: c.text, BodyStatus: c.status})
		if reason != c.reason || ok != (c.reason == "") {
			t.Errorf("%s: Usable(%q) = %v, %q, want reason %q", c.name, c.text, ok, reason, c.reason)
		}
	}
}

func TestUsableLinkPost(t *testing.T) {
	d := corpus.Document{Title: "Tolls", Outbound: "https://news.example.org/tolls", BodyStatus: corpus.BodyMissing}
	if ok, reason := Usable(d); ok || reason != ReasonLinkPost {
		t.Errorf("Usable = %v, %q, want %q", ok, reason, ReasonLinkPost)
	}
}

func TestBodyStatusOf(t *testing.T) {
	long := "The harbor board voted to raise the tolls in March."
	for _, c := range []struct {
		name, title, text, deleted string
		want                       corpus.BodyStatus
	}{
		{"full", "Tolls", long, "", corpus.BodyFull},
		{"no body", "Tolls", "", "", corpus.BodyMissing},
		{"placeholder of a link post", "Tolls", "[Link Post]", "", corpus.BodyMissing},
		{"short", "Tolls", "Yes, in March.", "", corpus.BodyShort},
		{"deleted", "Tolls", "[deleted]", "", corpus.BodyDeleted},
		{"removed", "Tolls", "[removed]", "", corpus.BodyRemoved},
		{"deleted title", "[deleted by user]", "", "", corpus.BodyDeleted},
		{"deleted title, removed text", "[deleted by user]", "[removed]", "", corpus.BodyRemoved},
		{"deleted title, text still there", "[deleted by user]", long, "", corpus.BodyDeleted},
		{"removed title", "[ Removed by Reddit ]", "", "", corpus.BodyRemoved},
		{"deleted later", "Tolls", long, "deleted", corpus.BodyDeleted},
		{"taken by its author", "Tolls", long, "author", corpus.BodyDeleted},
		{"taken by a moderator", "Tolls", long, "moderator", corpus.BodyRemoved},
		{"taken for copyright", "Tolls", "", "copyright_takedown", corpus.BodyRemoved},
	} {
		if got := BodyStatusOf(c.title, c.text, c.deleted); got != c.want {
			t.Errorf("%s: BodyStatusOf(%q, %q, %q) = %q, want %q", c.name, c.title, c.text, c.deleted, got, c.want)
		}
	}
}
