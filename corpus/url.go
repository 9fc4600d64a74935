package corpus

import (
	"net"
	"net/url"
	"regexp"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/publicsuffix"
)

// CanonicalURL writes an address as a browser would request it (WHATWG), without fragment. It is the
// key under which responses are stored. An address that does not parse is returned trimmed.
func CanonicalURL(raw string) string {
	if plainURL(raw) {
		return raw
	}
	return parsedURL(raw)
}

// parsedURL is CanonicalURL by the parser.
func parsedURL(raw string) string {
	u, err := whatwg.Parse(strings.TrimSpace(raw))
	if err != nil {
		return strings.TrimSpace(raw)
	}
	u.SetHash("")
	return strings.TrimSuffix(u.Href(true), "#")
}

// plainURL reports addresses that are canonical at a glance, as most are that were canonical before:
// a build asks for the form of each address about ten times, and a parse takes 8 microseconds. What it
// is not sure of it leaves to the parser.
func plainURL(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(s, "http://"); !ok {
			return false
		}
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 || !plainHost(rest[:slash]) {
		return false
	}
	path, query, has := strings.Cut(rest[slash:], "?")
	if has && query == "" {
		return false
	}
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '.' && path[i-1] == '/': // it may be a step up; path[0] is a slash
			return false
		case !plainByte(c):
			return false
		}
	}
	for i := 0; i < len(query); i++ {
		if c := query[i]; !plainByte(c) && c != '?' && c != '%' {
			return false
		}
	}
	return true
}

// plainHost reports names of at least two labels in lower-case ASCII; a last label without a digit
// makes sure that it is no address in numbers.
func plainHost(host string) bool {
	dots, label := 0, 0
	for i := 0; i < len(host); i++ {
		switch c := host[i]; {
		case c == '.' && label > 0:
			dots, label = dots+1, 0
			continue
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '-' && label > 0 && host[i-1] != '-': // xn-- is the parser's
		default:
			return false
		}
		label++
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return dots > 0 && label > 0 && len(host) < 64 && !strings.ContainsAny(last, "0123456789-")
}

// plainByte reports characters that stand for themselves in paths and queries.
func plainByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte("-_.~/,;:=&+!*()@$", c) >= 0
}

// ResolveURL resolves ref against base and canonicalises the result; "" if it does not parse.
func ResolveURL(base, ref string) string {
	u, err := whatwg.ParseRef(base, strings.TrimSpace(ref))
	if err != nil {
		return ""
	}
	return CanonicalURL(u.Href(true))
}

// IdentityURL is CleanURL in the one form of a page that is shown in several: without the difference between
// http and https, under the host whose page it is, and not in AMP form. It makes ids and is never requested.
func IdentityURL(raw string) string {
	clean := CleanURL(raw)
	scheme, host, path, query := parted(clean)
	switch {
	case scheme == "":
		return clean
	case path+query == "":
		return "https://" + host
	}
	if host == "youtu.be" && len(path) > 1 && (query == "" || !strings.Contains(query, "v=")) {
		host, path, query = "www.youtube.com", "/watch", "?v="+path[1:]+strings.Replace(query, "?", "&", 1)
	}
	return "https://" + homeHost(host) + plainPath(path) + query
}

// PlainURL is CleanURL of a page itself where an address shows its AMP or mobile form, whose markup is another.
// A listing's lead is fetched by it, so that what comes of it does not hang on which lead was there first.
func PlainURL(raw string) string {
	clean := CleanURL(raw)
	scheme, host, path, query := parted(clean)
	if scheme == "" {
		return clean
	}
	if first, _, _ := strings.Cut(host, "."); shapes[first] {
		host = homeHost(host)
	}
	return scheme + "://" + host + plainPath(path) + query
}

// parted takes an address of the web apart; the scheme of any other is "".
func parted(clean string) (scheme, host, path, query string) {
	scheme, rest, ok := strings.Cut(clean, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return "", "", "", ""
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		return scheme, rest, "", ""
	}
	host, path = rest[:end], rest[end:]
	if i := strings.IndexByte(path, '?'); i >= 0 {
		path, query = path[:i], path[i:]
	}
	return scheme, host, path, query
}

// CleanURL is CanonicalURL without what tells how the page was reached: a redirect that holds the address of
// the page, see wrappers, parameters of campaigns and shares, see parameters, and an empty query. It is what
// a lead is fetched by.
func CleanURL(raw string) string {
	canonical := CanonicalURL(raw)
	for range maxWrapped {
		to := unwrapped(canonical)
		if to == "" {
			break
		}
		canonical = to
	}
	base, query, has := strings.Cut(canonical, "?")
	if !has || !isWeb(canonical) {
		return canonical
	}
	domain := RegistrableDomain(Host(canonical))
	var kept []string
	for _, p := range strings.Split(query, "&") {
		plain, err := url.QueryUnescape(p)
		if err != nil {
			plain = p
		}
		if name, value, _ := strings.Cut(strings.ToLower(plain), "="); !drops(domain, name, value) {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return base
	}
	return base + "?" + strings.Join(kept, "&")
}

// maxWrapped bounds how many redirects hold one another.
const maxWrapped = 4

// Host returns the host of an address in lower case without port, "" if there is none.
func Host(raw string) string {
	if plainURL(raw) {
		_, rest, _ := strings.Cut(raw, "://")
		host, _, _ := strings.Cut(rest, "/")
		return host
	}
	return parsedHost(raw)
}

func parsedHost(raw string) string {
	u, err := whatwg.Parse(strings.TrimSpace(raw))
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// RegistrableDomain returns the domain that somebody registered (example.co.uk), or the host
// itself where there is none, as for addresses and single labels.
func RegistrableDomain(host string) string {
	if net.ParseIP(strings.Trim(host, "[]")) != nil {
		return host
	}
	if d, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return d
	}
	return host
}

var (
	redditPost    = regexp.MustCompile(`^/(?:(?:r|user|u)/[^/]+/)?comments/([a-z0-9]{2,12})(?:/|$)`)
	redditComment = regexp.MustCompile(`^/(?:(?:r|user|u)/[^/]+/)?comments/[a-z0-9]{2,12}/[^/]*/([a-z0-9]{2,12})(?:/|$)`)
	redditGallery = regexp.MustCompile(`^/gallery/([a-z0-9]{2,12})(?:/|$)`)
	redditShort   = regexp.MustCompile(`^/([a-z0-9]{2,12})/?$`)
)

// RedditFullname returns the fullname of the post (t3_...) or comment (t1_...) that an address names.
// User, subreddit and wiki pages name none.
func RedditFullname(raw string) (string, bool) {
	u, err := whatwg.Parse(strings.TrimSpace(raw))
	if err != nil {
		return "", false
	}
	host, path := u.Hostname(), strings.ToLower(u.Pathname())
	if host == "redd.it" {
		if m := redditShort.FindStringSubmatch(path); m != nil {
			return "t3_" + m[1], true
		}
		return "", false
	}
	if RegistrableDomain(host) != "reddit.com" {
		return "", false
	}
	if m := redditComment.FindStringSubmatch(path); m != nil {
		return "t1_" + m[1], true
	}
	for _, re := range []*regexp.Regexp{redditPost, redditGallery} {
		if m := re.FindStringSubmatch(path); m != nil {
			return "t3_" + m[1], true
		}
	}
	return "", false
}
