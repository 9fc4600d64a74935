package scrapers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
)

// wordPressPosts is the list of all posts. What it says of each is enough to find the page.
const wordPressPosts = "/wp-json/wp/v2/posts?per_page=100&page=1&orderby=modified&_fields=id,link,date,date_gmt,modified_gmt,title"

// WordPressPosts returns the address of the first page of a site's posts, newest change first, as the
// REST interface of WordPress lists them; only those changed after a time, if one is given. A page holds
// 100 posts, which is the most that WordPress gives.
func WordPressPosts(base string, after time.Time) string {
	address := strings.TrimRight(base, "/") + wordPressPosts
	if !after.IsZero() {
		address += "&modified_after=" + url.QueryEscape(after.UTC().Format("2006-01-02T15:04:05"))
	}
	return corpus.CanonicalURL(address)
}

// readJSONFeed reads a page of posts, whose X-WP-TotalPages tells how many pages there are, or a feed
// in JSON.
func readJSONFeed(address string, header http.Header, body string) (Feed, error) {
	fail := func(has string) (Feed, error) {
		return Feed{}, &MarkupError{Doing: "discover", URL: address, Want: wantFeed, Has: has}
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	var reply any
	if err := d.Decode(&reply); err != nil {
		return fail("JSON that breaks off: " + err.Error())
	}
	out := Feed{Kind: FeedPosts, Entries: []Entry{}}
	read := postEntry
	list, ok := reply.([]any)
	if !ok {
		n, _ := reply.(node)
		if code := scalar(n["code"]); code != "" {
			return fail(fmt.Sprintf("the error %s: %s", code, scalar(n["message"])))
		}
		if list, ok = n["items"].([]any); !ok {
			return fail("a JSON object without items")
		}
		out.Kind, read = FeedJSON, itemEntry
		head := n
		if feed, ok := n["feed"].(node); ok {
			head = feed
		}
		out.Title, out.Next = plain(scalar(head["title"])), corpus.ResolveURL(address, scalar(n["next_url"]))
	}
	for i, item := range list {
		n, _ := item.(node)
		entry, notes := read(address, n)
		for _, note := range notes {
			out.Notes = append(out.Notes, fmt.Sprintf("entry %d: %s", i+1, note))
		}
		if entry.URL == "" {
			out.Notes = append(out.Notes, fmt.Sprintf("entry %d (%q) leads nowhere", i+1, entry.Title))
			continue
		}
		out.Entries = append(out.Entries, entry)
	}
	if out.Kind == FeedPosts {
		out.Next = nextPosts(address, header.Get("X-WP-TotalPages"), len(list))
	}
	return out, nil
}

// itemEntry reads an item of a JSON feed, or of RSS that was turned into JSON.
func itemEntry(address string, item node) (e Entry, notes []string) {
	first := func(names ...string) Stamp {
		for _, name := range names {
			if printed := scalar(item[name]); printed != "" {
				date, err := corpus.ReadDate(printed)
				if err != nil {
					notes = append(notes, err.Error())
				}
				return Stamp{Printed: printed, Date: date}
			}
		}
		return Stamp{}
	}
	e.ID, e.Title = scalar(get(item, "id", "guid")), plain(scalar(item["title"]))
	e.URL, e.Found = leadsTo(address, scalar(get(item, "url", "link", "external_url")))
	e.Published, e.Modified = first("date_published", "pubDate"), first("date_modified")
	return e, notes
}

// postEntry reads what a list says of one post.
func postEntry(address string, post node) (e Entry, notes []string) {
	e.ID = scalar(post["id"])
	if title, ok := post["title"].(node); ok {
		e.Title = plain(scalar(title["rendered"]))
	}
	e.URL, e.Found = leadsTo(address, scalar(post["link"]))
	stamp := func(gmt, local string) Stamp {
		printed, form := scalar(post[gmt]), corpus.DateForm{Zone: "UTC"}
		if printed == "" || strings.HasPrefix(printed, "0000") { // a draft has no time of its own
			printed, form = scalar(post[local]), corpus.DateForm{} // in the site's zone, which is not told
		}
		if printed == "" {
			return Stamp{}
		}
		date, err := form.Read(printed)
		if err != nil {
			notes = append(notes, err.Error())
		}
		return Stamp{Printed: printed, Date: date}
	}
	e.Published, e.Modified = stamp("date_gmt", "date"), stamp("modified_gmt", "modified")
	return e, notes
}

// nextPosts returns the next page of a list of posts, "" after the last one. A server that does not say
// how many pages there are is asked on as long as its pages are full, and answers 400 past the end.
func nextPosts(address, pages string, posts int) string {
	u, err := url.Parse(address)
	if err != nil || posts == 0 {
		return ""
	}
	q := u.Query()
	page := max(1, number(q.Get("page")))
	if last := number(pages); pages != "" && page >= last {
		return ""
	}
	if full := number(q.Get("per_page")); pages == "" && posts < max(full, 10) { // 10 is the default
		return ""
	}
	q.Set("page", strconv.Itoa(page+1))
	u.RawQuery = q.Encode()
	return corpus.CanonicalURL(u.String())
}

// number reads a few digits, 0 for what is none.
func number(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// withoutRemarks drops blanks and comment lines before JSON; viewers put these there when they save it.
func withoutRemarks(s string) string {
	for {
		s = strings.TrimLeft(s, " \t\r\n\ufeff")
		if !strings.HasPrefix(s, "//") {
			return s
		}
		_, s, _ = strings.Cut(s, "\n")
	}
}
