package planner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
)

// A thing is what we read of a post or comment. Its author is personal data and is not among it.
type thing struct {
	ID           loose           `json:"id"`
	Name         loose           `json:"name"` // fullname; old archives lack it
	Title        loose           `json:"title"`
	Selftext     loose           `json:"selftext"`
	Text         loose           `json:"text"` // selftext under the name that scripts give it
	SelftextHTML loose           `json:"selftext_html"`
	Body         loose           `json:"body"`
	BodyHTML     loose           `json:"body_html"`
	Subreddit    loose           `json:"subreddit"`
	Permalink    loose           `json:"permalink"`
	URL          loose           `json:"url"`
	Target       loose           `json:"url_overridden_by_dest"`
	IsSelf       loose           `json:"is_self"`
	Post         loose           `json:"link_id"` // of a comment
	Parent       loose           `json:"parent_id"`
	Created      loose           `json:"created_utc"`
	Retrieved    loose           `json:"retrieved_on"`
	RetrievedUTC loose           `json:"retrieved_utc"`
	RemovedBy    loose           `json:"removed_by_category"`
	Crosspost    loose           `json:"crosspost_parent"`
	Parents      json.RawMessage `json:"crosspost_parent_list"`
	Archive      json.RawMessage `json:"_meta"`
	Replies      json.RawMessage `json:"replies"`
}

// loose is a value whose type changed over the years: a string, number or truth value as text,
// nothing for null.
type loose string

// UnmarshalJSON accepts every scalar.
func (l *loose) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*l = loose(s)
	case 'n':
		*l = ""
	case '{', '[':
		return fmt.Errorf("%.40s is no text or number", b)
	default:
		*l = loose(b)
	}
	return nil
}

func parseThing(raw []byte) (t thing, err error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return t, fmt.Errorf("%.40q is no post or comment", raw)
	}
	err = json.Unmarshal(raw, &t)
	return t, err
}

// escaping says whether the texts of a reply are HTML-escaped, as Reddit's are unless a request has
// raw_json=1.
type escaping int

const (
	escapingUnknown escaping = iota
	escaped
	escapedNot
)

// escapeNames are the escapes that Reddit writes, each before what it stands for. Other references
// are Markdown's and belong to the text.
var escapeNames = []string{"&amp;", "&", "&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#34;", `"`, "&#39;", "'", "&#x27;", "'"}

// escapes reads a text once, from left to right, so that &amp;lt; becomes &lt;.
var escapes = strings.NewReplacer(escapeNames...)

// escaping tells by the thing itself: by its HTML, or by a character that an escaped text would not
// hold. Unknown where neither occurs.
func (t thing) escaping() escaping {
	for _, h := range []loose{t.SelftextHTML, t.BodyHTML} {
		switch {
		case strings.HasPrefix(string(h), "&lt;"):
			return escaped
		case strings.HasPrefix(string(h), "<"):
			return escapedNot
		}
	}
	for _, s := range []loose{t.Title, t.Selftext, t.Text, t.Body, t.URL, t.Target} {
		if bare(string(s)) {
			return escapedNot
		}
	}
	return escapingUnknown
}

// bare reports whether a text holds <, > or an & that starts no escape of Reddit's.
func bare(s string) bool {
	if strings.ContainsAny(s, "<>") {
		return true
	}
	for i := strings.IndexByte(s, '&'); i >= 0; i = strings.IndexByte(s, '&') {
		s = s[i:]
		known := false
		for n := 0; n < len(escapeNames); n += 2 {
			known = known || strings.HasPrefix(s, escapeNames[n])
		}
		if !known {
			return true
		}
		s = s[1:]
	}
	return false
}

// unescape undoes Reddit's escaping, which is its default, unless the text is known to have none.
func unescape(s loose, how escaping) string {
	if how == escapedNot {
		return string(s)
	}
	return escapes.Replace(string(s))
}

var base36 = regexp.MustCompile(`^[0-9a-z]{1,13}$`)

// fullname tells what the thing is and its id without prefix. Kind is t1 or t3 where a listing says
// so, else "".
func (t thing) fullname(kind string) (prefix, id string, err error) {
	id, name := strings.ToLower(string(t.ID)), strings.ToLower(string(t.Name))
	for _, s := range []string{name, id} {
		if p, _, ok := strings.Cut(s, "_"); ok && kind == "" && (p == "t1" || p == "t3") {
			kind = p
		}
	}
	switch {
	case kind != "":
	case t.Post != "" || t.Body != "":
		kind = "t1"
	case t.Title != "" || t.Selftext != "":
		kind = "t3"
	default:
		return "", "", errors.New("it is neither a post nor a comment: no title, no body")
	}
	if id == "" {
		id = name
	}
	if id == "" {
		return "", "", errors.New("it has no id")
	}
	id = strings.TrimPrefix(id, kind+"_")
	if !base36.MatchString(id) {
		return "", "", fmt.Errorf("id %.40q is none of Reddit's", id)
	}
	return kind, id, nil
}

// document makes a document of a post or comment. A text that is deleted or removed is left out,
// whatever stood in its place.
func (t thing) document(kind string, how escaping) (corpus.Document, error) {
	kind, id, err := t.fullname(kind)
	if err != nil {
		return corpus.Document{}, err
	}
	where := t.place(kind, id, how)
	d := corpus.Document{
		ID:          corpus.RedditID(kind + "_" + id),
		Kind:        corpus.KindRedditPost,
		Title:       strings.TrimSpace(unescape(t.Title, how)),
		Text:        strings.TrimSpace(unescape(t.text(), how)),
		URL:         where.url(true),
		Source:      where.source(),
		PublishedAt: timeOf(t.Created),
		RetrievedAt: timeOf(t.Retrieved),
	}
	if d.RetrievedAt == "" {
		d.RetrievedAt = timeOf(t.RetrievedUTC)
	}
	if kind == "t1" {
		d.Kind, d.Title, d.Text = corpus.KindRedditComment, "", strings.TrimSpace(unescape(t.Body, how))
		d.Parent = t.parent()
	} else {
		d.Outbound = t.outbound(kind+"_"+id, how)
	}
	deleted, later := t.deleted()
	d.BodyStatus = BodyStatusOf(d.Title, d.Text, deleted)
	if placeholder(d.Text) != "" || d.BodyStatus == corpus.BodyDeleted || d.BodyStatus == corpus.BodyRemoved {
		d.Text = ""
	}
	if placeholder(d.Title) != "" {
		d.Title = ""
	}
	if later {
		// The archive keeps what Reddit shows no more: title, target and the words in the address go too.
		d.Title, d.Outbound, d.URL = "", "", where.url(false)
	}
	return d.Seal(), nil
}

// parent is the id of what a comment answers, "" where that is not told.
func (t thing) parent() string {
	up := strings.ToLower(string(t.Parent))
	if kind, id, _ := strings.Cut(up, "_"); (kind == "t1" || kind == "t3") && base36.MatchString(id) {
		return corpus.RedditID(up)
	}
	return ""
}

func (t thing) text() loose {
	if t.Selftext == "" {
		return t.Text
	}
	return t.Selftext
}

// deleted tells who took the text away, "" if nobody did, and whether the archive still holds what
// was deleted after it had been read.
func (t thing) deleted() (by string, later bool) {
	var archive struct {
		Later     bool  `json:"was_deleted_later"`
		Initially bool  `json:"was_initially_deleted"` // restored since
		Type      loose `json:"removal_type"`
	}
	_ = json.Unmarshal(t.Archive, &archive) // an archive's own remarks; none, or others, tell nothing
	switch {
	case archive.Later && archive.Type != "":
		return string(archive.Type), true
	case archive.Later:
		return "deleted", true
	case archive.Initially:
		return "", false
	}
	return string(t.RemovedBy), false
}

// outbound is where a link post leads. A crosspost leads to the post that it repeats, which holds
// the text.
func (t thing) outbound(fullname string, how escaping) string {
	if strings.HasPrefix(string(t.Crosspost), "t3_") {
		id := strings.ToLower(string(t.Crosspost)[3:])
		var parents []thing
		_ = json.Unmarshal(t.Parents, &parents) // often missing; the id alone makes an address
		if len(parents) > 0 && base36.MatchString(id) {
			return parents[0].place("t3", id, how).url(true)
		}
		if base36.MatchString(id) {
			return place{kind: "t3", id: id}.url(true)
		}
	}
	if t.IsSelf == "true" {
		return ""
	}
	target := unescape(t.Target, how)
	if target == "" {
		target = unescape(t.URL, how)
	}
	if target == "" {
		return ""
	}
	target = corpus.ResolveURL("https://www.reddit.com/", target)
	if own, ok := corpus.RedditFullname(target); ok && own == fullname {
		return "" // a text post, poll or gallery links to itself
	}
	return target
}

// A place is where a post or comment stands on Reddit.
type place struct {
	kind, id  string
	subreddit string // "" where it is not known, or is a person's own page
	post      string // id of a comment's post
	slug      string // words of the title in the address
}

var (
	subredditName = regexp.MustCompile(`^[0-9A-Za-z_.:-]{1,40}$`)
	permalink     = regexp.MustCompile(`^(?:https?://[a-z.]*reddit\.com)?/(r|user|u)/([^/?#]+)/comments/([0-9a-zA-Z]+)/?([^/?#]*)`)
	personal      = regexp.MustCompile(`(?i)^u_`)
)

// place takes the permalink where there is one, in a script's array the address, and makes one up
// otherwise.
func (t thing) place(kind, id string, how escaping) place {
	p := place{kind: kind, id: id, subreddit: string(t.Subreddit), post: strings.ToLower(strings.TrimPrefix(string(t.Post), "t3_"))}
	for _, link := range []string{unescape(t.Permalink, how), unescape(t.URL, how)} {
		m := permalink.FindStringSubmatch(link)
		if m == nil {
			continue
		}
		post := strings.ToLower(m[3])
		if kind == "t3" && post != id || kind == "t1" && p.post != "" && post != p.post {
			continue // it leads elsewhere
		}
		p.slug = m[4]
		if kind == "t1" {
			p.post = post
		}
		if m[1] != "r" {
			p.subreddit = ""
		} else if p.subreddit == "" {
			p.subreddit = m[2]
		}
		break
	}
	if !subredditName.MatchString(p.subreddit) || personal.MatchString(p.subreddit) {
		p.subreddit = "" // a personal page bears its author's name
	}
	return p
}

// placeAt reads the place of a post or comment from an address that names it.
func placeAt(address, fullname string) place {
	p := place{kind: fullname[:2], id: fullname[3:]}
	if m := permalink.FindStringSubmatch(address); m != nil {
		p.post, p.slug = strings.ToLower(m[3]), m[4]
		if m[1] == "r" && subredditName.MatchString(m[2]) && !personal.MatchString(m[2]) {
			p.subreddit = m[2]
		}
	}
	return p
}

// url writes the canonical address; words says whether with those of the title.
func (p place) url(words bool) string {
	b := "https://www.reddit.com/"
	if p.subreddit != "" {
		b += "r/" + p.subreddit + "/"
	}
	slug := p.slug
	if !words {
		slug = ""
	}
	switch {
	case p.kind == "t3" && slug != "":
		b += "comments/" + p.id + "/" + slug + "/"
	case p.kind == "t3":
		b += "comments/" + p.id + "/"
	case p.post == "":
		return "" // a comment's address needs its post
	case slug != "":
		b += "comments/" + p.post + "/" + slug + "/" + p.id + "/"
	default:
		b += "comments/" + p.post + "/_/" + p.id + "/"
	}
	return corpus.CanonicalURL(b)
}

func (p place) source() string {
	if p.subreddit == "" {
		return "reddit.com"
	}
	return "reddit.com/r/" + p.subreddit
}

// timeOf reads seconds since 1970, whatever their type; "" for what is no time of Reddit's.
func timeOf(l loose) string {
	f, err := strconv.ParseFloat(string(l), 64)
	if err != nil || math.IsNaN(f) || f < 1.1e9 || f >= 4.2e9 { // 2004 to 2103
		return ""
	}
	return time.Unix(int64(f), 0).UTC().Format(time.RFC3339)
}
