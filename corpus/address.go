package corpus

import (
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"regexp"
	"strings"
)

// IdentityVersion counts the changes of the rules below by which an address could get another identity.
// Stages that put ids out carry it in their part of the recipe, so that a change makes ids anew.
const IdentityVersion = 2

// A parameter is a query parameter that says how a reader came to a page or how the page is to be shown,
// never which page it is.
type parameter struct {
	names   string         // separated by blanks; a star at the end stands for anything
	domains string         // registrable domains where it is one; "" is everywhere
	values  *regexp.Regexp // nil is any
	why     string
}

var parameters = []parameter{
	{"utm_*", "", nil, "campaign tagging of Google Analytics, which every sender of links has taken over"},
	{"gclid gclsrc dclid gbraid wbraid gad_source gad_campaignid srsltid _ga _gl", "", nil, "click ids of Google's advertising and Analytics"},
	{"fbclid fb_action_ids fb_action_types fb_ref fb_source mibextid sfnsn", "", nil, "click and share ids of Facebook"},
	{"msclkid yclid ysclid twclid ttclid li_fat_id epik rdt_cid sccid", "", nil, "click ids of Microsoft, Yandex, Twitter, TikTok, LinkedIn, Pinterest, Reddit and Snapchat"},
	{"igshid igsh share_id rdt", "", nil, "share ids of Instagram and Reddit"},
	{"mc_cid mc_eid _hsenc _hsmi hsctatracking mkt_tok vero_id oly_enc_id oly_anon_id", "", nil, "recipients of newsletters: Mailchimp, HubSpot, Marketo, Vero, Omeda"},
	{"ref_src ref_url __twitter_impression", "", nil, "the page that embeds a tweet, and the app that opened the link"},
	{"cmpid ns_campaign ns_mchannel ns_source ns_linkname ns_fee at_medium at_campaign at_custom* at_bbc* at_link* at_ptr* at_format at_campaign_type", "", nil, "campaigns of Comscore and AT Internet, as the BBC and France's press use them"},
	{"pk_* mtm_* matomo_* piwik_*", "", nil, "campaigns of Matomo"},
	{"guccounter guce_referrer guce_referrer_sig", "", nil, "Yahoo's consent page puts them on the way back"},
	{"wt.mc_id wt_mc wt_zmc xtor _openstat icid ncid s_cid sc_cid trk sr_share", "", nil, "campaigns of Webtrends, AT Internet, Openstat and Adobe"},
	{"ref source", "", regexp.MustCompile(`^(rss|feed|share|twitter|facebook|fb|email|newsletter|homepage|hp|nav|social|ios|android|amp)$`), "a name that may be a page's own, with a value that names a feed or a network"},
	{"amp", "", regexp.MustCompile(`^(|1|true|yes|on)$`), "asks for the AMP form of a page"},
	{"outputtype output format", "", regexp.MustCompile(`^amp$`), "asks for the AMP form of a page"},
	{"amp_js_v amp_gsa amp_r amp_ct amp_tf usqp __amp_source_origin", "", nil, "what AMP caches and viewers add"},
	{"smid smtyp", "nytimes.com", nil, "the share button of the New York Times"},
	{"cmp", "theguardian.com", nil, "the share button of the Guardian"},
	{"ito", "dailymail.co.uk", nil, "the share button of the Daily Mail"},
	{"ocid", "bbc.com bbc.co.uk msn.com", nil, "campaigns of the BBC and of MSN"},
	{"feature si pp", "youtube.com youtu.be", nil, "how a video was shared and searched"},
	{"s t", "twitter.com x.com", nil, "the device that shared a post, and who shared it"},
	{"__tn__ __cft__* __xts__* refsrc paipv eav", "facebook.com", nil, "where on Facebook the link stood"},
}

// drops reports whether a parameter of a page of a domain is one of parameters. Name and value are in lower
// case; an address that was copied out of HTML has amp; before its names.
func drops(domain, name, value string) bool {
	name = strings.TrimPrefix(name, "amp;")
	if name == "" {
		return true
	}
	for _, p := range parameters {
		if p.domains != "" && !containsWord(p.domains, domain) || p.values != nil && !p.values.MatchString(value) {
			continue
		}
		for names := p.names; names != ""; {
			var n string
			n, names, _ = strings.Cut(names, " ")
			if stem, ok := strings.CutSuffix(n, "*"); ok && strings.HasPrefix(name, stem) || n == name {
				return true
			}
		}
	}
	return false
}

func containsWord(list, word string) bool {
	return strings.HasPrefix(list, word+" ") || strings.HasSuffix(list, " "+word) || list == word || strings.Contains(list, " "+word+" ")
}

// A wrapper is an address that does nothing but lead to another, which it holds.
type wrapper struct {
	host   string // or a domain after a dot; google. is Google under any suffix
	path   string // prefix
	target func(u *url.URL) string
	why    string
}

var wrappers = []wrapper{
	{".google.", "/url", query("url", "q"), "links of Google's results and of the feeds of Google Alerts"},
	{".google.", "/amp/s/", afterPath("/amp/s/", "https://"), "Google's AMP viewer"},
	{".google.", "/amp/", afterPath("/amp/", "http://"), "Google's AMP viewer"},
	{"news.google.com", "/articles/", newsTarget, "Google News; ids of 2024 and later hold no address and stay"},
	{"news.google.com", "/rss/articles/", newsTarget, "feeds of Google News"},
	{".cdn.ampproject.org", "/c/s/", afterPath("/c/s/", "https://"), "the AMP cache's copy of a document"},
	{".cdn.ampproject.org", "/c/", afterPath("/c/", "http://"), "the AMP cache's copy of a document"},
	{".cdn.ampproject.org", "/v/s/", afterPath("/v/s/", "https://"), "the AMP cache's copy in a viewer"},
	{".cdn.ampproject.org", "/v/", afterPath("/v/", "http://"), "the AMP cache's copy in a viewer"},
	{".bing-amp.com", "/c/s/", afterPath("/c/s/", "https://"), "Bing's AMP cache"},
	{"amp.cnn.com", "/cnn/", func(u *url.URL) string {
		return "https://www.cnn.com/" + strings.TrimPrefix(u.EscapedPath(), "/cnn/")
	}, "CNN's AMP host, whose paths have a folder more"},
	{"www.bing.com", "/news/apiclick.aspx", query("url"), "links of Bing's news feeds"},
	{"l.facebook.com", "/l.php", query("u"), "links that leave Facebook"},
	{"lm.facebook.com", "/l.php", query("u"), "links that leave Facebook"},
	{"l.instagram.com", "/", query("u"), "links that leave Instagram"},
	{"out.reddit.com", "/", query("url"), "links that leave Reddit"},
	{"www.youtube.com", "/redirect", query("q"), "links that leave YouTube"},
	{"duckduckgo.com", "/l/", query("uddg"), "links of DuckDuckGo's results"},
	{"vk.com", "/away.php", query("to"), "links that leave VK"},
	{"t.umblr.com", "/redirect", query("z"), "links that leave Tumblr"},
	{".safelinks.protection.outlook.com", "/", query("url"), "links in mails that passed Microsoft's filter"},
}

// unwrapped is the address that a wrapper holds, "" for any other address.
func unwrapped(canonical string) string {
	host := Host(canonical)
	if !wraps[lastLabels(host)] && !strings.Contains(host, "google.") {
		return "" // as of nearly all
	}
	google := false
	if strings.Contains(host, "google.") {
		d := RegistrableDomain(host)
		google = strings.HasPrefix(d, "google.") && strings.TrimPrefix(host, "www.") == d
	}
	for _, w := range wrappers {
		if w.host == ".google." {
			if !google {
				continue
			}
		} else if host != w.host && (w.host[0] != '.' || !strings.HasSuffix(host, w.host)) {
			continue
		}
		u, err := url.Parse(canonical)
		if err != nil || !strings.HasPrefix(u.EscapedPath(), w.path) {
			continue
		}
		if to := CanonicalURL(w.target(u)); isWeb(to) && to != canonical {
			return to
		}
	}
	return ""
}

// wraps holds the last two labels of the hosts of wrappers.
var wraps = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range wrappers {
		out[lastLabels(w.host)] = true
	}
	return out
}()

func lastLabels(host string) string {
	i := strings.LastIndexByte(host, '.')
	if i < 0 {
		return host
	}
	return host[strings.LastIndexByte(host[:i], '.')+1:]
}

func isWeb(address string) bool {
	return (strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")) && Host(address) != ""
}

// query gives the first of some parameters that holds an address.
func query(names ...string) func(*url.URL) string {
	return func(u *url.URL) string {
		for _, n := range names {
			if v := u.Query().Get(n); isWeb(v) {
				return v
			}
		}
		return ""
	}
}

// afterPath gives what follows a path, which begins with a host; the query stays.
func afterPath(prefix, scheme string) func(*url.URL) string {
	return func(u *url.URL) string {
		rest := strings.TrimPrefix(u.EscapedPath(), prefix)
		if host, _, _ := strings.Cut(rest, "/"); !strings.Contains(host, ".") {
			return ""
		}
		if u.RawQuery != "" {
			rest += "?" + u.RawQuery
		}
		return scheme + rest
	}
}

// newsTarget reads the address out of an id of Google News: base64 of a protocol buffer whose field 4 is the address.
func newsTarget(u *url.URL) string {
	id := u.Path[strings.LastIndexByte(strings.TrimSuffix(u.Path, "/"), '/')+1:]
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(id, "=/"))
	if err != nil || len(raw) < 5 || raw[0] != 0x08 || raw[2] != 0x22 {
		return ""
	}
	n, size := binary.Uvarint(raw[3:])
	if size <= 0 || n > uint64(len(raw)-3-size) {
		return ""
	}
	return string(raw[3+size : 3+size+int(n)])
}

// aliases are hosts under which a site shows the pages of another: host => the host whose pages they are.
// A host with and without www is one site by habit alone, so only sites that are known for it stand here;
// of others redirects and canonical links tell, see PageAddress.
var aliases = func() map[string]string {
	out := map[string]string{}
	for _, line := range []string{
		"www.politifact.com politifact.com", "www.snopes.com snopes.com", "www.factcheck.org factcheck.org", "www.washingtonpost.com washingtonpost.com",
		"www.nytimes.com nytimes.com", "www.cnn.com cnn.com edition.cnn.com us.cnn.com", "www.bbc.com bbc.com", "www.bbc.co.uk bbc.co.uk", "www.reuters.com reuters.com",
		"www.theguardian.com theguardian.com", "www.npr.org npr.org", "apnews.com www.apnews.com", "fullfact.org www.fullfact.org", "africacheck.org www.africacheck.org",
		"www.youtube.com youtube.com", "www.facebook.com facebook.com web.facebook.com touch.facebook.com mbasic.facebook.com", "www.instagram.com instagram.com",
		"www.reddit.com reddit.com old.reddit.com new.reddit.com np.reddit.com i.reddit.com sh.reddit.com", "twitter.com www.twitter.com x.com www.x.com", "www.wikipedia.org wikipedia.org",
	} {
		hosts := strings.Fields(line)
		for _, h := range hosts[1:] {
			out[h] = hosts[0]
		}
	}
	return out
}()

// shapes are first labels of hosts that show the pages of the host behind them in another shape.
var shapes = map[string]bool{"m": true, "mobile": true, "amp": true}

// homeHost is the host whose pages a host shows: of a table, or what follows m., mobile. and amp.; a
// language's mobile Wikipedia has the m in between.
func homeHost(host string) string {
	if strings.ContainsRune(host, ':') {
		return host // a port is a server of its own
	}
	if rest, ok := strings.CutSuffix(host, ".wikipedia.org"); ok {
		return strings.TrimSuffix(rest, ".m") + ".wikipedia.org"
	}
	if first, rest, _ := strings.Cut(host, "."); shapes[first] && len(rest) >= len(RegistrableDomain(host)) {
		host = rest
	}
	if home, ok := aliases[host]; ok {
		return home
	}
	return host
}

var (
	// ampTail ends the path of an AMP page: /amp, /amp/, /amp.html, .amp, .amp.html.
	ampTail = regexp.MustCompile(`^(.*?)(?:/amp/?|/amp\.html|\.amp|\.amp(\.html))$`)
	// slug is the name of an article: two dashes, or a number of four digits.
	slug = regexp.MustCompile(`-[^/]*-|\d{4}`)
)

// plainPath is the path of the page of which an address shows the AMP form. A page that is called amp is
// told from one by the name before it, which is no article's.
func plainPath(path string) string {
	if !strings.Contains(path, "amp") {
		return path
	}
	if m := ampTail.FindStringSubmatch(path); m != nil && slug.MatchString(m[1][strings.LastIndexByte(m[1], '/')+1:]) {
		if strings.HasSuffix(path, "/amp/") {
			return m[1] + "/"
		}
		return m[1] + m[2]
	}
	if rest, ok := strings.CutPrefix(path, "/amp/"); ok && slug.MatchString(rest) {
		return "/" + rest
	}
	return path
}

// IsHome reports whether an address is that of a site and of no page on it.
func IsHome(address string) bool {
	u, err := url.Parse(CanonicalURL(address))
	if err != nil || u.RawQuery != "" {
		return false
	}
	switch strings.Trim(u.Path, "/") {
	case "", "index.html", "index.php", "home":
		return true
	}
	return false
}

// naming are parameters that name a page, so that an address without them is another page's.
var naming = regexp.MustCompile(`^(id|.*[_-]id|p|v|nid|article|story|post|item|slug|title|claim)$`)

// PageAddress is the address that a page has, whatever way led to it: where it was found after redirects, or
// what it calls itself (its canonical link, "" for none), if that may be believed. A page speaks for its own
// registrable domain alone, and for the publisher's where an AMP cache shows it; not for a home page or for
// a folder above it, which careless templates print; and not for an address that lacks the parameter that
// names the page.
func PageAddress(final, told string) string {
	page := CleanURL(final)
	if strings.TrimSpace(told) == "" {
		return page
	}
	claimed := CleanURL(ResolveURL(page, told))
	at, err := url.Parse(page)
	if err != nil {
		return page
	}
	to, err := url.Parse(claimed)
	switch {
	case err != nil || !isWeb(claimed):
	case RegistrableDomain(Host(page)) != RegistrableDomain(Host(claimed)) && !ampCache(Host(page)):
	case IsHome(claimed) && !IsHome(page):
	case !IsHome(page) && above(to.EscapedPath(), plainPath(at.EscapedPath())):
	case to.EscapedPath() == at.EscapedPath() && lacks(to.Query(), at.Query()):
	default:
		return claimed
	}
	return page
}

// ampCache reports hosts that show other people's pages.
func ampCache(host string) bool {
	return strings.HasSuffix(host, ".cdn.ampproject.org") || strings.HasSuffix(host, ".bing-amp.com")
}

// above reports whether a path is a folder on the way to another path.
func above(folder, path string) bool {
	folder, path = strings.TrimRight(folder, "/")+"/", strings.TrimRight(path, "/")+"/"
	return folder != path && strings.HasPrefix(path, folder)
}

// lacks reports whether a query is without a parameter of another that names a page.
func lacks(query, other url.Values) bool {
	for name, values := range other {
		if naming.MatchString(strings.ToLower(name)) && query.Get(name) != values[0] {
			return true
		}
	}
	return false
}
