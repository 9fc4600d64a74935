package corpus

import (
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// newsID is an id of Google News that holds an address.
func newsID(address string) string {
	id := binary.AppendUvarint([]byte{0x08, 0x13, 0x22}, uint64(len(address)))
	return base64.RawURLEncoding.EncodeToString(append(append(id, address...), 0xd2, 0x01, 0x00))
}

func TestCleanURL(t *testing.T) {
	const page = "https://news.example/2023/03/wells-of-averil-counted/"
	q := url.QueryEscape(page)
	tests := []struct{ in, want string }{
		{page + "?utm_source=x&utm_medium=y", page},
		{page + "?a=1&amp;utm_source=x&amp;fbclid=y", page + "?a=1"},
		{page + "?amp", page},
		{page + "?amp=1&id=4", page + "?id=4"},
		{page + "?amp=ere", page + "?amp=ere"},
		{page + "?outputType=amp", page},
		{page + "?output=pdf", page + "?output=pdf"},
		{page + "?pk_campaign=spring&mtm_kwd=x&at_custom1=z", page},
		{page + "?smid=tw-share", page + "?smid=tw-share"},
		{"https://www.nytimes.com/2023/x.html?smid=tw-share", "https://www.nytimes.com/2023/x.html"},
		{"https://www.theguardian.com/x/y?CMP=share_btn_fb", "https://www.theguardian.com/x/y"},
		{"https://twitter.com/a/status/12?s=20&t=abc", "https://twitter.com/a/status/12"},
		{"https://news.example/?s=wells", "https://news.example/?s=wells"},
		{"https://www.youtube.com/watch?v=abc&feature=share&si=def", "https://www.youtube.com/watch?v=abc"},

		{"https://www.google.com/url?rct=j&sa=t&url=" + page + "&ct=ga&usg=x", page},
		{"https://www.google.co.uk/url?q=" + q + "&sa=D", page},
		{"https://google.com/url?q=wells", "https://google.com/url?q=wells"},
		{"https://www.google.com/search?q=" + q, "https://www.google.com/search?q=" + q},
		{"https://google.evil.example/url?q=" + q, "https://google.evil.example/url?q=" + q},
		{"https://www.google.com/amp/s/news.example/2023/03/wells-of-averil-counted/", page},
		{"https://www.google.com/amp/nothing", "https://www.google.com/amp/nothing"},
		{"https://news-example.cdn.ampproject.org/c/s/news.example/2023/03/wells-of-averil-counted/?amp_js_v=0.1&id=2", page + "?id=2"},
		{"https://news-example.cdn.ampproject.org/v/news.example/x?usqp=mq331AQA", "http://news.example/x"},
		{"https://news.google.com/articles/" + newsID(page) + "?hl=en", page},
		{"https://news.google.com/rss/articles/" + newsID(page) + "?oc=5", page},
		{"https://news.google.com/articles/" + newsID("AU_yqLabcdef"), "https://news.google.com/articles/" + newsID("AU_yqLabcdef")},
		{"https://news.google.com/articles/CBMi", "https://news.google.com/articles/CBMi"},
		{"https://news.google.com/topics/CAAqJg", "https://news.google.com/topics/CAAqJg"},
		{"https://www.bing.com/news/apiclick.aspx?ref=FexRss&url=" + q + "&c=1", page},
		{"https://l.facebook.com/l.php?u=" + q + "&h=AT0", page},
		{"https://out.reddit.com/t3_abc?url=" + q + "&token=x", page},
		{"https://duckduckgo.com/l/?uddg=" + q, page},
		{"https://eur01.safelinks.protection.outlook.com/?url=" + q + "&data=x", page},
		{"https://amp.cnn.com/cnn/2024/07/01/politics/a-b-c", "https://www.cnn.com/2024/07/01/politics/a-b-c"},
		{"https://www.google.com/url?q=" + url.QueryEscape("https://l.facebook.com/l.php?u="+url.QueryEscape(page+"?utm_source=x")), page},
		{"https://www.google.com/url?q=javascript:alert(1)", "https://www.google.com/url?q=javascript:alert(1)"},
		{"https://other.example/login?url=" + q, "https://other.example/login?url=" + q},
	}
	for _, tt := range tests {
		got := CleanURL(tt.in)
		if got != tt.want {
			t.Errorf("CleanURL(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if again := CleanURL(got); again != got {
			t.Errorf("CleanURL is not stable: %q becomes %q", got, again)
		}
	}
}

func TestIdentityURLOfAShapeIsThePages(t *testing.T) {
	tests := []struct{ in, want string }{
		{"https://m.check.example/claims/bridge", "https://check.example/claims/bridge"},
		{"https://mobile.check.example/claims/bridge?id=7", "https://check.example/claims/bridge?id=7"},
		{"https://amp.check.example/claims/bridge", "https://check.example/claims/bridge"},
		{"https://m.example", "https://m.example/"},
		{"https://m.co.uk/x", "https://m.co.uk/x"},
		{"https://m.check.example:8443/x", "https://m.check.example:8443/x"},
		{"https://museum.check.example/x", "https://museum.check.example/x"},
		{"https://www.check.example/x", "https://www.check.example/x"},
		{"https://en.m.wikipedia.org/wiki/Well", "https://en.wikipedia.org/wiki/Well"},
		{"https://politifact.com/factchecks/x/", "https://www.politifact.com/factchecks/x/"},
		{"https://m.snopes.com/fact-check/x/", "https://www.snopes.com/fact-check/x/"},
		{"https://old.reddit.com/r/wells/wiki/index", "https://www.reddit.com/r/wells/wiki/index"},
		{"https://mobile.twitter.com/a/status/12", "https://twitter.com/a/status/12"},
		{"https://x.com/a/status/12", "https://twitter.com/a/status/12"},
		{"https://youtu.be/abc?t=9", "https://www.youtube.com/watch?v=abc&t=9"},
		{"https://m.youtube.com/watch?v=abc", "https://www.youtube.com/watch?v=abc"},
		{"https://edition.cnn.com/2020/x-y-z", "https://www.cnn.com/2020/x-y-z"},

		{"https://check.example/2023/wells-of-averil/amp/", "https://check.example/2023/wells-of-averil/"},
		{"https://check.example/2023/wells-of-averil/amp", "https://check.example/2023/wells-of-averil"},
		{"https://check.example/wells-of-averil.amp.html", "https://check.example/wells-of-averil.html"},
		{"https://check.example/wells-of-averil.amp", "https://check.example/wells-of-averil"},
		{"https://check.example/amp/news/wells-of-averil", "https://check.example/news/wells-of-averil"},
		{"https://check.example/news/12345678/amp?id=2", "https://check.example/news/12345678?id=2"},
		{"https://shop.example/guitars/amp", "https://shop.example/guitars/amp"},
		{"https://shop.example/amp/tube", "https://shop.example/amp/tube"},
		{"https://shop.example/amp", "https://shop.example/amp"},
		{"https://check.example/wells-and-a-camp/", "https://check.example/wells-and-a-camp/"},
	}
	for _, tt := range tests {
		got := IdentityURL(tt.in)
		if got != tt.want {
			t.Errorf("IdentityURL(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if again := IdentityURL(got); again != got {
			t.Errorf("IdentityURL is not stable: %q becomes %q", got, again)
		}
	}
}

func TestPageAddress(t *testing.T) {
	const page = "https://check.example/claims/bridge"
	tests := []struct{ name, final, told, want string }{
		{"none", page, "", page},
		{"itself", page + "?x=1", page, page},
		{"relative", page + "?x=1", "/claims/bridge", page},
		{"tracked", page, page + "?utm_source=canonical", page},
		{"another host of the site", "https://m.check.example/claims/bridge", "https://www.check.example/claims/bridge", "https://www.check.example/claims/bridge"},
		{"moved", "https://check.example/?p=123", page, page},
		{"AMP page", page + "-of-2023/amp/", page + "-of-2023/", page + "-of-2023/"},
		{"another site", page, "https://other.example/claims/bridge", page},
		{"a site of the same host provider", "https://a.github.io/x", "https://b.github.io/x", "https://a.github.io/x"},
		{"AMP cache", "https://check-example.cdn.ampproject.org/i/s/check.example/x.png", page, page},
		{"a home page", page, "https://check.example/", page},
		{"a home page with a name", page, "https://check.example/index.html", page},
		{"the home page's own", "https://check.example/index.html", "https://check.example/", "https://check.example/"},
		{"a folder above", page, "https://check.example/claims/", page},
		{"without the parameter that names the page", "https://check.example/view?id=7", "https://check.example/view", "https://check.example/view?id=7"},
		{"with another parameter that names a page", "https://check.example/view?id=7", "https://check.example/view?id=8", "https://check.example/view?id=7"},
		{"without a parameter that names none", page + "?view=wide", page, page},
		{"no address", page, "http://[", page},
		{"no web", page, "javascript:void(0)", page},
	}
	for _, tt := range tests {
		if got := PageAddress(tt.final, tt.told); got != tt.want {
			t.Errorf("%s: PageAddress(%q, %q) = %q, want %q", tt.name, tt.final, tt.told, got, tt.want)
		}
	}
}

// Whatever way of the tables leads to a page, its identity is one, and clean addresses are stable; the ways
// are put together at random.
func TestEveryWayToAPageIsOneIdentity(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	const shapes = 5 // ways that change the address itself
	ways := []func(string) string{
		func(u string) string { return strings.Replace(u, "https://", "http://", 1) },
		func(u string) string { return strings.Replace(u, "https://", "HTTPS://", 1) + "#part" },
		func(u string) string { return strings.Replace(u, "://", "://m.", 1) },
		func(u string) string { return strings.Replace(u, "://", "://amp.", 1) },
		func(u string) string { return strings.Replace(u, ".example/", ".example:443/", 1) },
		func(u string) string { return with(u, "amp=1") },
		func(u string) string { return "https://www.google.com/url?sa=t&url=" + url.QueryEscape(u) },
		func(u string) string { return "https://l.facebook.com/l.php?u=" + url.QueryEscape(u) + "&h=1" },
		func(u string) string { return "https://news.google.com/articles/" + newsID(u) },
		func(u string) string { return "https://x.cdn.ampproject.org/c/s/" + strings.TrimPrefix(u, "https://") },
	}
	for _, p := range parameters {
		if p.domains != "" {
			continue
		}
		for _, name := range strings.Fields(p.names) {
			value := "x"
			if p.values != nil {
				value = map[bool]string{true: "amp", false: "1"}[p.values.MatchString("amp")]
			}
			ways = append(ways, func(u string) string { return with(u, strings.TrimSuffix(name, "*")+"="+value) })
		}
	}
	for i := range 2000 {
		page := "https://check" + string(rune('a'+i%26)) + ".example/2023/wells-of-averil/" + string(rune('a'+rng.IntN(26))) + "?id=7"
		a := ways[rng.IntN(len(ways))](page)
		if got := IdentityURL(a); got != page {
			t.Fatalf("IdentityURL(%q) = %q, want %q", a, got, page)
		}
		if !strings.HasPrefix(a, "https://") || strings.Contains(a, "#") {
			continue // a second way starts from a plain address
		}
		if b := ways[shapes+rng.IntN(len(ways)-shapes)](a); IdentityURL(b) != page {
			t.Fatalf("IdentityURL(%q) = %q, want %q", b, IdentityURL(b), page)
		}
	}
}

func with(address, parameter string) string {
	if strings.Contains(address, "?") {
		return address + "&" + parameter
	}
	return address + "?" + parameter
}

func TestEveryAddressRuleHasAReason(t *testing.T) {
	var names []string
	for _, p := range parameters {
		if p.why == "" {
			t.Errorf("parameters %q have no reason", p.names)
		}
		for _, n := range strings.Fields(p.names) {
			if n != strings.ToLower(n) {
				t.Errorf("parameter %q is not in lower case and drops nothing", n)
			}
			if p.domains == "" {
				names = append(names, n)
			}
		}
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			t.Errorf("parameter %s stands twice", names[i])
		}
	}
	for _, w := range wrappers {
		if w.why == "" {
			t.Errorf("wrapper %s%s has no reason", w.host, w.path)
		}
	}
	for host, home := range aliases {
		if aliases[home] != "" || homeHost(host) != home {
			t.Errorf("%s is an alias of %s, which is one of %q", host, home, aliases[home])
		}
	}
}

func FuzzIdentityURL(f *testing.F) {
	for _, s := range []string{"https://www.google.com/url?q=https://a.b/", "https://m.a.b/x/amp/?amp", "https://news.google.com/articles/CBMiAA", "http://x.cdn.ampproject.org/c/s/a.b/c?d#e", "https://youtu.be/x?v=", "https://a.b/amp/2023?&amp;ref=rss"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean := CleanURL(s)
		if isWeb(clean) && unwrapped(clean) == "" && CleanURL(clean) != clean {
			t.Errorf("CleanURL(%q) = %q, then %q", s, clean, CleanURL(clean))
		}
		if CleanURL(CanonicalURL(s)) != clean {
			t.Errorf("CleanURL(%q) = %q, of its canonical form %q", s, clean, CleanURL(CanonicalURL(s)))
		}
		_ = IdentityURL(s)
		_ = PageAddress(s, s)
	})
}

func BenchmarkIdentityURL(b *testing.B) {
	const page = "https://www.check.example/factchecks/2023/mar/14/mara-quill/lakeford-bridge-toll-doubled-2022/"
	for b.Loop() {
		if IdentityURL(page) != page {
			b.Fatal("changed")
		}
	}
}
